//! Parsing of JSON lines as CLIs print them.
//!
//! Decoders use flat structs with optional fields, borrowed if possible. Unknown fields are skipped, and a field
//! of an unexpected type counts as missing.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

pub use crate::readable_json::readable;

/// Calls `read` with a line as text. If it returns `None`, calls it again with a [`readable`] line: JavaScript prints
/// lone surrogates, which Rust strings cannot hold.
pub fn read<T>(line: &[u8], mut read: impl FnMut(&str) -> Option<T>) -> Option<T> {
    let text = text(line);
    read(&text).or_else(|| read(&readable(&text)?))
}

/// Returns a line as text. What is not UTF-8 becomes U+FFFD.
pub fn text(line: &[u8]) -> Cow<'_, str> {
    // The check of `from_utf8` looks at many bytes of ASCII at once, that of `from_utf8_lossy` at each.
    str::from_utf8(line).map_or_else(|_| String::from_utf8_lossy(line), Cow::Borrowed)
}

/// Parses a line as `T`; `None` if it does not match.
pub fn parse<'a, T: Deserialize<'a>>(line: &'a str) -> Option<T> {
    serde_json::from_str(line).ok()
}

/// Makes a part of a line [`readable`] that is parsed after the line itself: then it is too late for [`read`] to try the
/// line again.
///
/// ```
/// use serde_json::value::RawValue;
/// use teamster_core::provider::json_line::{parse, repaired};
///
/// let raw: &RawValue = parse(r#"["\ud83d"]"#).unwrap();
/// assert_eq!(parse::<Vec<String>>(raw.get()), None);
/// assert_eq!(parse::<Vec<String>>(repaired(raw).get()), Some(vec!["\u{fffd}".to_owned()]));
/// ```
pub fn repaired(raw: &RawValue) -> Cow<'_, RawValue> {
    let replaced = readable(raw.get()).and_then(|text| RawValue::from_string(text).ok());
    replaced.map_or(Cow::Borrowed(raw), Cow::Owned)
}

/// Parses any JSON value. In it, what no value can hold is replaced ([`readable`]), and one that is nested too deeply
/// becomes a string.
pub fn value(raw: &RawValue) -> Value {
    let text = raw.get();
    let replaced = || serde_json::from_str(&readable(text)?).ok();
    (serde_json::from_str(text).ok().or_else(replaced))
        .unwrap_or_else(|| Value::String(text.to_owned()))
}

/// Returns the `type` of a line. If it is the first field, as with most CLIs, the rest is not parsed.
///
/// ```
/// use teamster_core::provider::json_line::type_of;
///
/// assert_eq!(type_of(r#"{"type":"text","x":1}"#).as_deref(), Some("text"));
/// assert_eq!(type_of(r#"{"x":1,"type":"text"}"#).as_deref(), Some("text"));
/// assert_eq!(type_of(r#"{"x":1}"#), None);
/// ```
pub fn type_of(line: &str) -> Option<Cow<'_, str>> {
    #[derive(Deserialize)]
    struct Tag<'a> {
        #[serde(borrow, rename = "type")]
        kind: Option<Cow<'a, str>>,
    }

    if let Some(rest) = line.strip_prefix(r#"{"type":""#)
        && let Some(end) = rest.find(['"', '\\'])
        && rest.as_bytes()[end] == b'"'
    {
        return Some(Cow::Borrowed(&rest[..end]));
    }
    parse::<Tag<'_>>(line)?.kind
}

/// Deserializes a field, with the default for an unexpected type.
///
/// For `#[serde(default, deserialize_with = "json_line::or_default")]`, so that one unexpected figure does not
/// lose the line with the end of a run. Works only with [`parse`], which deserializes from text.
///
/// # Errors
///
/// Fails if the value is not JSON, or if it is [`readable`] only with replacements: it is not unexpected, and [`read`]
/// tries the line again. A part of a line that is parsed later has to be [`repaired`] before.
pub fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    part(<&RawValue>::deserialize(deserializer)?)
}

/// Parses a part of a line while the line itself is parsed, as [`or_default`].
///
/// # Errors
///
/// As [`or_default`].
pub fn part<'de, T, E>(raw: &'de RawValue) -> Result<T, E>
where
    T: Default + Deserialize<'de>,
    E: serde::de::Error,
{
    serde_json::from_str(raw.get()).or_else(|error| match readable(raw.get()) {
        Some(_) => Err(E::custom(error)),
        None => Ok(T::default()),
    })
}

