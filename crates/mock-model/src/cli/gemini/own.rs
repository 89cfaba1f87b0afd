//! Requests of Gemini CLI for its own purposes: which model shall answer, whether the conversation goes in
//! circles, a summary of a session, and the like.

use serde_json::{Map, Value};

use super::super::{OwnRequest, ParsedBody};
use crate::json::{items, text_of};
use crate::protocol::Protocol;

/// The answer where a text is required: an empty one would be requested again.
const TEXT: &str = "A text by the mock model.";

/// The answer to a request that is none for the next answer of the conversation.
///
/// In a conversation the CLI declares functions, and streams. What it asks beside it, it asks without
/// both. Bare contents are what a person sends by hand: those are a conversation in either form.
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

/// The least that a schema allows: empty texts, first choices, low numbers. To the CLI that means
/// that the task is simple, nothing goes in circles, and a text is right as it is.
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
    // OpenAPI's names of types are in capitals.
    match kind.unwrap_or("object").to_ascii_lowercase().as_str() {
        "string" => "".into(),
        "boolean" => false.into(),
        // Scores begin at 1, whether or not the schema has it.
        "integer" => least(1),
        "number" => least(0),
        "array" => Value::Array(Vec::new()),
        "null" => Value::Null,
        _ => object(schema),
    }
}

/// The fields that must be there, or all if the schema does not say which those are.
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

/// Inserted by the CLI between two contents of the user's as text of the model: after an
/// answer that broke off, and before it asks again for one that was empty.
const OF_THE_CLI: [&str; 2] = [
    "[The previous response was interrupted before it completed.]",
    "[Tool execution completed.]",
];

pub(super) fn is_message(protocol: Protocol, content: &Value) -> bool {
    let is_own = |part: &Value| OF_THE_CLI.contains(&text_of(part, "text"));
    protocol == Protocol::Gemini && matches!(items(content, "parts"), [part] if is_own(part))
}
