//! Places of a request in a prompt: `{{body.pull_request.title}}`, `{{headers.x-github-event}}`.

use axum::http::HeaderMap;
use serde_json::Value;

/// A text with places of a request.
#[derive(Debug)]
pub(super) struct Template(Vec<Piece>);

#[derive(Debug)]
enum Piece {
    Text(String),
    Location(String),
}

/// What a request has.
pub(super) struct Values<'a> {
    pub(super) headers: &'a HeaderMap,
    pub(super) body: &'a Value,
}

impl Template {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("{{") {
            let Some((location, after)) = after.split_once("}}") else {
                return Err("`{{` without `}}`".to_owned());
            };
            let location = location.trim();
            check_location(location)?;
            pieces.push(Piece::Text(before.to_owned()));
            pieces.push(Piece::Location(location.to_owned()));
            rest = after;
        }
        pieces.push(Piece::Text(rest.to_owned()));
        Ok(Self(pieces))
    }

    /// Puts the values into the text. What they have is not read as a template.
    pub(super) fn fill(&self, values: &Values<'_>) -> Result<String, String> {
        let mut text = String::new();
        for piece in &self.0 {
            match piece {
                Piece::Text(own) => text.push_str(own),
                Piece::Location(location) => match values.get(location) {
                    Some(value) => text.push_str(&value),
                    None => return Err(format!("the request has no `{location}`")),
                },
            }
        }
        Ok(text)
    }
}

/// Checks the name of a place.
pub(super) fn check_location(location: &str) -> Result<(), String> {
    let (root, rest) = location.split_once('.').unwrap_or((location, ""));
    match (root, rest) {
        ("body", _) => Ok(()),
        ("headers", name) if !name.is_empty() => Ok(()),
        _ => Err(format!(
            "unknown place {location:?}: write `body`, `body.FIELD.FIELD` or `headers.NAME`"
        )),
    }
}

impl Values<'_> {
    /// Returns the text of a place.
    pub(super) fn get(&self, location: &str) -> Option<String> {
        if let Some(name) = location.strip_prefix("headers.") {
            let value = self.headers.get(name)?.to_str().ok()?;
            return Some(value.to_owned());
        }
        let mut value = self.body;
        for field in location.split('.').skip(1) {
            value = match value {
                Value::Array(items) => items.get(field.parse::<usize>().ok()?)?,
                value => value.get(field)?,
            };
        }
        Some(text(value))
    }
}

/// Returns a value as text: a string as it is, anything else as JSON.
pub(super) fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}
