//! Fields of JSON that may be missing or of another type.

use serde_json::Value;

/// A text field of an object, or nothing.
pub(crate) fn text_of<'v>(value: &'v Value, field: &str) -> &'v str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// The items of a list in a field.
pub(crate) fn items<'v>(value: &'v Value, field: &str) -> &'v [Value] {
    value
        .get(field)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}
