//! Shared test helpers.

use serde_json::{Value, json};
use teamster_core::provider::ConfigFormat;
use teamster_mcp_config::edit::{self, EditError};

pub(crate) const JSON_KEY: &str = "mcpServers";
pub(crate) const TOML_KEY: &str = "mcp_servers";

/// Returns one entry of ours.
pub(crate) fn docs() -> Vec<(String, Value)> {
    vec![(
        "docs".to_owned(),
        json!({"command": "docs-mcp", "env": {"KEY": "$TEAMSTER_KEY"}}),
    )]
}

/// Removes entries and, with `table_too`, a table that is then empty.
pub(crate) fn remove(
    text: &str,
    format: ConfigFormat,
    key: &str,
    entries: &[(String, Value)],
    table_too: bool,
) -> Result<String, EditError> {
    if table_too {
        edit::remove_with_table(text, format, key, entries)
    } else {
        edit::remove(text, format, key, entries)
    }
}

/// Returns the part of `before` that is neither at the beginning nor at the end of `after`.
pub(crate) fn changed<'a>(before: &'a str, after: &str) -> &'a str {
    let same = |(a, b): &(char, char)| a == b;
    let start: usize = before
        .chars()
        .zip(after.chars())
        .take_while(same)
        .map(|(char, _)| char.len_utf8())
        .sum();
    let (left, right) = (&before[start..], &after[start..]);
    let end: usize = left
        .chars()
        .rev()
        .zip(right.chars().rev())
        .take_while(same)
        .map(|(char, _)| char.len_utf8())
        .sum();
    &left[..left.len() - end]
}

/// Parses JSON with comments and trailing commas, without the parser that is used for the edit. It removes syntax that
/// is not strict JSON, and leaves the rest to `serde_json`.
pub(crate) fn read_json(text: &str) -> Result<Value, serde_json::Error> {
    let text = without_comments(text.strip_prefix('\u{feff}').unwrap_or(text));
    if text.trim().is_empty() {
        return Ok(json!({}));
    }
    let mut strict = String::new();
    let mut chars = text.char_indices();
    while let Some((at, char)) = chars.next() {
        strict.push(char);
        match char {
            '"' => {
                while let Some((_, char)) = chars.next() {
                    strict.push(char);
                    match char {
                        '\\' => strict.extend(chars.next().map(|(_, char)| char)),
                        '"' => break,
                        _ => {}
                    }
                }
            }
            ',' if text[at + 1..].trim_start().starts_with(['}', ']']) => {
                strict.pop();
            }
            _ => {}
        }
    }
    serde_json::from_str(&strict)
}

/// Replaces each comment by a space.
pub(crate) fn without_comments(text: &str) -> String {
    let mut left = String::new();
    let mut rest = text;
    while let Some(char) = rest.chars().next() {
        if rest.starts_with("//") {
            rest = &rest[rest.find(['\n', '\r']).unwrap_or(rest.len())..];
            left.push(' ');
        } else if rest.starts_with("/*") {
            rest = rest[2..].find("*/").map_or("", |end| &rest[end + 4..]);
            left.push(' ');
        } else if char == '"' {
            let mut escaped = false;
            let inner = rest[1..].find(|char| {
                let ends = char == '"' && !escaped;
                escaped = char == '\\' && !escaped;
                ends
            });
            let end = inner.map_or(rest.len(), |inner| inner + 2);
            left.push_str(&rest[..end]);
            rest = &rest[end..];
        } else {
            left.push(char);
            rest = &rest[char.len_utf8()..];
        }
    }
    left
}
