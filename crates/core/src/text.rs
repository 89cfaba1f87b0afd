//! Text for messages: shortened, and without colors.

use std::borrow::Cow;

/// Returns at most the first `max` bytes of `text`, cut at a character. Cut text is followed by its original length.
pub fn excerpt(text: &str, max: usize) -> String {
    if text.len() <= max {
        return text.to_owned();
    }
    format!(
        "{}… ({} bytes in all)",
        &text[..text.floor_char_boundary(max)],
        text.len()
    )
}

/// Returns at most the last `max` bytes of `text`, cut at a character. Cut text is marked by a leading `…`.
pub fn tail(text: &str, max: usize) -> String {
    if text.len() <= max {
        return text.to_owned();
    }
    format!("…{}", &text[text.ceil_char_boundary(text.len() - max)..])
}

/// Returns the text in one line, without control characters, which could move the cursor or change the order in
/// which the text is shown.
pub fn one_line(text: &str) -> String {
    text.split(|c: char| c.is_whitespace() || c.is_control())
        .map(|word| {
            word.chars()
                .filter(|c| !is_bidi_control(*c))
                .collect::<String>()
        })
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

/// Returns the text without the escape sequences of colors.
///
/// ```
/// assert_eq!(teamster_core::text::without_colors("\u{1b}[1;31mError\u{1b}[0m: x"), "Error: x");
/// ```
pub fn without_colors(text: &str) -> Cow<'_, str> {
    let mut parts = text.split("\u{1b}[");
    let first = parts.next().unwrap_or_default();
    if first.len() == text.len() {
        return Cow::Borrowed(text);
    }
    let mut plain = first.to_owned();
    for part in parts {
        let rest = part.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';');
        plain.push_str(rest.strip_prefix('m').unwrap_or(rest));
    }
    Cow::Owned(plain)
}

/// Returns whether the character has the Unicode property `Bidi_Control`. Such characters can make `gnp.exe`
/// appear as `exe.png`.
pub fn is_bidi_control(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_at_characters() {
        assert_eq!(excerpt("héllo", 2), "h… (6 bytes in all)");
        assert_eq!(tail("hellö", 1), "…");
        assert_eq!(tail("hellö", 2), "…ö");
        assert_eq!(excerpt("abc", 3), "abc");
    }

    #[test]
    fn colours_are_taken_out() {
        // Output of a real CLI.
        let line = "\u{1b}[93m\u{1b}[1m! \u{1b}[0mpermission requested: bash (x)";
        assert_eq!(without_colors(line), "! permission requested: bash (x)");
        assert_eq!(without_colors("a\u{1b}[1;2"), "a");
        assert_eq!(without_colors("plain"), "plain");
    }
}
