//! Positions of the parts of a TOML text.
//!
//! The text was parsed before, so it is known to be valid.

use std::ops::Range;

use toml_edit::Key;

use crate::edit::EditError;
use crate::edit::splice::{Comments, line};

/// A header, or a key with its value.
pub(super) struct Expression {
    /// The full path of keys from the top level.
    pub(super) path: Vec<String>,
    /// Number of keys in `path` that come from the header above.
    pub(super) header: usize,
    pub(super) kind: Kind,
    /// Start position. Only white space precedes it in its line.
    pub(super) start: usize,
    /// End position, after the last character.
    pub(super) end: usize,
}

pub(super) enum Kind {
    /// `[path]`.
    Header,
    /// `[[path]]`.
    ArrayHeader,
    /// `key = value`, with the range of the value.
    Pair(Range<usize>),
}

/// A key and its value in an inline table.
pub(super) struct InlineItem {
    pub(super) path: Vec<String>,
    pub(super) start: usize,
    pub(super) end: usize,
}

/// Returns all headers and keys of a text, in order.
pub(super) fn scan(text: &str) -> Result<Vec<Expression>, EditError> {
    let mut found = Vec::new();
    let mut header: Vec<String> = Vec::new();
    let mut at = 0;
    loop {
        (at, _) = Comments::Toml.skip(text, at);
        if at == text.len() {
            return Ok(found);
        }
        let start = at;
        if text[at..].starts_with('[') {
            let width = if text[at..].starts_with("[[") { 2 } else { 1 };
            let keys = at + width..key_end(text, at + width, b']')?;
            at = keys.end + width;
            header = path(text, keys)?;
            let kind = if width == 2 {
                Kind::ArrayHeader
            } else {
                Kind::Header
            };
            found.push(Expression {
                path: header.clone(),
                header: header.len(),
                kind,
                start,
                end: at,
            });
        } else {
            let (keys, value) = pair(text, at)?;
            at = value.end;
            let mut full = header.clone();
            full.extend(path(text, keys)?);
            found.push(Expression {
                path: full,
                header: header.len(),
                kind: Kind::Pair(value),
                start,
                end: at,
            });
        }
    }
}

/// Returns the items of an inline table, or none for another value.
pub(super) fn items(text: &str, value: Range<usize>) -> Result<Vec<InlineItem>, EditError> {
    let mut found = Vec::new();
    if !text[value.clone()].starts_with('{') {
        return Ok(found);
    }
    let mut at = value.start + 1;
    loop {
        (at, _) = Comments::Toml.skip(text, at);
        match text.as_bytes().get(at) {
            Some(b',') => at += 1,
            Some(b'}') | None => return Ok(found),
            Some(_) => {
                let (keys, value) = pair(text, at)?;
                found.push(InlineItem {
                    path: path(text, keys)?,
                    start: at,
                    end: value.end,
                });
                at = value.end;
            }
        }
    }
}

/// Returns the ranges of the keys and of the value of `key = value`.
fn pair(text: &str, start: usize) -> Result<(Range<usize>, Range<usize>), EditError> {
    let equals = key_end(text, start, b'=')?;
    // In an inline table the value may begin in another line.
    let (value, _) = Comments::Toml.skip(text, equals + 1);
    let end = value_end(text, value)?;
    Ok((start..equals, value..end))
}

fn path(text: &str, keys: Range<usize>) -> Result<Vec<String>, EditError> {
    let parsed = Key::parse(text[keys.clone()].trim()).map_err(|_| lost(text, keys.start))?;
    Ok(parsed.iter().map(|key| key.get().to_owned()).collect())
}

/// Returns the position of the character that ends these keys.
fn key_end(text: &str, mut at: usize, stop: u8) -> Result<usize, EditError> {
    let start = at;
    loop {
        match text.as_bytes().get(at) {
            Some(b'"' | b'\'') => at = string_end(text, at).ok_or_else(|| lost(text, start))?,
            Some(byte) if *byte == stop => return Ok(at),
            None => return Err(lost(text, start)),
            Some(_) => at += 1,
        }
    }
}

fn value_end(text: &str, start: usize) -> Result<usize, EditError> {
    let bytes = text.as_bytes();
    let mut at = start;
    match bytes.get(at) {
        Some(b'"' | b'\'') => string_end(text, at).ok_or_else(|| lost(text, start)),
        Some(b'[' | b'{') => {
            let mut depth = 0_usize;
            loop {
                match bytes.get(at) {
                    Some(b'"' | b'\'') => {
                        at = string_end(text, at).ok_or_else(|| lost(text, start))?;
                        continue;
                    }
                    Some(b'#') => {
                        (at, _) = Comments::Toml.skip(text, at);
                        continue;
                    }
                    Some(b'[' | b'{') => depth += 1,
                    Some(b']' | b'}') => depth -= 1,
                    Some(_) => {}
                    None => return Err(lost(text, start)),
                }
                at += 1;
                if depth == 0 {
                    return Ok(at);
                }
            }
        }
        _ => {
            let rest = &text[at..];
            let end = rest
                .find([',', ']', '}', '#', '\n', '\r'])
                .unwrap_or(rest.len());
            Ok(at + rest[..end].trim_end().len())
        }
    }
}

/// Returns the position after the string that begins here.
fn string_end(text: &str, start: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let quote = bytes[start];
    let escapes = quote == b'"';
    let long = bytes[start..].starts_with(&[quote; 3]);
    let mut at = start + if long { 3 } else { 1 };
    loop {
        match *bytes.get(at)? {
            b'\\' if escapes => at += 2,
            byte if byte == quote && !long => return Some(at + 1),
            byte if byte == quote && bytes[at..].starts_with(&[quote; 3]) => {
                // Up to two quotation marks may precede the closing ones.
                let more = bytes[at + 3..]
                    .iter()
                    .take(2)
                    .take_while(|byte| **byte == quote)
                    .count();
                return Some(at + 3 + more);
            }
            _ => at += 1,
        }
    }
}

fn lost(text: &str, at: usize) -> EditError {
    EditError(format!("line {}: this cannot be read", line(text, at)))
}
