//! Requests of Gemini CLI for its own purposes: the choice of a model, loop detection, summaries of a session
//! and similar ones.

use serde_json::{Map, Value};

use super::super::{OwnRequest, ParsedBody};
use crate::json::{items, text_of};
use crate::protocol::Protocol;

/// Answer to a request for text. The CLI would retry an empty one.
const TEXT: &str = "A text by the mock model.";

/// Returns the answer to a request outside of the conversation.
///
/// In a conversation the CLI declares functions and streams; its own requests do neither. Contents without a
/// configuration come from a manual client: those are a conversation in either form.
pub(super) fn request(request: &ParsedBody<'_>) -> Option<OwnRequest> {
    if request.protocol != Protocol::Gemini {
        return None;
    }
    let body = request.body;
    let config = &body["generationConfig"];
    let schema = config
        .get("responseJsonSchema")
        .or_else(|| config.get("responseSchema"));
    if schema.is_some() || text_of(config, "responseMimeType") == "application/json" {
        let instance = schema.map_or_else(|| Value::Object(Map::new()), instance);
        return Some(OwnRequest::Text(instance.to_string()));
    }
    let is_bare = ["generationConfig", "systemInstruction", "tools"]
        .iter()
        .all(|field| body.get(field).is_none_or(Value::is_null));
    let is_own = !request.stream && request.tools.is_empty() && !is_bare;
    is_own.then(|| OwnRequest::Text(TEXT.to_owned()))
}

/// Returns the minimal instance of a schema: empty texts, first choices, low numbers. For the CLI it means
/// that the task is simple, there is no loop, and a text is correct.
fn instance(schema: &Value) -> Value {
    if let Some(constant) = schema.get("const") {
        return constant.clone();
    }
    if let Some(first) = items(schema, "enum").first() {
        return first.clone();
    }
    for choice in ["anyOf", "oneOf"] {
        if let Some(first) = items(schema, choice).first() {
            return instance(first);
        }
    }
    let kind = match &schema["type"] {
        Value::Array(kinds) => kinds.first().and_then(Value::as_str),
        kind => kind.as_str(),
    };
    let least = |least: u64| {
        schema
            .get("minimum")
            .cloned()
            .unwrap_or_else(|| least.into())
    };
    // OpenAPI writes type names in capitals.
    match kind.unwrap_or("object").to_ascii_lowercase().as_str() {
        "string" => "".into(),
        "boolean" => false.into(),
        // Scores begin at 1, even if the schema does not require that.
        "integer" => least(1),
        "number" => least(0),
        "array" => Value::Array(Vec::new()),
        "null" => Value::Null,
        _ => object(schema),
    }
}

/// Returns the required fields, or all if the schema does not declare any as required.
fn object(schema: &Value) -> Value {
    let required: Option<Vec<_>> = schema["required"]
        .as_array()
        .map(|names| names.iter().filter_map(Value::as_str).collect());
    let is_required = |name: &String| {
        required
            .as_ref()
            .is_none_or(|names| names.contains(&name.as_str()))
    };
    let fields = schema["properties"].as_object();
    fields
        .into_iter()
        .flatten()
        .filter(|(name, _)| is_required(name))
        .map(|(name, field)| (name.clone(), instance(field)))
        .collect()
}

/// Texts that the CLI inserts in the model's role between two user contents: after an answer that broke off,
/// and before it retries after an empty one.
const OF_THE_CLI: [&str; 2] = [
    "[The previous response was interrupted before it completed.]",
    "[Tool execution completed.]",
];

pub(super) fn is_message(protocol: Protocol, content: &Value) -> bool {
    let is_own = |part: &Value| OF_THE_CLI.contains(&text_of(part, "text"));
    protocol == Protocol::Gemini && matches!(items(content, "parts"), [part] if is_own(part))
}
