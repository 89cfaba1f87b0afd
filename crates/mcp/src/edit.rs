//! Entries in and out of the CLIs' own configuration files, with every other byte kept.

use serde_json::Value;
use teamster_core::ConfigFormat;

/// Why a file cannot be changed. The messages begin with the place in it where there is one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct EditError(pub(crate) String);

/// What to do with a server of the user's that has the same name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Clash {
    /// It is an error.
    Refuse,
    /// Ours takes its place.
    Replace,
}

/// The names in the table `key` of a file's text. A file or table that is empty or not there has none.
pub fn names(text: &str, format: ConfigFormat, key: &str) -> Result<Vec<String>, EditError> {
    let _ = (text, format, key);
    Err(EditError("not there yet".into()))
}

/// The text with these entries in the table `key`.
pub fn merge(
    text: &str,
    format: ConfigFormat,
    key: &str,
    entries: &[(String, Value)],
    clash: Clash,
) -> Result<String, EditError> {
    let _ = (text, format, key, entries, clash);
    Err(EditError("not there yet".into()))
}

/// The text without these entries. An entry of such a name that is no longer the one given was changed
/// by somebody else and stays. With `table_too`, the table goes as well if nothing is left in it.
pub fn remove(
    text: &str,
    format: ConfigFormat,
    key: &str,
    entries: &[(String, Value)],
    table_too: bool,
) -> Result<String, EditError> {
    let _ = (text, format, key, entries, table_too);
    Err(EditError("not there yet".into()))
}
