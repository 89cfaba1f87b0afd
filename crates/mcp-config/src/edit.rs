//! Insertion and removal of entries in the CLIs' own configuration files, without changing other bytes.
//!
//! A parser finds the structure and positions. The change is then spliced into the text or cut out of it. The result
//! is parsed again and compared before it is returned, so a bug here causes an error, never a damaged file.

mod json;
mod node;
mod splice;
#[cfg(test)]
mod tests;
mod toml;

use jsonc_parser::ParseOptions;
use serde_json::Value;
use teamster_core::provider::ConfigFormat;

use node::Node;
use splice::line;

/// JSON with comments and trailing commas.
pub(crate) const JSON_WITH_COMMENTS: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// Error of changing a file. Messages begin with the position in it, if there is one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct EditError(pub(crate) String);

/// Handling of a user's server with the same name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Clash {
    /// Fail with an error.
    Refuse,
    /// Replace the user's entry.
    Replace,
}

/// Returns the names in the table `key` of a file's text. An empty or missing file or table has none.
///
/// # Errors
///
/// Fails if the text cannot be parsed, if `key` is not a table, or if a name is in it twice.
///
/// ```
/// use teamster_core::provider::ConfigFormat;
/// use teamster_mcp_config::edit::names;
///
/// let text = "[mcp_servers.docs]\nurl = \"https://mcp.example.com\"\n";
/// assert_eq!(names(text, ConfigFormat::Toml, "mcp_servers").unwrap(), ["docs"]);
/// ```
pub fn names(text: &str, format: ConfigFormat, key: &str) -> Result<Vec<String>, EditError> {
    let (_, body) = split_bom(text);
    let tree = read(body, format, key)?;
    let entries = table(&tree, body, format, key)?;
    refuse_twice(entries, None, body, format, key)?;
    Ok(entries.iter().map(|(name, _)| name.clone()).collect())
}

/// Returns the text with these entries in the table `key`.
///
/// A missing table or file content is created. Each entry is an object. All bytes of the text are kept, except those
/// of a replaced entry.
///
/// # Errors
///
/// Fails if the text cannot be parsed, if `key` is not a table, if an entry is invalid, or with [`Clash::Refuse`] if a
/// name is taken.
///
/// ```
/// use serde_json::json;
/// use teamster_core::provider::ConfigFormat;
/// use teamster_mcp_config::edit::{Clash, merge};
///
/// let entry = ("docs".to_owned(), json!({"command": "docs-mcp", "args": ["--quiet"]}));
/// let text = merge("model = \"a\" # mine\n", ConfigFormat::Toml, "mcp_servers", &[entry], Clash::Refuse);
/// assert_eq!(
///     text.unwrap(),
///     "model = \"a\" # mine\n\n[mcp_servers.docs]\ncommand = \"docs-mcp\"\nargs = [\"--quiet\"]\n"
/// );
/// ```
pub fn merge(
    text: &str,
    format: ConfigFormat,
    key: &str,
    entries: &[(String, Value)],
    clash: Clash,
) -> Result<String, EditError> {
    check(entries)?;
    let (bom, body) = split_bom(text);
    let before = read(body, format, key)?;
    let there = table(&before, body, format, key)?;
    refuse_twice(there, None, body, format, key)?;
    let taken: Vec<&str> = there
        .iter()
        .map(|(name, _)| name.as_str())
        .filter(|name| entries.iter().any(|(ours, _)| ours == name))
        .collect();
    if clash == Clash::Refuse && !taken.is_empty() {
        let taken: Vec<String> = taken
            .iter()
            .map(|name| match offsets(body, format, key, Some(name)).last() {
                Some(at) => format!("`{name}` (line {})", line(body, *at)),
                None => format!("`{name}`"),
            })
            .collect();
        return Err(EditError(format!(
            "`{key}` already has {}",
            taken.join(", ")
        )));
    }
    if entries.is_empty() {
        return Ok(text.to_owned());
    }
    let result = match format {
        ConfigFormat::Json => json::merge(body, key, entries)?,
        ConfigFormat::Toml => toml::merge(body, key, entries, &taken)?,
        _ => return Err(unknown_format()),
    };

    verify_merged(&before, &result, format, key, entries)?;
    Ok(format!("{bom}{result}"))
}

/// Returns the text without these entries.
///
/// An entry whose value differs from the given one was changed by another program and is kept. Added keys inside an
/// entry do not count as a change.
///
/// Removing the entries that [`merge`] has added restores the text byte for byte. If [`merge`] has created the table,
/// that takes [`remove_with_table`].
///
/// # Errors
///
/// Fails if the text cannot be parsed, or if one of the names is in the table twice.
pub fn remove(
    text: &str,
    format: ConfigFormat,
    key: &str,
    entries: &[(String, Value)],
) -> Result<String, EditError> {
    remove_entries(text, format, key, entries, false)
}

/// Returns the text without these entries, as [`remove`] does, and without the table if nothing remains in it, not even
/// a comment.
///
/// # Errors
///
/// As [`remove`].
pub fn remove_with_table(
    text: &str,
    format: ConfigFormat,
    key: &str,
    entries: &[(String, Value)],
) -> Result<String, EditError> {
    remove_entries(text, format, key, entries, true)
}