/// Deserializes any value. One that is nested too deeply becomes a string of its text.
///
/// Works only with [`parse`], as [`or_default`].
///
/// # Errors
///
/// Fails if the value is not JSON, or is [`readable`] only with replacements.
pub fn of_any_depth<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
    let raw = <&RawValue>::deserialize(deserializer)?.get();
    serde_json::from_str(raw).or_else(|error| {
        if error.to_string().starts_with("recursion limit") {
            Ok(Value::String(raw.to_owned()))
        } else {
            Err(serde::de::Error::custom(error))
        }
    })
}

/// Rounds a number with a fraction, such as milliseconds, up to an integer. `None` if it is negative, NaN or 1e15
/// and more.
///
/// ```
/// use teamster_core::provider::json_line::whole;
///
/// assert_eq!(whole(1500.2), Some(1501));
/// assert_eq!(whole(-1.0), None);
/// assert_eq!(whole(f64::NAN), None);
/// ```
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the range is checked"
)]
pub fn whole(number: f64) -> Option<u64> {
    (0.0..1e15).contains(&number).then(|| number.ceil() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_with_half_a_pair_is_read_after_all() {
        let value = |text: &str| parse::<Value>(text);
        let read = |line: &str| read(line.as_bytes(), value).map(|v| v["a"].to_string());
        assert_eq!(read(r#"{"a":"\ud83d!"}"#).as_deref(), Some("\"\u{FFFD}!\""));
        assert_eq!(
            read(r#"{"a":"\ud83d\ude00"}"#).as_deref(),
            Some("\"\u{1F600}\"")
        );
        assert_eq!(read(r#"{"a":"#), None);
    }

    #[test]
    fn numbers_below_1e15_are_rounded_up() {
        for (number, expected) in [
            (-0.1, None),
            (0.0, Some(0)),
            (0.1, Some(1)),
            (999_999_999_999_999.0, Some(999_999_999_999_999)),
            (1e15, None),
        ] {
            assert_eq!(whole(number), expected, "{number}");
        }
    }

    #[test]
    fn a_type_with_an_escape_is_read_whole() {
        assert_eq!(type_of(r#"{"type":"a\"b"}"#).as_deref(), Some("a\"b"));
        assert_eq!(type_of(r#"{"type":"a"#), None);
    }

    #[test]
    fn a_value_of_any_depth_is_read_or_is_its_text() {
        #[derive(Deserialize)]
        struct Line {
            #[serde(default, deserialize_with = "of_any_depth")]
            input: Value,
        }
        let input = |text: &str| parse::<Line>(text).map(|line| line.input);
        assert_eq!(input(r#"{"input":[1]}"#), Some(serde_json::json!([1])));
        assert_eq!(input("{}"), Some(Value::Null));
        assert_eq!(input(r#"{"input":"\ud83d"}"#), None);
        let deep = format!("{}{}", "[".repeat(9000), "]".repeat(9000));
        let line = format!(r#"{{"input":{deep}}}"#);
        assert_eq!(input(&line), Some(Value::String(deep)));
    }

    // Made by hand: JSON that Rust cannot hold as it is.
    #[test]
    fn half_a_character_and_a_huge_number_cost_no_field() {
        #[derive(Deserialize)]
        struct Line<'a> {
            #[serde(default, deserialize_with = "or_default", borrow)]
            title: Option<Cow<'a, str>>,
            #[serde(default, deserialize_with = "or_default")]
            count: Option<u64>,
            input: &'a RawValue,
        }
        let line = br#"{"title":"a\ud83d","count":1e999,"input":{"n":-1e999,"t":"\udc00"}}"#;
        let seen = read(line, |text| {
            let line: Line<'_> = parse(text)?;
            Some((line.title?.into_owned(), line.count, value(line.input)))
        });
        let input = serde_json::json!({"n": "-1e999", "t": "\u{fffd}"});
        assert_eq!(seen, Some(("a\u{fffd}".to_owned(), None, input)));
    }

    #[test]
    fn an_unexpected_shape_is_no_value() {
        #[derive(Deserialize)]
        struct Line {
            #[serde(default, deserialize_with = "or_default")]
            count: Option<u64>,
        }
        let count = |text| parse::<Line>(text).unwrap().count;
        assert_eq!(count(r#"{"count":"1e999"}"#), None);
        assert_eq!(count(r#"{"count":3}"#), Some(3));
        assert_eq!(count(r#"{"count":{"x":[1]}}"#), None);
        assert_eq!(count("{}"), None);
    }
}
