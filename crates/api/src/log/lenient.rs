//! Entries with JSON of an agent's CLI that is valid but that values cannot hold.
//!
//! Such an entry has it as it was printed: half of a character, a number out of range, or deep nesting.

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use serde_json::{Map, Value};
use teamster_core::provider::surrogates;

/// Levels of nesting up to which values are taken apart: half of what the parser takes.
const DEPTH: usize = 64;

/// Returns the value of this JSON, in which half of a character is U+FFFD, and other parts that no value can hold are their
/// text; `None` if it is no JSON.
pub(super) fn value(json: &[u8]) -> Option<Value> {
    let json = std::str::from_utf8(json).ok()?;
    let repaired = surrogates::without_lone_escapes(json);
    let json = repaired.as_deref().unwrap_or(json);
    Some(part(serde_json::from_str(json).ok()?, DEPTH))
}

fn part(raw: &RawValue, depth: usize) -> Value {
    let json = raw.get();
    if let Ok(value) = serde_json::from_str(json) {
        return value;
    }
    let parts = match json.as_bytes().first() {
        Some(b'{') if depth > 0 => {
            serde_json::from_str::<BTreeMap<String, &RawValue>>(json).map(|fields| {
                let fields = fields.into_iter();
                let fields = fields.map(|(name, field)| (name, part(field, depth - 1)));
                Value::Object(fields.collect::<Map<_, _>>())
            })
        }
        Some(b'[') if depth > 0 => serde_json::from_str::<Vec<&RawValue>>(json).map(|items| {
            items
                .into_iter()
                .map(|item| part(item, depth - 1))
                .collect()
        }),
        _ => return json.into(),
    };
    parts.unwrap_or_else(|_| json.into())
}
