//! Lone surrogates, which JSON can hold and a Rust string cannot.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{self, Deserializer, Visitor};

/// Replaces each `\uD800`–`\uDFFF` escape of `json` that is not part of a pair by `\ufffd`. `None` if there is
/// none.
pub fn without_lone_escapes(json: &str) -> Option<String> {
    let bytes = json.as_bytes();
    let mut fixed: Option<String> = None;
    let mut copied = 0;
    let mut at = 0;
    while let Some(found) = memchr::memchr(b'\\', &bytes[at..]) {
        let escape = at + found;
        let Some(unit) = unicode_escape(bytes, escape) else {
            at = (escape + 2).min(bytes.len());
            continue;
        };
        at = escape + 6;
        match unit {
            0xD800..=0xDBFF if matches!(unicode_escape(bytes, at), Some(0xDC00..=0xDFFF)) => {
                at += 6;
            }
            0xD800..=0xDFFF => {
                let fixed = fixed.get_or_insert_with(String::new);
                fixed.push_str(&json[copied..escape]);
                fixed.push_str("\\ufffd");
                copied = at;
            }
            _ => {}
        }
    }
    let mut fixed = fixed?;
    fixed.push_str(&json[copied..]);
    Some(fixed)
}

/// Parses a `\uXXXX` escape that begins at `at`.
fn unicode_escape(bytes: &[u8], at: usize) -> Option<u16> {
    let escape = bytes.get(at..at + 6)?;
    if &escape[..2] != b"\\u" {
        return None;
    }
    let hex = std::str::from_utf8(&escape[2..]).ok()?;
    u16::from_str_radix(hex, 16).ok()
}

/// Joins pieces of a text that may be split inside a surrogate pair.
#[derive(Debug, Default)]
pub struct Joiner {
    high: Option<u16>,
}

impl Joiner {
    /// Returns the text of the next piece. A high surrogate at its end is kept for the next piece. A lone surrogate
    /// becomes U+FFFD.
    pub fn push<'a>(&mut self, piece: &'a [u8]) -> Cow<'a, str> {
        if self.high.is_none()
            && let Ok(text) = std::str::from_utf8(piece)
        {
            return Cow::Borrowed(text);
        }
        let mut text = String::with_capacity(piece.len() + 4);
        let mut rest = piece;
        while !rest.is_empty() {
            let valid = match std::str::from_utf8(rest) {
                Ok(all) => all,
                // `valid_up_to` is where valid UTF-8 ends.
                Err(e) => std::str::from_utf8(&rest[..e.valid_up_to()]).unwrap_or_default(),
            };
            if !valid.is_empty() {
                self.flush(&mut text);
                text.push_str(valid);
                rest = &rest[valid.len()..];
                continue;
            }
            match surrogate(rest) {
                Some(high @ 0xD800..=0xDBFF) => {
                    self.flush(&mut text);
                    self.high = Some(high);
                    rest = &rest[3..];
                }
                Some(low) => {
                    match self.high.take() {
                        Some(high) => {
                            let pair = char::decode_utf16([high, low]).next();
                            text.push(pair.and_then(Result::ok).unwrap_or('\u{FFFD}'));
                        }
                        None => text.push('\u{FFFD}'),
                    }
                    rest = &rest[3..];
                }
                None => {
                    self.flush(&mut text);
                    text.push('\u{FFFD}');
                    rest = &rest[1..];
                }
            }
        }
        Cow::Owned(text)
    }

    /// Returns the text of the next piece, which is whole characters.
    pub fn push_text(&mut self, piece: String) -> String {
        if self.high.is_none() || piece.is_empty() {
            return piece;
        }
        let mut text = String::with_capacity(piece.len() + 4);
        self.flush(&mut text);
        text.push_str(&piece);
        text
    }

    fn flush(&mut self, text: &mut String) {
        if self.high.take().is_some() {
            text.push('\u{FFFD}');
        }
    }
}

/// A JSON string as bytes. Some CLIs split deltas inside a surrogate pair. A lone surrogate is stored as the three
/// bytes that it would have in UTF-8 if it were a character.
pub struct Chars<'a>(pub Cow<'a, [u8]>);

impl<'de: 'a, 'a> Deserialize<'de> for Chars<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct CharsVisitor;

        impl<'de> Visitor<'de> for CharsVisitor {
            type Value = Chars<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_borrowed_bytes<E: de::Error>(self, v: &'de [u8]) -> Result<Chars<'de>, E> {
                Ok(Chars(Cow::Borrowed(v)))
            }

            fn visit_bytes<E: de::Error>(self, v: &[u8]) -> Result<Chars<'de>, E> {
                Ok(Chars(Cow::Owned(v.to_vec())))
            }

            fn visit_borrowed_str<E: de::Error>(self, v: &'de str) -> Result<Chars<'de>, E> {
                Ok(Chars(Cow::Borrowed(v.as_bytes())))
            }

            fn visit_str<E: de::Error>(self, v: &str) -> Result<Chars<'de>, E> {
                Ok(Chars(Cow::Owned(v.as_bytes().to_vec())))
            }
        }

        deserializer.deserialize_bytes(CharsVisitor)
    }
}

/// Returns the surrogate that `bytes` begin with.
fn surrogate(bytes: &[u8]) -> Option<u16> {
    match bytes {
        [0xED, b @ 0xA0..=0xBF, c @ 0x80..=0xBF, ..] => {
            Some(0xD000 | u16::from(b & 0x3F) << 6 | u16::from(c & 0x3F))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lone_escapes_are_replaced_and_pairs_kept() {
        assert_eq!(
            without_lone_escapes(r#"{"a":"\ud83d\ude00 \ud83d","b":"\ude00\\ud83d"}"#).as_deref(),
            Some(r#"{"a":"\ud83d\ude00 \ufffd","b":"\ufffd\\ud83d"}"#)
        );
        assert_eq!(without_lone_escapes(r#""\ud83d\ude00 \n \\ud800""#), None);
        assert_eq!(
            without_lone_escapes(r#""\ud7ff\ue000\udbff\udfff\ud800\udc00""#),
            None
        );
        assert_eq!(
            without_lone_escapes(r#""\udbff\ue000\udfff""#).as_deref(),
            Some(r#""\ufffd\ue000\ufffd""#)
        );
        assert_eq!(without_lone_escapes(r#""\ud83"#), None);
        assert_eq!(without_lone_escapes("\\"), None);
    }

    #[test]
    fn halves_meet_across_pieces() {
        let mut joiner = Joiner::default();
        assert_eq!(joiner.push(b"hi \xED\xA0\xBD"), "hi ");
        assert_eq!(joiner.push(b"\xED\xB8\x80 end"), "\u{1F600} end");
    }

    #[test]
    fn a_half_alone_becomes_a_replacement_character() {
        let mut joiner = Joiner::default();
        assert_eq!(joiner.push(b"\xED\xA0\xBD"), "");
        assert_eq!(joiner.push(b"x"), "\u{FFFD}x");
        assert_eq!(joiner.push(b"\xED\xB8\x80"), "\u{FFFD}");
        assert_eq!(joiner.push(b"a\xFFb"), "a\u{FFFD}b");
        assert_eq!(joiner.push(b"\xED\xA0\xBD"), "");
        assert_eq!(joiner.push_text(String::new()), "");
        assert_eq!(joiner.push_text("x".to_owned()), "\u{FFFD}x");
        assert_eq!(joiner.push_text("y".to_owned()), "y");
    }
}
