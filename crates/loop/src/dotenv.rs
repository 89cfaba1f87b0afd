//! The file `.env` of an agent.
//!
//! It is read by our own few lines and not by a crate, because the crates for it replace `$NAME` in values
//! and refuse a file for one odd line: a token with a dollar sign in it would change, and an agent that
//! another loop can start would not be started by this one.

use std::collections::BTreeMap;

/// The variables in the text of such a file: `KEY=VALUE` a line, with `#` comments and quotes that may be
/// left out. What is no such line counts for nothing. The last of two wins.
pub fn parse(text: &str) -> BTreeMap<String, String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    text.lines().filter_map(variable).collect()
}

fn variable(line: &str) -> Option<(String, String)> {
    let line = line.trim();
    if line.starts_with('#') {
        return None;
    }
    let (key, value) = line.split_once('=')?;
    let key = key.trim();
    let key = key.strip_prefix("export ").map_or(key, str::trim_start);
    let value = value.trim();
    // What cannot be in an environment.
    if key.is_empty() || key.contains(char::is_whitespace) || line.contains('\0') {
        return None;
    }
    let quoted = |quote: char| value.strip_prefix(quote)?.strip_suffix(quote);
    let value = quoted('"').or_else(|| quoted('\'')).unwrap_or(value);
    Some((key.to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_comments_and_quotes() {
        let text = "\u{feff}# a comment\n\nA=1\r\n B = two words \nC=\"x # y\"\nD='it''s'\n\
                    E=$A-${B}\nF=\nexport G=7\nA=2\nnonsense\n=x\nH I=3\nJ=a=b\nK=\"\nL=\"x'\n";
        let found = parse(text);
        let expected = [
            ("A", "2"),
            ("B", "two words"),
            ("C", "x # y"),
            ("D", "it''s"),
            ("E", "$A-${B}"),
            ("F", ""),
            ("G", "7"),
            ("J", "a=b"),
            ("K", "\""),
            ("L", "\"x'"),
        ];
        let expected = expected.map(|(key, value)| (key.to_owned(), value.to_owned()));
        assert_eq!(found, BTreeMap::from(expected));
    }
}
