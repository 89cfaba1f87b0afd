//! Typed access to the members of an object.

use std::collections::BTreeMap;

use jsonc_parser::ast::{Object, Value};

/// The unread members of one server. Errors begin with the field's name and have the kind of its value, but not the
/// value itself.
pub(super) struct Fields<'a>(Vec<(String, Value<'a>)>);

/// A member's value, and the name under which it was found.
type Found<T> = Result<Option<(&'static str, T)>, String>;

impl<'a> Fields<'a> {
    pub(super) fn new(object: Object<'a>) -> Result<Self, String> {
        let mut members: Vec<(String, Value<'a>)> = Vec::new();
        for property in object.properties {
            let name = property.name.into_string();
            if members.iter().any(|(other, _)| *other == name) {
                return Err(format!("{}: duplicate field", super::shown(&name)));
            }
            members.push((name, property.value));
        }
        // Programs that write settings have null for a field that is not set.
        members.retain(|(_, value)| !matches!(value, Value::NullKeyword(_)));
        Ok(Self(members))
    }

    /// Returns the names of the unread members.
    pub(super) fn left(self) -> impl Iterator<Item = String> {
        self.0.into_iter().map(|(name, _)| name)
    }

    /// Takes the member with one of these names. Two of them are an error.
    fn take(&mut self, names: &[&'static str]) -> Found<Value<'a>> {
        let mut found = None;
        for name in names {
            let Some(index) = self.0.iter().position(|(other, _)| other == name) else {
                continue;
            };
            if let Some((other, _)) = found {
                return Err(format!(
                    "{name}: it means the same as {other}; leave one out"
                ));
            }
            found = Some((*name, self.0.remove(index).1));
        }
        Ok(found)
    }

    /// Takes a member and converts it.
    fn read<T>(
        &mut self,
        names: &[&'static str],
        read: impl FnOnce(&str, Value<'a>) -> Result<T, String>,
    ) -> Found<T> {
        let Some((name, value)) = self.take(names)? else {
            return Ok(None);
        };
        Ok(Some((name, read(name, value)?)))
    }

    pub(super) fn text(&mut self, names: &[&'static str]) -> Found<String> {
        self.read(names, text)
    }

    pub(super) fn texts(&mut self, names: &[&'static str]) -> Found<Vec<String>> {
        self.read(names, texts)
    }

    /// Takes a list. A string is a list of one.
    pub(super) fn text_or_texts(&mut self, names: &[&'static str]) -> Found<Vec<String>> {
        self.read(names, |name, value| match value {
            Value::StringLit(text) => Ok(vec![text.value.into_owned()]),
            Value::Array(_) => texts(name, value),
            other => Err(wrong(name, "a string or a list of strings", &other)),
        })
    }

    pub(super) fn texts_by_name(
        &mut self,
        names: &[&'static str],
    ) -> Found<BTreeMap<String, String>> {
        self.read(names, |name, value| {
            let object = match value {
                Value::Object(object) => object,
                other => return Err(wrong(name, "an object with strings", &other)),
            };
            let mut map = BTreeMap::new();
            for member in object.properties {
                let key = member.name.into_string();
                let path = format!("{name}.{}", super::shown(&key));
                let value = text(&path, member.value)?;
                if map.insert(key, value).is_some() {
                    return Err(format!("{path}: duplicate field"));
                }
            }
            Ok(map)
        })
    }

    pub(super) fn yes_or_no(&mut self, names: &[&'static str]) -> Found<bool> {
        self.read(names, |name, value| match value {
            Value::BooleanLit(it) => Ok(it.value),
            other => Err(wrong(name, "true or false", &other)),
        })
    }

    pub(super) fn number(&mut self, names: &[&'static str]) -> Found<f64> {
        self.read(names, |name, value| match &value {
            Value::NumberLit(number) => number
                .value
                .parse()
                .map_err(|_| format!("{name}: this number cannot be read")),
            other => Err(wrong(name, "a number", other)),
        })
    }
}

fn text(path: &str, value: Value<'_>) -> Result<String, String> {
    match value {
        Value::StringLit(text) => Ok(text.value.into_owned()),
        other => Err(wrong(path, "a string", &other)),
    }
}

fn texts(path: &str, value: Value<'_>) -> Result<Vec<String>, String> {
    let list = match value {
        Value::Array(list) => list,
        other => return Err(wrong(path, "a list of strings", &other)),
    };
    let elements = list.elements.into_iter().enumerate();
    elements
        .map(|(index, value)| text(&format!("{path}[{index}]"), value))
        .collect()
}

fn wrong(path: &str, expected: &str, value: &Value<'_>) -> String {
    format!("{path}: expected {expected}, found {}", kind(value))
}

/// Returns the kind of a value, for a message that must not contain the value.
pub(super) fn kind(value: &Value<'_>) -> &'static str {
    match value {
        Value::StringLit(_) => "a string",
        Value::NumberLit(_) => "a number",
        Value::BooleanLit(_) => "true or false",
        Value::Object(_) => "an object",
        Value::Array(_) => "a list",
        Value::NullKeyword(_) => "null",
    }
}
