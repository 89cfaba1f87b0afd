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

/// Returns the text, such as a path, without control characters, which could move the cursor or change the order in which
/// the text is shown. Spaces stay as they are.
pub fn printable(text: &str) -> String {
    text.chars()
        .filter(|c| !(c.is_control() || is_bidi_control(*c)))
        .collect()
}

/// Formats a count with its noun: `1 turn`, `2 turns`.
pub fn plural(n: u64, one: &str) -> String {
    if n == 1 {
        format!("1 {one}")
    } else {
        format!("{n} {one}s")
    }
}

/// Returns the text without the escape sequences of terminals, such as colors.
///
/// ```
/// assert_eq!(teamster_core::text::without_colors("\u{1b}[1;31mError\u{1b}[0m: x"), "Error: x");
/// ```
pub fn without_colors(text: &str) -> Cow<'_, str> {
    let Some(mut at) = text.find('\u{1b}') else {
        return Cow::Borrowed(text);
    };
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    loop {
        plain.push_str(&rest[..at]);
        rest = &rest[at + escape_sequence_bytes(&rest[at..])..];
        match rest.find('\u{1b}') {
            Some(next) => at = next,
            None => break,
        }
    }
    plain.push_str(rest);
    Cow::Owned(plain)
}

/// Returns the text as a person sees it: without escape sequences, and with a space for each run of other control
/// characters. Tabs stay.
///
/// ```
/// assert_eq!(teamster_core::text::visible("\u{feff}10%\r\u{1b}[2K100%\0"), "10% 100%");
/// ```
pub fn visible(text: &str) -> String {
    let mut seen = String::new();
    let mut gap = false;
    for c in without_colors(text).chars() {
        if c == '\u{feff}' || (c.is_control() && c != '\t') {
            gap = true;
        } else {
            if std::mem::take(&mut gap) && !seen.ends_with(' ') && c != ' ' {
                seen.push(' ');
            }
            seen.push(c);
        }
    }
    let end = seen.trim_end().len();
    seen.truncate(end);
    seen.trim_start().to_owned()
}

/// Returns the length of the escape sequence at the start of `text`, which begins with ESC, in bytes. One that is not
/// complete reaches to the end.
pub(crate) fn escape_sequence_bytes(text: &str) -> usize {
    let bytes = text.as_bytes();
    let run = |from: usize, part: fn(&u8) -> bool| {
        let rest = bytes.get(from..).unwrap_or_default();
        from + rest.iter().take_while(|byte| part(byte)).count()
    };
    match bytes.get(1) {
        // Parameters, then a letter.
        Some(b'[') => {
            let end = run(2, |byte| matches!(byte, 0x20..=0x3f));
            end + usize::from(matches!(bytes.get(end), Some(0x40..=0x7e)))
        }
        // A title or a link, up to BEL or ESC \.
        Some(b']' | b'P' | b'X' | b'^' | b'_') => {
            let end = run(2, |byte| !matches!(byte, 0x07 | 0x1b));
            match &bytes[end..] {
                [0x07, ..] => end + 1,
                [0x1b, b'\\', ..] => end + 2,
                _ => end,
            }
        }
        Some(0x20..=0x2f) => {
            let end = run(1, |byte| matches!(byte, 0x20..=0x2f));
            end + usize::from(matches!(bytes.get(end), Some(0x30..=0x7e)))
        }
        Some(0x30..=0x7e) => 2,
        _ => 1,
    }
}

/// Returns the line of a stack trace of Node.js or Python with the name and the message of the error, such as
/// `SyntaxError: Unexpected token`. `None` if the text has no stack trace.
pub fn error_of_stack(text: &str) -> Option<&str> {
    let is_python = text.contains("Traceback (most recent call last)");
    // Node.js ends with its version, also where the frames were removed.
    let is_node = |line: &str| line.starts_with("    at ") || line.starts_with("Node.js v");
    if !is_python && !text.lines().any(is_node) {
        return None;
    }
    let mut lines = text.lines().map(str::trim_end).filter(|line| {
        let Some((name, _)) = line.split_once(": ") else {
            return false;
        };
        // `TypeError [ERR_UNKNOWN]`
        let name = name.split(" [").next().unwrap_or_default();
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
        name.ends_with("Error") && name.chars().all(is_name)
    });
    // The last one of a chain in Python. Node.js indents the causes.
    if is_python {
        lines.next_back()
    } else {
        lines.next()
    }
}

