//! Fast path for the most frequent line: a delta of the main agent, exactly as the CLI prints it. It is recognised by
//! its fixed parts, without a JSON parser.
//!
//! Any other line is left to the parser. A test ensures that both give the same result.

use std::borrow::Cow;

use memchr::{memchr2, memrchr};
use teamster_core::text::is_plain_json;

const HEAD: &[u8] = br#"{"type":"stream_event","event":{"type":"content_block_delta","index":"#;
const TEXT: &[u8] = br#","delta":{"type":"text_delta","text":""#;
const THINKING: &[u8] = br#","delta":{"type":"thinking_delta","thinking":""#;
const INPUT: &[u8] = br#","delta":{"type":"input_json_delta","partial_json":""#;
const AFTER_VALUE: &[u8] = br#""}},"session_id":""#;
const AFTER_SESSION: &[u8] = br#"","parent_tool_use_id":null,"uuid":""#;
/// Fields that later versions (seen in 2.1.330) append, from the last one on. The decoder needs none of them.
const APPENDED: &[&[u8]] = &[br#"","api_message_id":""#, br#"","thinking_display":""#];
const END: &[u8] = br#""}"#;
/// Length of a UUID in text form.
const UUID: usize = 36;
const TAIL: usize = AFTER_VALUE.len() + UUID + AFTER_SESSION.len() + UUID;

/// A decoded delta.
#[derive(Debug, PartialEq)]
pub(super) enum FastDelta<'a> {
    Text(u64, Cow<'a, str>),
    Thinking(u64, Cow<'a, str>),
    /// Piece of the JSON of a call's input.
    Input(u64, Cow<'a, str>),
}

/// Returns the delta in `line`, if it is one of the main agent in this session.
pub(super) fn delta<'a>(line: &'a [u8], session_id: &str) -> Option<FastDelta<'a>> {
    let rest = line.strip_prefix(HEAD)?.strip_suffix(END)?;
    let rest = match without_tail(rest, session_id) {
        Some(rest) => rest,
        None => without_tail(without_appended(rest)?, session_id)?,
    };
    let digits = rest.iter().position(|b| !b.is_ascii_digit())?;
    // Few digits cannot overflow, and `01` is not valid JSON.
    if digits == 0 || digits > 9 || (digits > 1 && rest[0] == b'0') {
        return None;
    }
    let index = rest[..digits]
        .iter()
        .fold(0, |n, digit| n * 10 + u64::from(digit - b'0'));
    let rest = &rest[digits..];
    if let Some(value) = rest.strip_prefix(TEXT) {
        Some(FastDelta::Text(index, string(value)?))
    } else if let Some(value) = rest.strip_prefix(THINKING) {
        Some(FastDelta::Thinking(index, string(value)?))
    } else {
        Some(FastDelta::Input(index, string(rest.strip_prefix(INPUT)?)?))
    }
}

/// Returns the line up to the end of its UUID. `None` if an appended field has unusual characters.
fn without_appended(mut line: &[u8]) -> Option<&[u8]> {
    let plain = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
    for name in APPENDED {
        let value = memrchr(b'"', line)? + 1;
        if let Some(rest) = line[..value].strip_suffix(*name) {
            line[value..].iter().all(plain).then_some(())?;
            line = rest;
        }
    }
    Some(line)
}

/// Returns the line up to the end of the delta's value, if it ends as one of the main agent in this session.
fn without_tail<'a>(line: &'a [u8], session_id: &str) -> Option<&'a [u8]> {
    let (rest, tail) = line.split_at_checked(line.len().checked_sub(TAIL)?)?;
    let (after_value, tail) = tail.split_at(AFTER_VALUE.len());
    let (session, tail) = tail.split_at(UUID);
    let (after_session, uuid) = tail.split_at(AFTER_SESSION.len());
    let is_tail = after_value == AFTER_VALUE
        && session == session_id.as_bytes()
        && after_session == AFTER_SESSION
        && uuid.is_ascii()
        && is_plain_json(uuid);
    is_tail.then_some(rest)
}

/// Returns the value of a JSON string, given the text between its quotes.
fn string(inner: &[u8]) -> Option<Cow<'_, str>> {
    let text = std::str::from_utf8(inner).ok()?;
    if is_plain_json(inner) {
        return Some(Cow::Borrowed(text));
    }
    if inner.iter().any(|b| *b < b' ') {
        return None;
    }
    match memchr2(b'"', b'\\', inner) {
        None => Some(Cow::Borrowed(text)),
        Some(first) => unescape(text, first).map(Cow::Owned),
    }
}

