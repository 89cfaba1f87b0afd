//! Events that only a newer version knows.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

/// An event that only a newer version knows. Its JSON object is serialized again unchanged.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(transparent)]
pub struct NewerEvent(Box<Map<String, Value>>);

impl NewerEvent {
    /// Deserializes an event whose type is not in `known`.
    ///
    /// # Errors
    ///
    /// Fails if it is not an object, or if its `type` is missing, not a string or in `known`.
    pub fn unless_known<'de, D: Deserializer<'de>>(
        deserializer: D,
        known: &[&str],
    ) -> Result<Self, D::Error> {
        let event = Self(Box::new(Map::deserialize(deserializer)?));
        match event.0.get("type").and_then(Value::as_str) {
            None => Err(D::Error::missing_field("type")),
            Some(name) if known.contains(&name) => Err(D::Error::custom(format_args!(
                "not an event of type {name}"
            ))),
            Some(_) => Ok(event),
        }
    }

    /// Wraps an event whose type this version does not know.
    pub(crate) fn of(fields: Map<String, Value>) -> Self {
        Self(Box::new(fields))
    }

    /// Returns the `type`.
    pub fn type_name(&self) -> &str {
        (self.0.get("type").and_then(Value::as_str)).unwrap_or_default()
    }

    /// Returns all fields, including `type`.
    pub fn fields(&self) -> &Map<String, Value> {
        &self.0
    }

    /// Returns the event without these fields.
    #[must_use]
    pub fn without(mut self, fields: &[&str]) -> Self {
        self.0.retain(|name, _| !fields.contains(&name.as_str()));
        self
    }
}