/// Returns whether the character has the Unicode property `Bidi_Control`. Such characters can make `gnp.exe`
/// appear as `exe.png`.
pub fn is_bidi_control(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Returns whether a JSON string can have this text between its quotes as it is: there is no control character, quote or
/// backslash in it.
pub fn is_plain_json(text: &[u8]) -> bool {
    plain_json_bytes(text) == text.len()
}

/// Returns the length of the beginning of `text` that is [plain](is_plain_json), in bytes.
pub(crate) fn plain_json_bytes(text: &[u8]) -> usize {
    const ONES: u64 = u64::MAX / 0xff;
    /// Has the highest bit set in some byte if a byte is below `limit`, which is at most 128. The lowest such bit is that
    /// of the first of these bytes.
    fn below(bytes: u64, limit: u8) -> u64 {
        bytes.wrapping_sub(ONES * u64::from(limit)) & !bytes & (ONES << 7)
    }
    // Eight bytes at once, which is also fast where a compiler that saves space does not vectorise loops.
    let (words, rest) = text.as_chunks::<8>();
    let mut len = 0;
    for word in words {
        let bytes = u64::from_le_bytes(*word);
        let is = |byte: u8| below(bytes ^ (ONES * u64::from(byte)), 1);
        let odd = below(bytes, b' ') | is(b'"') | is(b'\\');
        if odd != 0 {
            return len + odd.trailing_zeros() as usize / 8;
        }
        len += word.len();
    }
    let odd = |byte: &u8| matches!(byte, ..b' ' | b'"' | b'\\');
    len + rest.iter().position(odd).unwrap_or(rest.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_at_characters() {
        assert_eq!(excerpt("héllo", 2), "h… (6 bytes in all)");
        assert_eq!(tail("hellö", 1), "…");
        assert_eq!(tail("hellö", 2), "…ö");
        assert_eq!(tail("abc", 3), "abc");
        assert_eq!(excerpt("abc", 3), "abc");
    }

    #[test]
    fn cursor_movements_are_not_shown() {
        for (text, seen) in [
            ("\u{1b}[?25l\u{1b}[2Kready\u{1b}[0m", "ready"),
            ("\u{1b}]0;a title\u{7}ready", "ready"),
            ("\u{1b}]8;;http://x\u{1b}\\link\u{1b}]8;;\u{1b}\\", "link"),
            ("\u{1b}]0;no end", ""),
            ("\u{1b}(Ba\u{1b}7b\u{1b}", "ab"),
            ("\u{1b}[12", ""),
            ("\u{1b}[1é", "é"),
            ("a \u{8}\u{9b}\0 b\tc", "a  b\tc"),
            ("a\0 b", "a b"),
            ("a \0b", "a b"),
            ("\u{1b}P1$r\u{1b}\\a", "a"),
            ("\u{1b}Xx\u{1b}\\a", "a"),
            ("\u{1b}^x\u{7}a", "a"),
            ("\u{1b}_x\u{1b}\\a", "a"),
            ("  two  words \r\n", "two  words"),
        ] {
            assert_eq!(visible(text), seen, "{text:?}");
        }
    }

    #[test]
    fn characters_that_change_the_order_of_text_are_not_shown() {
        for c in [
            '\u{61c}', '\u{200e}', '\u{200f}', '\u{202a}', '\u{202e}', '\u{2066}', '\u{2069}',
        ] {
            let text = format!(" a{c}b\t{c}\r\nc\u{1b}d ");
            assert_eq!(one_line(&text), "ab c d", "{c:?}");
            assert_eq!(printable(&text), " abcd ", "{c:?}");
        }
        for c in [
            '\u{200d}', '\u{2010}', '\u{2029}', '\u{202f}', '\u{2065}', '\u{206a}',
        ] {
            assert!(!is_bidi_control(c), "{c:?}");
        }
    }

    #[test]
    fn the_error_of_a_stack_trace() {
        // Made by hand: as Node.js 20 prints it.
        let node = "file:///opt/cli/dist/main.mjs:20\nimport { x } from 'node:sqlite';\n         ^\n\n\
            SyntaxError: The requested module 'x' does not provide an export named 'y'\n    \
            at ModuleJob._instantiate (node:internal/modules/esm/module_job:180:21)\n\nNode.js v20.20.2\n";
        assert_eq!(
            error_of_stack(node),
            Some("SyntaxError: The requested module 'x' does not provide an export named 'y'")
        );
        let coded = "node:internal/modules/cjs/loader:1\nError [ERR_X]: No such built-in module\n    at a (b:1)\n";
        assert_eq!(
            error_of_stack(coded),
            Some("Error [ERR_X]: No such built-in module")
        );
        // Made by hand: as Python prints it.
        let python = "Traceback (most recent call last):\n  File \"x\", line 1\nKeyError: 'a'\n\nDuring handling:\n\n\
            Traceback (most recent call last):\n  File \"x\", line 2\nmodule.CustomError: no key\n";
        assert_eq!(error_of_stack(python), Some("module.CustomError: no key"));
        assert_eq!(error_of_stack("Error: no such model\nlook at it"), None);
        let without_frames = "file:///x.js:3\nimport a\n\nSyntaxError: no a\n\nNode.js v18.19.0\n";
        assert_eq!(error_of_stack(without_frames), Some("SyntaxError: no a"));
        let after_others = "Loading: a\nNot an Error: b\nSyntaxError: no a\nNode.js v22.1.0\n";
        assert_eq!(error_of_stack(after_others), Some("SyntaxError: no a"));
    }

    #[test]
    fn colours_are_taken_out() {
        // Output of a real CLI.
        let line = "\u{1b}[93m\u{1b}[1m! \u{1b}[0mpermission requested: bash (x)";
        assert_eq!(without_colors(line), "! permission requested: bash (x)");
        assert_eq!(without_colors("a\u{1b}[1;2"), "a");
        assert_eq!(without_colors("plain"), "plain");
    }

    #[test]
    fn a_byte_that_is_not_plain_is_found_wherever_it_is() {
        for (len, others) in (0..20).flat_map(|len| [b' ', b'!', b'a', 0xff].map(|it| (len, it))) {
            let plain = vec![others; len];
            assert!(is_plain_json(&plain), "{len} of {others}");
            for (at, byte) in (0..len).flat_map(|at| (0..=u8::MAX).map(move |it| (at, it))) {
                let mut text = plain.clone();
                text[at] = byte;
                let is_plain = byte >= b' ' && byte != b'"' && byte != b'\\';
                let expected = if is_plain { len } else { at };
                assert_eq!(
                    plain_json_bytes(&text),
                    expected,
                    "{byte} at {at} of {len} of {others}"
                );
            }
        }
    }
}
