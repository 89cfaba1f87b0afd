//! Settings for `--config`, whose values are TOML. The CLI takes an invalid value as a literal string, so strings are
//! quoted to keep them from being parsed as numbers, lists or tables.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::Value;

/// Formats `--config=key="value"`.
pub(super) fn setting(key: &str, value: &str) -> String {
    format!("--config={key}={}", quoted(value))
}

/// Formats `--config=key=value` for a value of any kind. Tables are written inline.
pub(super) fn setting_of(key: &str, value: &Value) -> String {
    let mut setting = format!("--config={key}=");
    write_value(value, &mut setting);
    setting
}

/// Writes a value on one line, with sorted keys. Nulls are left out, because TOML has none.
fn write_value(value: &Value, out: &mut String) {
    match value {
        Value::Null => {}
        // JSON numbers are valid TOML.
        Value::Bool(_) | Value::Number(_) => {
            // Writing to a string cannot fail.
            let _ = write!(out, "{value}");
        }
        Value::String(text) => out.push_str(&quoted(text)),
        Value::Array(items) => {
            out.push('[');
            let items = items.iter().filter(|item| !item.is_null());
            for (index, item) in items.enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_value(item, out);
            }
            out.push(']');
        }
        Value::Object(table) => {
            out.push('{');
            let entries: BTreeMap<_, _> = table.iter().collect();
            let entries = entries.into_iter().filter(|(_, value)| !value.is_null());
            for (index, (key, value)) in entries.enumerate() {
                if index > 0 {
                    out.push(',');
                }
                out.push_str(&key_of(key));
                out.push('=');
                write_value(value, out);
            }
            out.push('}');
        }
    }
}

/// Returns a key, quoted if necessary.
fn key_of(key: &str) -> String {
    let is_bare = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    if !key.is_empty() && key.bytes().all(is_bare) {
        key.to_owned()
    } else {
        quoted(key)
    }
}

/// Returns a TOML string on one line.
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\0'..='\x1f' | '\x7f' => {
                // Writing to a string cannot fail.
                let _ = write!(quoted, "\\u{:04X}", u32::from(c));
            }
            _ => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use proptest::collection::{btree_map, vec};
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// Parses the value of a setting as TOML.
    fn read(setting: &str) -> toml::Value {
        let value = setting.strip_prefix("--config=k=").unwrap();
        let mut table: toml::Table = toml::from_str(&format!("k = {value}\n")).unwrap();
        table.remove("k").unwrap()
    }

    #[test]
    fn ambiguous_toml_values_are_quoted() {
        assert_eq!(
            setting("k", "true \"x\" \\ \n\t\u{7}é\u{2028}"),
            "--config=k=\"true \\\"x\\\" \\\\ \\n\\t\\u0007é\u{2028}\""
        );
    }

    #[test]
    fn a_table_stands_on_one_line() {
        let value = json!({
            "args": ["-x", "a b"],
            "e": {},
            "n": [1, 2.5, true, null],
            "none": null,
            "x.y": {"": "z"},
        });
        assert_eq!(
            setting_of("k", &value),
            r#"--config=k={args=["-x","a b"],e={},n=[1,2.5,true],"x.y"={""="z"}}"#
        );
    }

    proptest! {
        #[test]
        fn any_text_survives(text in any::<String>()) {
            prop_assert_eq!(read(&setting("k", &text)), toml::Value::String(text));
        }

        #[test]
        fn text_of_special_characters_survives(text in "[\\x00-\\x22\\\\u\\x7f=]{0,40}") {
            prop_assert_eq!(read(&setting("k", &text)), toml::Value::String(text));
        }

        #[test]
        fn any_table_survives(
            table in btree_map(any::<String>(), vec(any::<String>(), 0..3), 0..4),
            seconds in 0.001..1e9,
        ) {
            let value = json!({"table": table, "seconds": seconds});
            let read = read(&setting_of("k", &value));
            prop_assert_eq!(read["seconds"].as_float(), Some(seconds));
            let read: BTreeMap<String, Vec<String>> = read["table"].clone().try_into().unwrap();
            prop_assert_eq!(read, table);
        }
    }
}
