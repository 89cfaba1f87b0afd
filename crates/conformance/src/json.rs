//! Searches in JSON.

use serde_json::Value;

/// Returns whether a text occurs anywhere in a value.
pub(crate) fn holds(value: &Value, text: &str) -> bool {
    match value {
        Value::String(string) => string.contains(text),
        Value::Array(items) => items.iter().any(|item| holds(item, text)),
        Value::Object(fields) => fields.values().any(|field| holds(field, text)),
        _ => false,
    }
}
