//! Requests to a model.

use serde_json::Value;
use teamster_mock_model::Request;

/// Returns the requests for an answer of the conversation, without those for a title or a summary.
pub(crate) fn of_the_conversation(requests: &[Request]) -> Vec<&Request> {
    requests
        .iter()
        .filter(|request| request.turn.is_some())
        .collect()
}

/// Returns all texts of a request, concatenated. Texts in a list, such as a conversation, keep their order.
pub(crate) fn texts(request: &Request) -> String {
    let mut all = String::new();
    collect(&request.body, &mut all);
    all
}

fn collect(value: &Value, all: &mut String) {
    match value {
        Value::String(text) => {
            all.push_str(text);
            all.push('\n');
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, all)),
        Value::Object(fields) => fields.values().for_each(|field| collect(field, all)),
        _ => {}
    }
}

/// Returns how often a text occurs in another.
pub(crate) fn times(all: &str, text: &str) -> usize {
    all.matches(text).count()
}

/// Formats a request in one line, for people.
pub(crate) fn line(request: &Request) -> String {
    format!(
        "asked: {} {} {:?} turn {:?} attempt {:?} -> {}",
        request.method,
        request.path,
        request.cli.map(teamster_mock_model::Cli::id),
        request.turn,
        request.attempt,
        request.status
    )
}
