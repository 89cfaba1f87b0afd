//! JSON that is valid and that no reader of ours can hold: half of a character, or a number out of range.

use crate::provider::surrogates;

/// Length of a number without an exponent up to which it is in the range of `f64`, in bytes.
const SHORT_NUMBER: usize = 300;

/// Replaces what neither a Rust string nor a number can hold: a lone surrogate escape by `\ufffd`, and a number beyond
/// the range of `f64` by a string of its text. `None` if there is none of either.
///
/// ```
/// use teamster_core::provider::json_line::readable;
///
/// let read = readable(r#"{"half":"\ud83d","much":-1e999,"some":1e9}"#);
/// assert_eq!(read.as_deref(), Some(r#"{"half":"\ufffd","much":"-1e999","some":1e9}"#));
/// assert_eq!(readable(r#"{"pair":"\ud83d\ude00","text":"1e999"}"#), None);
/// ```
pub fn readable(json: &str) -> Option<String> {
    let whole = surrogates::without_lone_escapes(json);
    with_numbers_in_range(whole.as_deref().unwrap_or(json)).or(whole)
}

fn with_numbers_in_range(json: &str) -> Option<String> {
    let bytes = json.as_bytes();
    let mut quoted: Option<String> = None;
    let (mut copied, mut at) = (0, 0);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => at = end_of_string(bytes, at),
            b'-' | b'0'..=b'9' => {
                let end = end_of_number(bytes, at);
                if is_out_of_range(&json[at..end]) {
                    let quoted = quoted.get_or_insert_with(String::new);
                    quoted.extend([&json[copied..at], "\"", &json[at..end], "\""]);
                    copied = end;
                }
                at = end;
            }
            _ => at += 1,
        }
    }
    let mut quoted = quoted?;
    quoted.push_str(&json[copied..]);
    Some(quoted)
}

/// Returns the offset after the string that begins at `at`.
fn end_of_string(bytes: &[u8], mut at: usize) -> usize {
    at += 1;
    while let Some(found) = memchr::memchr2(b'"', b'\\', bytes.get(at..).unwrap_or_default()) {
        at += found;
        if bytes[at] == b'"' {
            return at + 1;
        }
        at += 2;
    }
    bytes.len()
}

fn end_of_number(bytes: &[u8], at: usize) -> usize {
    let is_part = |byte: &u8| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E');
    let length = bytes[at..].iter().position(|byte| !is_part(byte));
    length.map_or(bytes.len(), |length| at + length)
}

fn is_out_of_range(number: &str) -> bool {
    (number.len() > SHORT_NUMBER || number.contains(['e', 'E']))
        && number.parse::<f64>().is_ok_and(f64::is_infinite)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn only_parts_that_cannot_be_read_are_replaced() {
        // Made by hand.
        let digits = "9".repeat(400);
        for (json, expected) in [
            ("[1e308,1E309]".to_owned(), r#"[1e308,"1E309"]"#),
            (format!("[-{digits}]"), &format!("[\"-{digits}\"]")),
            (
                r#"{"1e999":"1e999\"1e999",  "a":1e999}"#.to_owned(),
                r#"{"1e999":"1e999\"1e999",  "a":"1e999"}"#,
            ),
            (
                r#"["\udc00",1e+400 ]"#.to_owned(),
                "[\"\\ufffd\",\"1e+400\" ]",
            ),
        ] {
            assert!(serde_json::from_str::<Value>(&json).is_err(), "{json}");
            let read = readable(&json);
            assert_eq!(read.as_deref(), Some(expected), "{json}");
            assert!(serde_json::from_str::<Value>(expected).is_ok(), "{json}");
        }
        for json in [
            "[0,-0,1.5e-400,18446744073709551616,1e308]",
            "[\"\\\\\",\"",
            "-",
            "",
        ] {
            assert_eq!(readable(json), None, "{json}");
        }
    }
}