fn remove_entries(
    text: &str,
    format: ConfigFormat,
    key: &str,
    entries: &[(String, Value)],
    table_too: bool,
) -> Result<String, EditError> {
    let (bom, body) = split_bom(text);
    let before = read(body, format, key)?;
    let Ok(there) = table(&before, body, format, key) else {
        // The file has no entry of ours any more.
        return Ok(text.to_owned());
    };
    refuse_twice(there, Some(entries), body, format, key)?;
    let gone: Vec<&str> = there
        .iter()
        .filter(|(name, node)| {
            entries
                .iter()
                .any(|(ours, value)| ours == name && node.is_still(value))
        })
        .map(|(name, _)| name.as_str())
        .collect();
    let result = match format {
        ConfigFormat::Json => json::remove(body, key, &gone, entries, table_too)?,
        ConfigFormat::Toml => toml::remove(body, key, &gone, table_too)?,
        _ => return Err(unknown_format()),
    };

    verify_removed(&before, &result, format, key, &gone)?;
    Ok(format!("{bom}{result}"))
}

/// Parses the result and checks that it has the entries, and all other content unchanged.
fn verify_merged(
    before: &Node,
    result: &str,
    format: ConfigFormat,
    key: &str,
    entries: &[(String, Value)],
) -> Result<(), EditError> {
    let after = read(result, format, key).map_err(|error| fault(&error.0))?;
    let ours: Vec<&str> = entries.iter().map(|(name, _)| name.as_str()).collect();
    if before.without(key, &ours) != after.without(key, &ours) {
        return Err(fault("something else would change"));
    }
    for (name, value) in entries {
        let found: Vec<&Node> = after.entries(key, name).collect();
        if found.len() != 1 || !found[0].same_as(value) {
            return Err(fault(&format!("`{name}` cannot be written unchanged")));
        }
    }
    Ok(())
}

/// Parses the result and checks that it has all previous content except these entries.
fn verify_removed(
    before: &Node,
    result: &str,
    format: ConfigFormat,
    key: &str,
    gone: &[&str],
) -> Result<(), EditError> {
    let after = read(result, format, key).map_err(|error| fault(&error.0))?;
    if before.without(key, gone) != after.without(key, &[]) {
        return Err(fault("something else would change"));
    }
    Ok(())
}

/// Checks names and values of entries.
fn check(entries: &[(String, Value)]) -> Result<(), EditError> {
    for (i, (name, value)) in entries.iter().enumerate() {
        if name.is_empty() || name.chars().any(char::is_control) {
            return Err(EditError(format!(
                "{name:?} cannot be a name: it is empty or has control characters"
            )));
        }
        // In a JavaScript program this is not a key, but sets the prototype of the object.
        if name == "__proto__" {
            return Err(EditError(format!("`{name}` cannot be a name")));
        }
        if entries[..i].iter().any(|(other, _)| other == name) {
            return Err(EditError(format!("`{name}` is given twice")));
        }
        if !value.is_object() {
            return Err(EditError(format!("`{name}` is not an object")));
        }
    }
    Ok(())
}

/// Splits off the byte order mark, if there is one.
fn split_bom(text: &str) -> (&str, &str) {
    let bom = if text.starts_with('\u{feff}') {
        '\u{feff}'.len_utf8()
    } else {
        0
    };
    text.split_at(bom)
}

/// Parses the text.
fn read(body: &str, format: ConfigFormat, key: &str) -> Result<Node, EditError> {
    match format {
        ConfigFormat::Json => json::read(body, key),
        ConfigFormat::Toml => toml::read(body),
        _ => Err(unknown_format()),
    }
}

/// Returns the entries of the table.
fn table<'a>(
    tree: &'a Node,
    body: &str,
    format: ConfigFormat,
    key: &str,
) -> Result<&'a [(String, Node)], EditError> {
    match tree.get(key) {
        None => Ok(&[]),
        Some(Node::Table(entries)) => Ok(entries),
        Some(_) => {
            let at = offsets(body, format, key, None)
                .first()
                .copied()
                .unwrap_or(0);
            let what = match format {
                ConfigFormat::Toml => "a table",
                _ => "an object",
            };
            Err(EditError(format!(
                "line {}: `{key}` is not {what}",
                line(body, at)
            )))
        }
    }
}

/// Refuses a duplicate name in the table, because readers differ in which of the two counts.
fn refuse_twice(
    there: &[(String, Node)],
    only: Option<&[(String, Value)]>,
    body: &str,
    format: ConfigFormat,
    key: &str,
) -> Result<(), EditError> {
    for (i, (name, _)) in there.iter().enumerate() {
        let asked = only.is_none_or(|only| only.iter().any(|(ours, _)| ours == name));
        if asked && there[..i].iter().any(|(other, _)| other == name) {
            let at = offsets(body, format, key, Some(name))
                .last()
                .copied()
                .unwrap_or(0);
            return Err(EditError(format!(
                "line {}: `{name}` is in `{key}` twice",
                line(body, at)
            )));
        }
    }
    Ok(())
}

/// Returns the positions of the table, or of an entry in it, in order.
fn offsets(body: &str, format: ConfigFormat, key: &str, name: Option<&str>) -> Vec<usize> {
    match format {
        ConfigFormat::Json => json::offsets(body, key, name),
        ConfigFormat::Toml => toml::offsets(body, key, name),
        _ => Vec::new(),
    }
}

fn fault(what: &str) -> EditError {
    EditError(format!(
        "the file is unchanged, because this edit would damage it: {what}"
    ))
}

fn unknown_format() -> EditError {
    EditError("files of this format cannot be changed".to_owned())
}
