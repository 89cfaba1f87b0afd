//! Entries in and out of the CLIs' own configuration files, with every other byte kept.
//!
//! A parser finds meaning and positions; the change is then cut out of the text or spliced into it, so that
//! every other byte stays. The result is parsed again and compared before it is returned: a fault here is
//! an error, never a damaged file.

mod json;
mod node;
mod splice;
#[cfg(test)]
mod tests;
mod toml;

use serde_json::Value;
use teamster_core::provider::ConfigFormat;

use node::Node;
use splice::line;

/// Error of changing a file. The messages begin with the position in it, if there is one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct EditError(pub(crate) String);

/// Handling of a user's server with the same name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Clash {
    /// It is an error.
    Refuse,
    /// Ours takes its place.
    Replace,
}

/// The names in the table `key` of a file's text. A file or table that is empty or not there has none.
///
/// ```
/// use teamster_core::provider::ConfigFormat;
/// use teamster_mcp::edit::names;
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

/// The text with these entries in the table `key`.
///
/// The table is made if it is not there, and so is a file's content if there is none. Each entry is an
/// object. Every byte of the text stays, but those of an entry that is replaced.
///
/// ```
/// use serde_json::json;
/// use teamster_core::provider::ConfigFormat;
/// use teamster_mcp::edit::{Clash, merge};
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
            .map(|name| match place(body, format, key, Some(name)).last() {
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

/// The text without these entries. An entry of such a name that is no longer the one given was changed
/// by another program and stays; keys that were added inside do not count as such a change. With
/// `table_too`, the table goes as well if nothing is left in it, not even a comment.
///
/// What [`merge`] has put in is taken out without a trace: the text is what it was, byte for byte
/// (where [`merge`] made the table, with `table_too`).
pub fn remove(
    text: &str,
    format: ConfigFormat,
    key: &str,
    entries: &[(String, Value)],
    table_too: bool,
) -> Result<String, EditError> {
    let (bom, body) = split_bom(text);
    let before = read(body, format, key)?;
    let Ok(there) = table(&before, body, format, key) else {
        // The file now has no entry of ours.
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

/// Reads the result again: it holds the entries, and everything else that was there.
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
            return Err(fault(&format!("`{name}` would not arrive as it is")));
        }
    }
    Ok(())
}

/// Reads the result again: it holds everything that was there except these entries.
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

/// Refuses what can be no entry.
fn check(entries: &[(String, Value)]) -> Result<(), EditError> {
    for (i, (name, value)) in entries.iter().enumerate() {
        if name.is_empty() || name.chars().any(char::is_control) {
            return Err(EditError(format!(
                "{name:?} cannot be a name: it is empty or has control characters"
            )));
        }
        // To a JavaScript program this is no key, but what an object inherits from.
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

/// The byte order mark, if there is one, and the rest.
fn split_bom(text: &str) -> (&str, &str) {
    let bom = if text.starts_with('\u{feff}') {
        '\u{feff}'.len_utf8()
    } else {
        0
    };
    text.split_at(bom)
}

/// The parsed text.
fn read(body: &str, format: ConfigFormat, key: &str) -> Result<Node, EditError> {
    match format {
        ConfigFormat::Json => json::read(body, key),
        ConfigFormat::Toml => toml::read(body),
        _ => Err(unknown_format()),
    }
}

/// The entries of the table.
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
            let at = place(body, format, key, None).first().copied().unwrap_or(0);
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

/// Refuses a name that is in the table twice: which of the two counts is up to who reads it.
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
            let at = place(body, format, key, Some(name))
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

/// Where the table is, or an entry of it: all places, in their order.
fn place(body: &str, format: ConfigFormat, key: &str, name: Option<&str>) -> Vec<usize> {
    match format {
        ConfigFormat::Json => json::place(body, key, name),
        ConfigFormat::Toml => toml::place(body, key, name),
        _ => Vec::new(),
    }
}

fn fault(what: &str) -> EditError {
    EditError(format!(
        "the file was left as it is, because this change would damage it: {what}"
    ))
}

fn unknown_format() -> EditError {
    EditError("files of this format cannot be changed".to_owned())
}
