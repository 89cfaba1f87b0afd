//! Unchanged JSON text.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::readable_json::readable;

/// Levels of arrays and objects up to which a value is passed on as it is.
///
/// Readers of our output have limits: `serde_json`, with which we read it back, 128 levels, `jq` 1.6 256, Python about
/// 1000. The value is a few levels deep in an entry of a log, and that in a response of the HTTP API.
const LEVELS: usize = 100;

/// One JSON value, kept as the text that the CLI printed.
///
/// Serializes as that value, not as a string. What readers of our output could not read is replaced
/// ([`new`](Self::new)), so all that has such a value can be read back. Two values are equal if their text is, or what
/// it stands for: space, the form of a number and a field that another of its name follows make no difference.
#[derive(Clone)]
pub struct RawJson(Box<RawValue>);

impl RawJson {
    /// Creates a value from text.
    ///
    /// In it, a lone surrogate escape (`"\ud83d"`), which no Rust string can hold, becomes U+FFFD, and a number beyond
    /// the range of `f64` a string of its text. A value that is nested more than 100 levels deep becomes a string of its
    /// text.
    ///
    /// # Errors
    ///
    /// Fails if `text` is not one JSON value.
    pub fn new(text: String) -> Result<Self, serde_json::Error> {
        let value = RawValue::from_string(text)?;
        let text = if levels(value.get()) > LEVELS {
            Value::from(value.get()).to_string()
        } else if let Some(text) = readable(value.get()) {
            text
        } else {
            return Ok(Self(value));
        };
        RawValue::from_string(text).map(Self)
    }

    /// Creates a value from bytes. Invalid UTF-8 is replaced by U+FFFD first.
    ///
    /// # Errors
    ///
    /// Fails if the text is not one JSON value.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, serde_json::Error> {
        Self::new(String::from_utf8_lossy(bytes).into_owned())
    }

    /// Returns whether the value is nested too deeply for a decoder to parse it.
    pub(crate) fn is_beyond_decoders(bytes: &[u8]) -> bool {
        /// Limit of `serde_json`.
        const PARSED: usize = 127;
        levels(&String::from_utf8_lossy(bytes)) > PARSED
    }

    /// Returns the value `null`.
    pub(crate) fn null() -> Self {
        Self(RawValue::NULL.to_owned())
    }

    /// Returns the text, as printed.
    pub fn get(&self) -> &str {
        self.0.get()
    }
}

/// Replaces a value that is nested too deeply for readers of our output by a string of its text.
pub(crate) fn make_readable(value: &mut Value) {
    fn fits(value: &Value, left: usize) -> bool {
        match value {
            Value::Array(items) => left > 0 && items.iter().all(|item| fits(item, left - 1)),
            Value::Object(fields) => left > 0 && fields.values().all(|field| fits(field, left - 1)),
            _ => true,
        }
    }
    if !fits(value, LEVELS) {
        *value = Value::String(value.to_string());
    }
}

/// Returns the number of levels of arrays and objects in valid JSON.
fn levels(json: &str) -> usize {
    let (mut now, mut most) = (0_usize, 0);
    let mut bytes = json.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'{' | b'[' => {
                now += 1;
                most = most.max(now);
            }
            b'}' | b']' => now = now.saturating_sub(1),
            b'"' => loop {
                match bytes.next() {
                    Some(b'\\') => {
                        bytes.next();
                    }
                    Some(b'"') | None => break,
                    Some(_) => {}
                }
            },
            _ => {}
        }
    }
    most
}

impl fmt::Debug for RawJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.get())
    }
}

impl PartialEq for RawJson {
    fn eq(&self, other: &Self) -> bool {
        let value = |it: &Self| serde_json::from_str::<Value>(it.get()).ok();
        self.get() == other.get() || value(self).is_some_and(|it| value(other) == Some(it))
    }
}

impl Serialize for RawJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for RawJson {
    // Through `Value`: inside an internally tagged enum, serde passes buffered content, which `RawValue` cannot
    // deserialize.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        Self::new(value.to_string()).map_err(serde::de::Error::custom)
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for RawJson {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Native".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "description": "The JSON value that the CLI printed, as it came." })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nested(levels: usize) -> String {
        format!("{}1{}", r#"{"a":"#.repeat(levels), "}".repeat(levels))
    }

    #[test]
    fn too_deeply_nested_json_becomes_a_string() {
        for (count, is_text) in [
            (1, false),
            (LEVELS, false),
            (LEVELS + 1, true),
            (9000, true),
        ] {
            let json = nested(count);
            assert_eq!(levels(&json), count);
            let value = RawJson::new(json.clone()).unwrap();
            let text: Result<String, _> = serde_json::from_str(value.get());
            assert_eq!(text.ok(), is_text.then_some(json.clone()), "{count}");
            assert_eq!(value.get() == json, !is_text, "{count}");
        }
        let (mut shallow, mut deep) = (Value::Null, Value::Null);
        for _ in 0..LEVELS {
            shallow = Value::Array(vec![shallow]);
            deep = Value::Array(vec![deep]);
        }
        deep = Value::Array(vec![deep]);
        let text = deep.to_string();
        make_readable(&mut shallow);
        make_readable(&mut deep);
        assert!(shallow.is_array());
        assert_eq!(deep, Value::String(text));
    }

    #[test]
    fn no_decoder_can_read_more_levels_than_its_parser() {
        for (count, fits) in [(127, true), (128, false)] {
            let json = nested(count);
            assert_eq!(
                serde_json::from_str::<Value>(&json).is_ok(),
                fits,
                "{count}"
            );
            assert_eq!(
                RawJson::is_beyond_decoders(json.as_bytes()),
                !fits,
                "{count}"
            );
        }
    }

    // Made by hand: valid JSON that differs from what a reader makes of it.
    #[test]
    fn every_value_is_read_back_as_it_was() {
        for (json, text) in [
            (r#"{"a":  1}"#, None),
            (r#"{"a":1,"a":2}"#, None),
            (
                "[-0,1.50,1E2,12345678901234567890123,0.1234567890123456789]",
                None,
            ),
            (r#""\ud83d\ude00""#, None),
            (r#"["\ud83d",-1e999]"#, Some(r#"["\ufffd","-1e999"]"#)),
        ] {
            let value = RawJson::new(json.to_owned()).unwrap();
            assert_eq!(value.get(), text.unwrap_or(json));
            let written = serde_json::to_string(&value).unwrap();
            assert_eq!(serde_json::from_str::<RawJson>(&written).unwrap(), value);
        }
        let value = |json: &str| RawJson::new(json.to_owned()).unwrap();
        assert_ne!(value("[1]"), value("[2]"));
        assert_ne!(value("1"), value("\"1\""));
    }

    #[test]
    fn brackets_in_strings_are_no_levels() {
        assert_eq!(levels(r#"{"[[[\"[{\\":["]",{}]}"#), 3);
        assert_eq!(levels("1"), 0);
    }
}
