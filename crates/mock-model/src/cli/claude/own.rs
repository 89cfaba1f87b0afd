//! Requests of Claude Code for its own purposes, and messages that it writes in the model's role.

use serde_json::{Value, json};

use super::super::{OwnRequest, ParsedBody};
use crate::json::{items, text_of};
use crate::protocol::Protocol;

/// Beginning of the request for a summary when a conversation has become too long. Claude Code starts a new
/// conversation with the summary.
const SUMMARIZE: &str = "CRITICAL: Respond with TEXT ONLY. Do NOT call any tools.";

/// Message that Claude Code writes in the model's role when it resumes a session that ended without an
/// answer. It is not text of the model.
const NO_ANSWER: &str = "No response requested.";

/// Beginning of the request of its search tool.
const SEARCH: &str = "Perform a web search for the query: ";

/// Returns the query of a request that only searches the web.
fn searched(body: &Value) -> Option<&str> {
    let hosted = |tool: &Value| text_of(tool, "type").starts_with("web_search");
    items(body, "tools").iter().any(hosted).then_some(())?;
    last_text(items(body, "messages").last()?).strip_prefix(SEARCH)
}

fn is_summary_asked(body: &Value) -> bool {
    // A system note may follow it.
    let mut users = items(body, "messages").iter().rev();
    let last = users.find(|message| text_of(message, "role") == "user");
    last.is_some_and(|message| last_text(message).starts_with(SUMMARIZE))
}

pub(super) fn request(request: &ParsedBody<'_>) -> Option<OwnRequest> {
    let body = request.body;
    if request.protocol != Protocol::Anthropic {
        None
    } else if let Some(form) = form(body) {
        Some(OwnRequest::Text(example(form).to_string()))
    } else if let Some(query) = searched(body) {
        Some(OwnRequest::Search(query.to_owned()))
    } else {
        let summary = "<summary>\nMock model: nothing is kept.\n</summary>";
        is_summary_asked(body).then(|| OwnRequest::Text(summary.to_owned()))
    }
}

pub(super) fn is_message(protocol: Protocol, message: &Value) -> bool {
    protocol == Protocol::Anthropic
        && items(message, "content").len() <= 1
        && last_text(message) == NO_ANSWER
}

fn last_text(message: &Value) -> &str {
    match &message["content"] {
        Value::String(text) => text,
        Value::Array(blocks) => blocks.last().map_or("", |block| text_of(block, "text")),
        _ => "",
    }
}

/// Returns the JSON schema of the requested answer. Claude Code sets it only for its own purposes, such as
/// the title of a session: `--json-schema` of a user is a tool. The tools are no indication: with `--tools
/// ""` a conversation has none either.
fn form(body: &Value) -> Option<&Value> {
    let format = &body["output_config"]["format"];
    (text_of(format, "type") == "json_schema").then(|| &format["schema"])
}

/// Returns the smallest value that matches a schema.
fn example(schema: &Value) -> Value {
    if let Some(first) = items(schema, "enum").first() {
        return first.clone();
    }
    match text_of(schema, "type") {
        "object" => items(schema, "required")
            .iter()
            .filter_map(Value::as_str)
            .map(|name| (name.to_owned(), example(&schema["properties"][name])))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        "array" => json!([]),
        "integer" | "number" => json!(0),
        "boolean" => json!(false),
        "null" => Value::Null,
        _ => json!("Mock model"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_example_has_only_the_fields_that_its_schema_requires() {
        let schema = json!({
            "type": "object",
            "properties": {
                "kind": {"type": "string", "enum": ["a", "b"]},
                "count": {"type": "integer"},
                "ok": {"type": "boolean"},
                "all": {"type": "array", "items": {"type": "string"}},
                "inner": {"type": "object", "properties": {"x": {"type": "null"}}, "required": ["x"]},
                "more": {"type": "string"},
            },
            "required": ["kind", "count", "ok", "all", "inner"],
        });
        assert_eq!(
            example(&schema),
            json!({"kind": "a", "count": 0, "ok": false, "all": [], "inner": {"x": null}})
        );
    }
}
