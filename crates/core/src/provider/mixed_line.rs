//! JSON objects in lines into which another program wrote.
//!
//! Terminal codes, a banner or the text of a plugin without a line end share a line with the CLI's JSON, and so do two
//! values if the line end between them is missing.

use std::borrow::Cow;
use std::ops::Range;

use memchr::memchr2;
use serde::de::IgnoredAny;

use crate::text::escape_sequence_bytes;

/// Work for one line: so many times its length, and at least [`LEAST_WORK`] bytes. A line of a thousand braces would
/// otherwise be parsed from each of them.
const WORK: usize = 8;
const LEAST_WORK: usize = 64 << 10;

/// Names of the first field of an event or a message of JSON-RPC.
const FIRST_FIELDS: [&str; 2] = ["type", "jsonrpc"];

/// A JSON object in a line.
#[derive(Debug, Clone, PartialEq)]
pub struct Found<'a> {
    /// Its place in the line, in bytes.
    pub at: Range<usize>,
    /// Its text, without terminal codes between its values.
    pub json: Cow<'a, str>,
    /// True if its first field is that of an event or a message of JSON-RPC.
    pub is_message: bool,
}

/// Returns the JSON objects that stand one after the other in a line, with any text between them.
///
/// Objects within other values are not returned. Neither are those within an object that is broken, nor one in
/// quotation marks, as a log has it.
///
/// ```
/// use teamster_core::provider::mixed_line::objects;
///
/// let line = "checked {x} {\"type\":\"a\"}{\"type\":\"b\"} done";
/// let found: Vec<_> = objects(line).map(|found| found.json.into_owned()).collect();
/// assert_eq!(found, [r#"{"type":"a"}"#, r#"{"type":"b"}"#]);
/// ```
pub fn objects(line: &str) -> Objects<'_> {
    Objects {
        line,
        from: 0,
        work: line.len().saturating_mul(WORK).max(LEAST_WORK),
        broken: None,
    }
}

/// Iterator over the objects of a line.
#[derive(Debug, Clone)]
pub struct Objects<'a> {
    line: &'a str,
    /// Offset up to which the line was searched.
    from: usize,
    /// Number of bytes that may still be parsed.
    work: usize,
    /// Offset of the first object that is not complete.
    broken: Option<usize>,
}

impl<'a> Objects<'a> {
    /// Returns the offset of the first object that begins like one and is not valid, if the search has met one.
    pub fn broken(&self) -> Option<usize> {
        self.broken
    }

    /// Parses the value that begins at `start`. Returns its end and its text.
    fn value(&mut self, start: usize) -> Option<(usize, Cow<'a, str>)> {
        let rest = &self.line[start..];
        match self.parse(rest) {
            Ok(bytes) => Some((start + bytes, Cow::Borrowed(&rest[..bytes]))),
            Err(at) if rest.as_bytes().get(at).is_some_and(u8::is_ascii_control) => {
                self.work = self.work.saturating_sub(rest.len());
                let mut blanked = without_codes(rest)?;
                let bytes = self.parse(&blanked).ok()?;
                blanked.truncate(bytes);
                Some((start + bytes, Cow::Owned(blanked)))
            }
            Err(_) => None,
        }
    }

    /// Returns the length of the value at the start of `text`, or the offset of its first error.
    fn parse(&mut self, text: &str) -> Result<usize, usize> {
        let mut values = serde_json::Deserializer::from_str(text).into_iter::<IgnoredAny>();
        let outcome = match values.next() {
            Some(Ok(_)) => Ok(values.byte_offset()),
            // The text is one line, so the column is an offset, counted from 1.
            Some(Err(error)) => Err(error.column().saturating_sub(1)),
            None => Err(0),
        };
        let (Ok(bytes) | Err(bytes)) = outcome;
        self.work = self.work.saturating_sub(bytes);
        outcome
    }
}

impl<'a> Iterator for Objects<'a> {
    type Item = Found<'a>;

    fn next(&mut self) -> Option<Found<'a>> {
        while let Some(at) = memchr2(b'{', b'[', &self.line.as_bytes()[self.from..]) {
            let start = self.from + at;
            self.from = start + 1;
            let is_object = self.line.as_bytes()[start] == b'{';
            let inside = &self.line[self.from..];
            if is_object && !inside.trim_start_matches(is_blank).starts_with('"') {
                continue;
            }
            if self.work == 0 {
                break;
            }
            let Some((end, json)) = self.value(start) else {
                if is_object && is_field(inside) {
                    self.broken.get_or_insert(start);
                }
                continue;
            };
            self.from = end;
            if is_object && !self.is_within(start, end) {
                let is_message = has_first_field(&json);
                return Some(Found {
                    at: start..end,
                    json,
                    is_message,
                });
            }
        }
        self.from = self.line.len();
        None
    }
}

impl Objects<'_> {
    /// Returns whether the object at this place is part of a broken one, or quoted.
    fn is_within(&self, start: usize, end: usize) -> bool {
        let before = self.line[..start].trim_end_matches(is_blank);
        let is_part = before.ends_with([':', ',', '[']);
        let quoted = [("'", "'"), ("\"", "\""), ("`", "`"), ("(", ")")]
            .into_iter()
            .any(|(open, close)| {
                self.line[..start].ends_with(open) && self.line[end..].starts_with(close)
            });
        quoted || (is_part && self.broken.is_some())
    }
}

fn is_blank(c: char) -> bool {
    c.is_ascii_whitespace() || c.is_ascii_control()
}

