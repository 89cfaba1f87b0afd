//! Shortening of text for messages.

/// The first `max` bytes of `text` at most, cut at a character; a cut says how long the whole was.
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

/// The last `max` bytes of `text` at most, cut at a character; a cut is marked by a leading `…`.
pub fn tail(text: &str, max: usize) -> String {
    if text.len() <= max {
        return text.to_owned();
    }
    format!("…{}", &text[text.ceil_char_boundary(text.len() - max)..])
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
}
