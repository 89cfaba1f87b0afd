//! Requests to a model, and their conversation.

use serde_json::Value;
use teamster_mock_model::{Request, Tokens};

/// Fields that mark the result of a call, by the protocols: Anthropic Messages, OpenAI Responses (two), OpenAI Chat
/// Completions.
const RESULTS: [(&str, &str); 4] = [
    ("type", "tool_result"),
    ("type", "function_call_output"),
    ("type", "custom_tool_call_output"),
    ("role", "tool"),
];

pub(crate) struct Answer {
    pub(crate) tokens: Tokens,
    /// True if it is a whole answer of the conversation. Others, such as a title or one that broke off, may count.
    pub(crate) counts: bool,
}

impl Answer {
    /// Returns the answer to a request, if there is one.
    pub(crate) fn of(request: &Request) -> Option<Self> {
        Some(Self {
            tokens: request.tokens?,
            counts: request.turn.is_some() && !request.breaks_off,
        })
    }
}

/// Returns the texts of all results of calls in requests.
pub(crate) fn results(requests: &[Request]) -> String {
    let mut all = String::new();
    for request in requests {
        collect_results(&request.body, &mut all);
    }
    all
}

fn collect_results(value: &Value, all: &mut String) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect_results(item, all)),
        Value::Object(fields) => {
            let is_marked = RESULTS.iter().any(|(name, mark)| value[name] == *mark);
            // Gemini's protocol marks it by the name of the field.
            let of_gemini = fields.get("functionResponse");
            match of_gemini.or(is_marked.then_some(value)) {
                Some(result) => collect_texts(result, all),
                None => fields.values().for_each(|it| collect_results(it, all)),
            }
        }
        _ => {}
    }
}

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
    collect_texts(&request.body, &mut all);
    all
}

fn collect_texts(value: &Value, all: &mut String) {
    match value {
        Value::String(text) => {
            all.push_str(text);
            all.push('\n');
        }
        Value::Array(items) => items.iter().for_each(|item| collect_texts(item, all)),
        Value::Object(fields) => fields.values().for_each(|field| collect_texts(field, all)),
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

#[cfg(test)]
mod tests {
    //! Made-up requests.

    use serde_json::json;

    use super::*;

    fn results_of(body: &Value) -> String {
        let mut all = String::new();
        collect_results(body, &mut all);
        all
    }

    #[test]
    fn only_results_of_calls_are_collected_in_each_protocol() {
        for body in [
            json!({"messages": [
                {"role": "assistant", "content": [{"type": "tool_use", "input": {"a": "Yes"}}]},
                {"role": "user", "content": [{"type": "tool_result", "content": [{"type": "text", "text": "No"}]}]},
            ]}),
            json!({"messages": [
                {"role": "assistant", "tool_calls": [{"function": {"arguments": "Yes"}}]},
                {"role": "tool", "content": "No"},
            ]}),
            json!({"input": [
                {"type": "function_call", "arguments": "Yes"},
                {"type": "function_call_output", "output": "No"},
            ]}),
            json!({"contents": [
                {"parts": [{"functionCall": {"args": {"a": "Yes"}}}]},
                {"parts": [{"functionResponse": {"response": {"output": "No"}}}]},
            ]}),
        ] {
            let all = results_of(&body);
            assert!(all.contains("No") && !all.contains("Yes"), "{all}");
        }
    }
}