/// Returns whether the text after a brace is a quoted name and a colon.
fn is_field(inside: &str) -> bool {
    let Some(rest) = inside.trim_start_matches(is_blank).strip_prefix('"') else {
        return false;
    };
    let name = rest.trim_start_matches(|c: char| c.is_alphanumeric() || matches!(c, '_' | '-'));
    name.strip_prefix('"')
        .is_some_and(|rest| rest.trim_start_matches(is_blank).starts_with(':'))
}

fn has_first_field(object: &str) -> bool {
    let name = object.trim_start_matches(|c: char| c == '{' || c == '"' || c.is_whitespace());
    FIRST_FIELDS.iter().any(|field| {
        name.strip_prefix(field)
            .is_some_and(|rest| rest.starts_with('"'))
    })
}

/// Replaces terminal codes and control characters outside of strings by spaces. `None` if there are none.
fn without_codes(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let mut blanked = None;
    let (mut at, mut in_string) = (0, false);
    while let Some(byte) = bytes.get(at) {
        let length = match byte {
            b'"' => {
                in_string = !in_string;
                1
            }
            b'\\' if in_string => 2,
            _ if in_string => 1,
            0x1b => escape_sequence_bytes(&text[at..]),
            byte if byte.is_ascii_control() => 1,
            _ => {
                at += 1;
                continue;
            }
        };
        if !in_string && *byte != b'"' {
            let copy = blanked.get_or_insert_with(|| bytes.to_vec());
            copy[at..at + length].fill(b' ');
        }
        at += length;
    }
    // Whole characters were replaced.
    String::from_utf8(blanked?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(line: &str) -> Vec<String> {
        objects(line).map(|found| found.json.into_owned()).collect()
    }

    #[test]
    fn text_beside_an_object_is_left_out() {
        for (before, after) in [
            ("", ""),
            ("\u{1b}[2K", "\u{1b}[?25h"),
            ("\u{1b}]0;a {title}\u{7}", "\u{1b}]8;;\u{1b}\\"),
            ("checked {x} [y] [12:00] \"q", " and }{ more"),
            ("\u{feff}", "\0\0"),
            ("10%\r100%\r", "\r"),
            ("[1,{\"type\":\"in a list\"}] ", " [{\"type\":\"b\"}]"),
            ("{\"half\": ", ""),
        ] {
            let line = format!("{before}{{\"type\":\"a\",\"x\":[{{\"type\":\"in it\"}}]}}{after}");
            let found = found(&line);
            if before.ends_with(": ") {
                assert_eq!(found, Vec::<String>::new(), "part of what is broken");
            } else {
                assert_eq!(
                    found,
                    [r#"{"type":"a","x":[{"type":"in it"}]}"#],
                    "{line:?}"
                );
            }
        }
    }

    #[test]
    fn several_values_are_found_in_their_order() {
        let line = r#"{"type":"a"}{"type":"b"}, {"ok":true} x {"jsonrpc":"2.0"}"#;
        let found: Vec<_> = objects(line).map(|it| (it.json, it.is_message)).collect();
        assert_eq!(
            found,
            [
                (r#"{"type":"a"}"#.into(), true),
                (r#"{"type":"b"}"#.into(), true),
                (r#"{"ok":true}"#.into(), false),
                (r#"{"jsonrpc":"2.0"}"#.into(), true),
            ]
        );
    }

    #[test]
    fn codes_between_values_are_dropped_and_in_a_string_break_it() {
        assert_eq!(
            found("{\"type\":\0\"a\",\u{1b}[2K\"n\":\u{1b}]0;x\u{7}12}"),
            ["{\"type\": \"a\",    \"n\":      12}"]
        );
        assert_eq!(found("{\"type\":\"a\",\"n\":1\u{1b}[m2}"), [""; 0]);
        assert_eq!(found("{\"type\":\"a\",\"text\":\"b\u{1b}[2Kc\"}"), [""; 0]);
        assert_eq!(found("{\"type\":\"a\",\"text\":\"b\0c\"}"), [""; 0]);
    }

    #[test]
    fn parts_of_a_broken_object_are_not_objects_of_the_line() {
        let cut = r#"{"type":"a","list":[{"type":"b"},{"type":"c","in":{"type":"d"}}"#;
        assert_eq!(found(cut), [""; 0]);
        let mut objects = objects(cut);
        assert_eq!(objects.by_ref().count(), 0);
        assert_eq!(objects.broken(), Some(0));
        assert_eq!(
            found(r#"{"type":"a","te{"type":"other"}xt":[{"type":"b"}]}"#),
            [r#"{"type":"other"}"#]
        );
        assert_eq!(found(r#"{"type":"cut{"type":"b"}"#), [r#"{"type":"b"}"#]);
    }

    #[test]
    fn a_quoted_object_is_text() {
        for (open, close) in [("'", "'"), ("`", "`"), ("\"", "\""), ("(", ")")] {
            assert_eq!(
                found(&format!("sent {open}{{\"type\":\"a\"}}{close}")),
                [""; 0]
            );
        }
        assert_eq!(found(r#"it's {"type":"a"}'"#), [r#"{"type":"a"}"#]);
    }

    #[test]
    fn search_of_a_line_ends_with_its_work() {
        // Each brace and each bracket is parsed up to the `x`.
        for (count, expected) in [(64, vec![r#"{"ok":true}"#]), (1000, Vec::new())] {
            let line = r#"{"a":["#.repeat(count) + r#"x {"ok":true}"#;
            assert_eq!(found(&line), expected, "{count}");
        }
    }

    #[test]
    fn a_line_of_braces_takes_linear_time() {
        let line = r#"{"a":"#.repeat(1 << 18);
        assert_eq!(found(&line), [""; 0]);
        let line = r#"{"a":["#.repeat(1 << 10) + &"x".repeat(1 << 20);
        assert_eq!(found(&line), [""; 0]);
    }
}
