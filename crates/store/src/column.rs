//! Values of columns.

use std::borrow::Cow;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;
use sqlx::Row;
use sqlx::any::AnyRow;

use crate::StoreError;

/// Converts a number for a column. A number that does not fit is clamped.
pub(crate) fn to_column(figure: u64) -> i64 {
    i64::try_from(figure).unwrap_or(i64::MAX)
}

/// Reads a number that must be present.
pub(crate) fn figure(row: &AnyRow, column: &str) -> Result<u64, sqlx::Error> {
    Ok(from_column(row.try_get(column)?))
}

/// Reads a number that may be NULL.
pub(crate) fn optional_figure(row: &AnyRow, column: &str) -> Result<Option<u64>, sqlx::Error> {
    Ok(row.try_get::<Option<i64>, _>(column)?.map(from_column))
}

/// Converts to 32 bits. A number that does not fit is clamped.
pub(crate) fn small(figure: u64) -> u32 {
    u32::try_from(figure).unwrap_or(u32::MAX)
}

fn from_column(figure: i64) -> u64 {
    u64::try_from(figure).unwrap_or(0)
}

/// Replaces NUL characters, which PostgreSQL does not accept.
pub(crate) fn text(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

/// Maximum size of an id or of a part of a key, in bytes. PostgreSQL accepts 2704 bytes in total in an index entry.
const LONGEST_ID: usize = 500;

/// Checks an id, which must be stored unchanged so that it can be found.
pub(crate) fn check_id(what: &'static str, id: &str) -> Result<(), StoreError> {
    if id.contains('\0') {
        return Err(StoreError::invalid(what, "it contains a NUL byte"));
    }
    if id.len() > LONGEST_ID {
        let reason = format!("it has {} bytes, more than {LONGEST_ID}", id.len());
        return Err(StoreError::invalid(what, reason));
    }
    Ok(())
}

/// Checks an id that must not be empty.
pub(crate) fn check_given(what: &'static str, id: &str) -> Result<(), StoreError> {
    if id.is_empty() {
        return Err(StoreError::invalid(what, "it is empty"));
    }
    check_id(what, id)
}

/// Checks the id of a run. A store refuses an empty one, one of more than 500 bytes, and one with control characters.
///
/// Use it to report an invalid id before anything is started.
///
/// ```
/// assert!(teamster_store::check_run_id("nightly-1").is_ok());
/// assert!(teamster_store::check_run_id("two\nlines").is_err());
/// ```
///
/// # Errors
///
/// [`StoreError::Invalid`] with the reason.
pub fn check_run_id(run_id: &str) -> Result<(), StoreError> {
    check_given("run id", run_id)?;
    if run_id.chars().any(char::is_control) {
        return Err(StoreError::invalid(
            "run id",
            "it contains control characters",
        ));
    }
    Ok(())
}

/// Escapes control characters of a text from elsewhere, because a terminal would interpret them.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(char::is_control) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    Cow::Owned(shown)
}

/// Prefix of a stored path that is not UTF-8. No absolute path begins with it.
const BYTES: &str = "bytes:";

/// Converts a path to an absolute one for a column. [`path_from_column`] restores it exactly.
pub(crate) fn path_to_column(path: &Path) -> String {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    if path.to_str().is_none() {
        let bytes = path.as_os_str().as_bytes();
        let encoded = percent_encoding::percent_encode(bytes, percent_encoding::NON_ALPHANUMERIC);
        return format!("{BYTES}{encoded}");
    }
    text(&path.to_string_lossy())
}

/// Returns whether a column has a path that is percent-encoded, because it is not UTF-8.
pub(crate) fn is_encoded(column: &str) -> bool {
    column.starts_with(BYTES)
}

pub(crate) fn path_from_column(column: String) -> PathBuf {
    if let Some(encoded) = column.strip_prefix(BYTES) {
        let bytes = percent_encoding::percent_decode_str(encoded).collect();
        return PathBuf::from(OsString::from_vec(bytes));
    }
    PathBuf::from(column)
}

/// Returns the name of an enum variant on the wire.
pub(crate) fn word(value: &impl Serialize) -> Option<String> {
    let value = serde_json::to_value(value).ok()?;
    value.as_str().map(str::to_owned)
}

/// Parses the name of an enum variant.
pub(crate) fn from_word<T: DeserializeOwned>(word: String) -> Result<T, sqlx::Error> {
    serde_json::from_value(word.into()).map_err(|error| sqlx::Error::Decode(Box::new(error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_read_back_as_it_was() {
        let odd = OsString::from_vec(b"/a b/%41/\xff\xfe".to_vec());
        for path in [
            PathBuf::from("/"),
            PathBuf::from("/a b/%41/ü"),
            PathBuf::from(odd),
        ] {
            assert_eq!(path_from_column(path_to_column(&path)), path);
        }
        assert!(path_from_column(path_to_column(Path::new("x"))).is_absolute());
    }
}