/// Unescapes `text`, whose first quote or backslash is at `first`. `None` for anything unusual.
fn unescape(text: &str, first: usize) -> Option<String> {
    let bytes = text.as_bytes();
    let mut out = String::with_capacity(text.len());
    let mut copied = 0;
    let mut at = first;
    loop {
        if bytes[at] == b'"' {
            return None;
        }
        out.push_str(&text[copied..at]);
        out.push(match bytes.get(at + 1)? {
            b'n' => '\n',
            b'"' => '"',
            b'\\' => '\\',
            b't' => '\t',
            b'/' => '/',
            b'r' => '\r',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            _ => return None,
        });
        copied = at + 2;
        match memchr2(b'"', b'\\', &bytes[copied..]) {
            Some(next) => at = copied + next,
            None => break,
        }
    }
    out.push_str(&text[copied..]);
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SESSION: &str = "4e7c1419-faa6-4b9e-a712-01520d2026c2";

    fn line(delta: &str) -> String {
        format!(
            r#"{{"type":"stream_event","event":{{"type":"content_block_delta","index":12,"delta":{delta}}},"session_id":"{SESSION}","parent_tool_use_id":null,"uuid":"ad2e5fef-3f54-4bd7-8082-516ca8c0beb7"}}"#
        )
    }

    #[test]
    fn accepts_lines_of_the_cli() {
        let text = line(r#"{"type":"text_delta","text":"Hé \"quoted\"\n\\"}"#);
        assert_eq!(
            delta(text.as_bytes(), SESSION),
            Some(FastDelta::Text(12, "Hé \"quoted\"\n\\".into()))
        );
        let thinking = line(r#"{"type":"thinking_delta","thinking":"hm"}"#);
        assert_eq!(
            delta(thinking.as_bytes(), SESSION),
            Some(FastDelta::Thinking(12, "hm".into()))
        );
        let input = line(r#"{"type":"input_json_delta","partial_json":"{\"a"}"#);
        assert_eq!(
            delta(input.as_bytes(), SESSION),
            Some(FastDelta::Input(12, "{\"a".into()))
        );
    }

    #[test]
    fn accepts_the_fields_that_later_versions_append() {
        let text = |appended: &str| {
            let line = line(r#"{"type":"text_delta","text":"Hel"}"#);
            let line = line.strip_suffix('}').unwrap();
            format!("{line},{appended}}}")
        };
        for known in [
            r#""api_message_id":"msg_mock_0_0""#,
            r#""thinking_display":"updates","api_message_id":"msg_mock_0_0""#,
            r#""thinking_display":"updates""#,
        ] {
            assert_eq!(
                delta(text(known).as_bytes(), SESSION),
                Some(FastDelta::Text(12, "Hel".into())),
                "{known}"
            );
        }
        for odd in [
            r#""api_message_id":"a\u0062""#,
            r#""api_message_id":"a","b":"c""#,
            "\"api_message_id\":\"a\tb\"",
            r#""api_message_id":"é""#,
            r#""thinking_display":"a\u0062","api_message_id":"a""#,
            r#""api_message_id":"a","api_message_id":"a""#,
        ] {
            assert_eq!(delta(text(odd).as_bytes(), SESSION), None, "{odd}");
        }
    }

    #[test]
    fn leaves_the_rest_to_the_parser() {
        for odd in [
            r#"{"type":"text_delta","text":"\u00e9"}"#,
            r#"{"type":"text_delta","text":"a","more":"b"}"#,
            "{\"type\":\"text_delta\",\"text\":\"\t\"}",
            r#"{"type":"text_delta","text":"\"}"#,
            r#"{"type":"text_delta", "text":"a"}"#,
        ] {
            assert_eq!(delta(line(odd).as_bytes(), SESSION), None, "{odd}");
        }
        let other = line(r#"{"type":"text_delta","text":"a"}"#);
        assert_eq!(
            delta(other.as_bytes(), "00000000-0000-4000-8000-000000000000"),
            None
        );
        assert_eq!(delta(&other.as_bytes()[..other.len() - 1], SESSION), None);
        assert_eq!(
            delta(
                other.replace("\"index\":12", "\"index\":012").as_bytes(),
                SESSION
            ),
            None
        );
    }
}
