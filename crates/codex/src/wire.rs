//! Lazy access to lines of `codex exec --json` and `codex app-server`.
//!
//! A line is a flat object around one flat item. Both are lists of fields that borrow from the line and are parsed on
//! access. A malformed field never loses the line: the CLI prints the key `id` twice in `web_search` items, which a
//! derived struct refuses. A field of an unexpected type counts as missing.
//!
//! Both commands print the same items, one with names such as `exit_code`, the other with names such as `exitCode`.
//! Callers use the first form, which matches both.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::{RawValue, Value};
use teamster_core::provider::json_line;

/// A JSON object whose fields are parsed on access. The first of two fields with the same name counts.
#[derive(Debug)]
pub(crate) struct Object<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

/// A string, borrowed if it has no escapes.
#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'a> Object<'a> {
    /// Parses an object, or returns `None`.
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// Returns the raw JSON of a field.
    pub(crate) fn raw(&self, name: &str) -> Option<&'a str> {
        let (_, raw) = self.0.iter().find(|(found, _)| is_named(found, name))?;
        Some(raw.get())
    }

    /// Returns a field that is a string.
    pub(crate) fn text(&self, name: &str) -> Option<Cow<'a, str>> {
        let raw = self.raw(name)?;
        if let Ok(text) = serde_json::from_str::<Text<'a>>(raw) {
            return Some(text.0);
        }
        let repaired = json_line::readable(raw)?;
        serde_json::from_str(&repaired).ok().map(Cow::Owned)
    }

    /// Returns a field that is an object.
    pub(crate) fn object(&self, name: &str) -> Option<Self> {
        Self::parse(self.raw(name)?)
    }

    /// Returns the objects in a field that is a list. Other items are left out.
    pub(crate) fn objects(&self, name: &str) -> Vec<Self> {
        let list: Vec<&'a RawValue> = self
            .raw(name)
            .and_then(|raw| serde_json::from_str(raw).ok())
            .unwrap_or_default();
        list.into_iter()
            .filter_map(|raw| Self::parse(raw.get()))
            .collect()
    }

    /// Parses a field of any other type. `null` counts as missing.
    pub(crate) fn get<T: serde::de::DeserializeOwned>(&self, name: &str) -> Option<T> {
        let raw = self.raw(name)?;
        let value: Option<T> = match serde_json::from_str(raw) {
            Ok(value) => value,
            Err(_) => serde_json::from_str(&json_line::readable(raw)?).ok()?,
        };
        value
    }

    /// Returns a field of any type without loss: a value nested too deeply becomes its text.
    pub(crate) fn value(&self, name: &str) -> Option<Value> {
        let raw = self.raw(name).filter(|raw| *raw != "null")?;
        Some(value_of(raw))
    }

    /// Returns the items of a field that is a list, each as [`value`](Self::value) returns it.
    pub(crate) fn values(&self, name: &str) -> Option<Vec<Value>> {
        let list: Vec<&'a RawValue> = serde_json::from_str(self.raw(name)?).ok()?;
        Some(list.into_iter().map(|raw| value_of(raw.get())).collect())
    }

    /// Returns an object of these fields, as far as they are present.
    pub(crate) fn fields(&self, names: &[&str]) -> Value {
        let field = |name: &&str| Some(((*name).to_owned(), self.value(name)?));
        Value::Object(names.iter().filter_map(field).collect())
    }

    /// Returns the names and values of all fields.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&str, &'a str)> {
        self.0.iter().map(|(name, raw)| (&**name, raw.get()))
    }
}

/// Returns whether `found` is this name or its camelCase form.
fn is_named(found: &str, name: &str) -> bool {
    found == name || (name.contains('_') && with_underscores(found) == name)
}

/// Converts a name such as `commandExecution` to `command_execution`.
pub(crate) fn with_underscores(name: &str) -> Cow<'_, str> {
    if !name.bytes().any(|b| b.is_ascii_uppercase()) {
        return name.into();
    }
    let mut changed = String::with_capacity(name.len() + 4);
    for c in name.chars() {
        if c.is_ascii_uppercase() {
            changed.push('_');
        }
        changed.push(c.to_ascii_lowercase());
    }
    changed.into()
}

fn value_of(raw: &str) -> Value {
    let repaired = || serde_json::from_str(&json_line::readable(raw)?).ok();
    serde_json::from_str(raw)
        .ok()
        .or_else(repaired)
        .unwrap_or_else(|| Value::String(raw.to_owned()))
}

impl<'de: 'a, 'a> Deserialize<'de> for Object<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ObjectVisitor;

        impl<'de> Visitor<'de> for ObjectVisitor {
            type Value = Object<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object<'de>, A::Error> {
                let mut fields = Vec::with_capacity(8);
                while let Some((Text(name), value)) = map.next_entry()? {
                    fields.push((name, value));
                }
                Ok(Object(fields))
            }
        }

        deserializer.deserialize_map(ObjectVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_key_that_is_there_twice_the_first_counts() {
        let line = r#"{"id":"item_0","type":"web_search","id":"ws_0002"}"#;
        let object = Object::parse(line).unwrap();
        assert_eq!(object.text("id").as_deref(), Some("item_0"));
        assert_eq!(object.text("type").as_deref(), Some("web_search"));
    }

    #[test]
    fn a_name_is_found_in_both_of_its_forms() {
        let object = Object::parse(r#"{"exitCode":3,"a":1,"agentsStates":{}}"#).unwrap();
        assert_eq!(object.get::<i64>("exit_code"), Some(3));
        assert!(object.object("agents_states").is_some());
        assert_eq!(object.get::<i64>("exit"), None);
        assert_eq!(with_underscores("mcpToolCall"), "mcp_tool_call");
        assert_eq!(with_underscores("mcp_tool_call"), "mcp_tool_call");
    }

    #[test]
    fn an_odd_field_is_no_field_and_loses_no_other() {
        let line = r#"{"a":{"b":[1,{"c":"x"}]},"n":null,"t":"\ud83d!","i":-1,"l":[{"x":1},2,{}]}"#;
        let object = Object::parse(line).unwrap();
        assert_eq!(object.text("a"), None);
        assert_eq!(object.text("t").as_deref(), Some("\u{FFFD}!"));
        assert_eq!(object.get::<u64>("i"), None);
        assert_eq!(object.get::<i64>("i"), Some(-1));
        assert_eq!(object.get::<Value>("n"), None);
        assert_eq!(object.objects("l").len(), 2);
        assert!(object.objects("a").is_empty());
        assert!(object.object("a").is_some() && object.object("t").is_none());
        assert!(Object::parse("{\"a\":1} x").is_none());
    }
}
