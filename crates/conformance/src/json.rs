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

/// Returns the path of the first match in a value.
pub(crate) fn find(
    value: &Value,
    path: &str,
    is_it: &impl Fn(&str, &Value) -> bool,
) -> Option<String> {
    match value {
        Value::Object(fields) => fields.iter().find_map(|(key, value)| {
            let path = if path.is_empty() {
                key.clone()
            } else {
                format!("{path}.{key}")
            };
            if key != "id" && is_it(key, value) {
                return Some(path);
            }
            find(value, &path, is_it)
        }),
        Value::Array(items) => items
            .iter()
            .find_map(|item| find(item, &format!("{path}[]"), is_it)),
        _ => None,
    }
}
