//! Unchanged JSON text.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// One JSON value, kept as the text that the CLI printed.
///
/// Serializes as that value, not as a string. Two values are equal if their text is equal.
#[derive(Clone)]
pub struct RawJson(Box<RawValue>);

impl RawJson {
    /// Creates a value from text.
    ///
    /// Lone surrogate escapes (`"\ud83d"`), which no Rust string can hold, are accepted: the text is not unescaped.
    ///
    /// # Errors
    ///
    /// Fails if `text` is not one JSON value.
    pub fn new(text: String) -> Result<Self, serde_json::Error> {
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

    /// Returns the value `null`.
    pub(crate) fn null() -> Self {
        Self(RawValue::NULL.to_owned())
    }

    /// Returns the text, as printed.
    pub fn get(&self) -> &str {
        self.0.get()
    }
}

impl fmt::Debug for RawJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.get())
    }
}

impl PartialEq for RawJson {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
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
        let value = serde_json::Value::deserialize(deserializer)?;
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
