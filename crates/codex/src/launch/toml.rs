//! Settings for `--config`, whose values are TOML. A value that is not becomes a string as it is, so
//! a string must be quoted lest it be taken for a number, a list or a table.

use std::fmt::Write;

/// `--config=key="value"`.
pub(super) fn setting(key: &str, value: &str) -> String {
    format!("--config={key}={}", quoted(value))
}

/// A string of TOML, on one line.
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
    use super::*;
    use proptest::prelude::*;

    /// The text of a basic string of TOML; `None` if it is none. By the rules of TOML 1.0: no
    /// control characters but the tab, no quote, and the escapes that are listed there.
    fn unquoted(toml: &str) -> Option<String> {
        let mut chars = toml.strip_prefix('"')?.strip_suffix('"')?.chars();
        let mut text = String::new();
        while let Some(c) = chars.next() {
            text.push(match c {
                '"' | '\0'..='\x08' | '\x0a'..='\x1f' | '\x7f' => return None,
                '\\' => match chars.next()? {
                    'b' => '\x08',
                    't' => '\t',
                    'n' => '\n',
                    'f' => '\x0c',
                    'r' => '\r',
                    c @ ('"' | '\\') => c,
                    'u' => {
                        let digits: String = chars.by_ref().take(4).collect();
                        char::from_u32(u32::from_str_radix(&digits, 16).ok()?)?
                    }
                    _ => return None,
                },
                c => c,
            });
        }
        Some(text)
    }

    #[test]
    fn what_toml_would_misread_is_quoted() {
        assert_eq!(
            setting("k", "true \"x\" \\ \n\t\u{7}é\u{2028}"),
            "--config=k=\"true \\\"x\\\" \\\\ \\n\\t\\u0007é\u{2028}\""
        );
    }

    proptest! {
        #[test]
        fn any_text_survives(text in any::<String>()) {
            prop_assert_eq!(unquoted(&quoted(&text)), Some(text));
        }

        #[test]
        fn text_of_special_characters_survives(text in "[\\x00-\\x22\\\\u\\x7f=]{0,40}") {
            prop_assert_eq!(unquoted(&quoted(&text)), Some(text));
        }
    }
}
