//! Shortened strings.

/// Length of the longest string that is shown uncut, in characters.
const UNCUT: usize = 120;
/// Number of characters that are shown at the beginning and at the end of a longer one.
const HEAD: usize = 80;
const TAIL: usize = 24;

/// Returns a string in quotes, cut in the middle if it is long.
pub(super) fn quoted(text: &str) -> String {
    cut(text, |part| format!("{part:?}"))
}

/// Returns a string without quotes, cut in the middle if it is long. It must not contain newlines.
pub(super) fn plain(text: &str) -> String {
    cut(text, str::to_owned)
}

/// Returns a name, without quotes if it is unambiguous.
pub(super) fn name(text: &str) -> String {
    if !text.is_empty() && text.chars().all(|c| !c.is_whitespace() && !c.is_control()) {
        plain(text)
    } else {
        quoted(text)
    }
}

fn cut(text: &str, show: impl Fn(&str) -> String) -> String {
    let starts: Vec<usize> = text.char_indices().map(|(index, _)| index).collect();
    if starts.len() <= UNCUT {
        return show(text);
    }
    let head = &text[..starts[HEAD]];
    let tail = &text[starts[starts.len() - TAIL]..];
    format!(
        "{} … {} ({} bytes, {})",
        show(head),
        show(tail),
        text.len(),
        hash([text])
    )
}

/// Returns a short hash of strings and their boundaries: FNV-1a, folded to 32 bits. It only has to reveal
/// changes, and must be the same on every machine and in every version.
pub(super) fn hash<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for text in texts {
        // The byte 0xff does not occur in UTF-8.
        for byte in text.bytes().chain([0xff]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
    format!("#{:08x}", (hash ^ (hash >> 32)) & 0xffff_ffff)
}
