//! Entries with JSON of an agent's CLI that is valid but that values cannot hold.
//!
//! Such an entry, which another program wrote or an earlier version, has it as it was printed: half of a character, a
//! number out of range, or deep nesting. In our own entries it is replaced (`RawJson::new`).

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::provider::surrogates;

/// Levels of nesting up to which values are taken apart: half of what the parser takes.
const DEPTH: usize = 64;

/// Returns the value of this JSON, in which half of a character is U+FFFD, and other parts that no value can hold, such as
/// an object with two fields of one name, are their text; `None` if it is no JSON.
pub(super) fn value(json: &[u8]) -> Option<Value> {
    let json = std::str::from_utf8(json).ok()?;
    let repaired = surrogates::without_lone_escapes(json);
    let json = repaired.as_deref().unwrap_or(json);
    Some(part(serde_json::from_str(json).ok()?, DEPTH))
}

/// Values are taken apart always: half of a character may have made two names equal, of which a value would have one.
fn part(raw: &RawValue, depth: usize) -> Value {
    let json = raw.get();
    let parts = match json.as_bytes().first() {
        Some(b'{') if depth > 0 => serde_json::from_str(json).map(|Fields(fields)| {
            let count = fields.len();
            let fields = fields.into_iter();
            let fields = fields.map(|(name, field)| (name, part(field, depth - 1)));
            let fields = fields.collect::<Map<_, _>>();
            if fields.len() == count {
                Value::Object(fields)
            } else {
                json.into()
            }
        }),
        Some(b'[') if depth > 0 => serde_json::from_str::<Vec<&RawValue>>(json).map(|items| {
            items
                .into_iter()
                .map(|item| part(item, depth - 1))
                .collect()
        }),
        _ => serde_json::from_str(json),
    };
    parts.unwrap_or_else(|_| json.into())
}

/// The fields of an object, also those of one name.
struct Fields<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(FieldsVisitor)
    }
}

struct FieldsVisitor;

impl<'de> Visitor<'de> for FieldsVisitor {
    type Value = Fields<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut fields = Vec::new();
        while let Some(field) = map.next_entry()? {
            fields.push(field);
        }
        Ok(Fields(fields))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    // Made by hand.
    #[test]
    fn fields_that_differ_by_half_a_character_are_all_kept() {
        let line = br#"{"a":{"\ud800":1,"\udc00":2},"b":["\ud800",1e999,{"c":null}]}"#;
        let value = value(line).unwrap();
        let text = value["a"].as_str().unwrap();
        assert!(text.contains(":1,") && text.contains(":2}"), "{text}");
        assert_eq!(value["b"], json!(["\u{fffd}", "1e999", {"c": null}]));
    }

    #[test]
    fn values_beyond_the_limit_of_levels_are_their_text() {
        // Made by hand. The value in the middle is one level of its own.
        for (open, close) in [(r#"{"a":"#, "}"), ("[", "]")] {
            for (inner, apart) in [
                (r#"{"n":1e999}"#, json!({"n": "1e999"})),
                ("[1e999]", json!(["1e999"])),
            ] {
                for (around, taken_apart) in [(DEPTH - 1, true), (DEPTH, false), (DEPTH + 1, false)]
                {
                    let line = open.repeat(around) + inner + &close.repeat(around);
                    let mut found = value(line.as_bytes()).unwrap();
                    for _ in 0..around.min(DEPTH) {
                        found = match found {
                            Value::Object(mut fields) => fields["a"].take(),
                            Value::Array(mut items) => items[0].take(),
                            text => panic!("{around} {text}"),
                        };
                    }
                    let text = match around {
                        DEPTH => inner.to_owned(),
                        _ => format!("{open}{inner}{close}"),
                    };
                    let expected = if taken_apart {
                        apart.clone()
                    } else {
                        text.into()
                    };
                    assert_eq!(found, expected, "{around} levels of {open}");
                }
            }
        }
    }

    #[test]
    fn an_entry_with_a_field_twice_is_none() {
        let line = br#"{"a":1,"a":2}"#;
        assert!(value(line).unwrap().is_string());
    }
}
