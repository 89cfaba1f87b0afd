//! Lists and texts that are constants of a provider, when they are read from JSON.
//!
//! Those of this program are `'static`. Those of another machine are kept for the life of this process, each once.

use std::collections::HashSet;
use std::hash::Hash;
use std::str::FromStr;
use std::sync::Mutex;

use serde::{Deserialize, Deserializer};

use crate::sync::lock;
use crate::{McpDelivery, PermissionMode};

/// A text. Serde takes a field that is written as `&'static str` for a part of the JSON text.
pub(crate) type Text = &'static str;

/// The maximum number of values of a kind, which limits the memory that they keep. Further ones are read as empty.
const MOST: usize = 1000;

/// Values that were read before.
struct Known<T: ?Sized + 'static>(Mutex<Option<HashSet<&'static T>>>);

impl<T: ?Sized + Eq + Hash> Known<T> {
    const fn new() -> Self {
        Self(Mutex::new(None))
    }

    /// Returns the value that is equal to this one and is kept.
    fn keep(&self, value: Box<T>) -> Option<&'static T> {
        let mut known = lock(&self.0);
        let known = known.get_or_insert_default();
        if let Some(same) = known.get(&*value) {
            return Some(same);
        }
        if known.len() == MOST {
            return None;
        }
        let kept: &'static T = Box::leak(value);
        known.insert(kept);
        Some(kept)
    }
}

/// Reads a text.
pub(crate) fn text<'de, D: Deserializer<'de>>(from: D) -> Result<&'static str, D::Error> {
    Ok(kept_text(String::deserialize(from)?))
}

/// Reads a list of texts.
pub(crate) fn texts<'de, D>(from: D) -> Result<&'static [&'static str], D::Error>
where
    D: Deserializer<'de>,
{
    static KNOWN: Known<[&str]> = Known::new();
    let texts = Vec::<String>::deserialize(from)?;
    let texts = texts.into_iter().map(kept_text).collect();
    Ok(KNOWN.keep(texts).unwrap_or_default())
}

/// Reads a list of permission modes, without those of a later version.
pub(crate) fn modes<'de, D>(from: D) -> Result<&'static [PermissionMode], D::Error>
where
    D: Deserializer<'de>,
{
    static KNOWN: Known<[PermissionMode]> = Known::new();
    Ok(KNOWN.keep(names(from)?).unwrap_or_default())
}

/// Reads a list of ways to deliver MCP servers, without those of a later version.
pub(crate) fn deliveries<'de, D>(from: D) -> Result<&'static [McpDelivery], D::Error>
where
    D: Deserializer<'de>,
{
    static KNOWN: Known<[McpDelivery]> = Known::new();
    Ok(KNOWN.keep(names(from)?).unwrap_or_default())
}

fn kept_text(text: String) -> &'static str {
    static KNOWN: Known<str> = Known::new();
    KNOWN.keep(text.into_boxed_str()).unwrap_or_default()
}

fn names<'de, D: Deserializer<'de>, T: FromStr>(from: D) -> Result<Box<[T]>, D::Error> {
    let names = Vec::<String>::deserialize(from)?;
    Ok(names.iter().filter_map(|name| name.parse().ok()).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::{Capabilities, McpDelivery, PermissionMode};

    #[test]
    fn capabilities_are_the_same_after_json() {
        let mut can = Capabilities::none();
        can.permission_modes = PermissionMode::ALL;
        can.uncounted_tools = &["task", "agent"];
        can.mcp.transports = &["stdio", "http"];
        can.mcp.deliveries = &[McpDelivery::Private];
        can.effort = true;
        let json = serde_json::to_value(&can).unwrap();
        let read = |json: Value| serde_json::from_value::<Capabilities>(json).unwrap();
        let first = read(json.clone());
        assert_eq!(serde_json::to_value(&first).unwrap(), json);
        // Equal values are kept once.
        let second = read(json.clone());
        assert!(std::ptr::eq(first.uncounted_tools, second.uncounted_tools));
        assert!(std::ptr::eq(first.mcp.name_marks, second.mcp.name_marks));
        let mut newer = json;
        newer["permissionModes"] = json!(["default", "a later one"]);
        assert_eq!(read(newer).permission_modes, [PermissionMode::Default]);
    }
}
