//! Access to JSON fields that may be missing or have another type.

use serde_json::Value;

/// Returns a text field of an object, or an empty text.
pub(crate) fn text_of<'v>(value: &'v Value, field: &str) -> &'v str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// Returns the items of a list in a field, or an empty list.
pub(crate) fn items<'v>(value: &'v Value, field: &str) -> &'v [Value] {
    value
        .get(field)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}
