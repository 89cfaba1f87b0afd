//! Cuts and insertions in a text.

use std::ops::Range;

/// Returns the line number of this position, from 1.
pub(super) fn line(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

/// Returns the most frequent line break of the text.
pub(super) fn newline(text: &str) -> &'static str {
    let all = text.matches('\n').count();
    let crlf = text.matches("\r\n").count();
    if crlf > all - crlf { "\r\n" } else { "\n" }
}

/// Returns a line break to append to this text. After a lone CR, an LF would merge with it into one break.
pub(super) fn newline_after(before: &str, newline: &'static str) -> &'static str {
    if before.ends_with('\r') {
        "\r\n"
    } else {
        newline
    }
}

/// Returns the position after the line break that begins here, if there is one.
pub(super) fn skip_newline(text: &str, at: usize) -> Option<usize> {
    let rest = &text[at..];
    if rest.starts_with("\r\n") {
        Some(at + 2)
    } else if rest.starts_with('\n') {
        Some(at + 1)
    } else {
        None
    }
}

/// Returns the position before the line break that ends here, if there is one.
pub(super) fn back_newline(text: &str, at: usize) -> Option<usize> {
    let before = &text[..at];
    if before.ends_with("\r\n") {
        Some(at - 2)
    } else if before.ends_with('\n') {
        Some(at - 1)
    } else {
        None
    }
}

/// Returns the start of this position's line.
pub(super) fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind(['\n', '\r']).map_or(0, |end| end + 1)
}

/// Returns the spaces and tabs at the start of this position's line.
pub(super) fn indentation(text: &str, at: usize) -> &str {
    let line = &text[line_start(text, at)..];
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

/// Returns whether only spaces and tabs precede this position in its line, which must not be the first.
pub(super) fn begins_line(text: &str, at: usize) -> bool {
    let start = line_start(text, at);
    start > 0 && text[start..at].trim_start_matches([' ', '\t']).is_empty()
}

/// Returns the text without these ranges, which may be unordered and may overlap.
pub(super) fn cut(text: &str, mut ranges: Vec<Range<usize>>) -> String {
    ranges.sort_by_key(|range| range.start);
    let mut left = String::with_capacity(text.len());
    let mut at = 0;
    for range in ranges {
        if range.start > at {
            left.push_str(&text[at..range.start]);
        }
        at = at.max(range.end);
    }
    left.push_str(&text[at..]);
    left
}

/// Comments between tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Comments {
    /// `// …` and `/* … */`.
    Json,
    /// `# …`.
    Toml,
}

impl Comments {
    /// Returns the end of the comment that begins here, and whether it is a line comment.
    pub(super) fn comment(self, text: &str, at: usize) -> Option<(usize, bool)> {
        let rest = &text[at..];
        let to_line_end = || at + rest.find(['\n', '\r']).unwrap_or(rest.len());
        match self {
            Comments::Json if rest.starts_with("//") => Some((to_line_end(), true)),
            Comments::Json if rest.starts_with("/*") => {
                // The text was parsed, so the comment has an end. `/*/` only begins one.
                Some((
                    rest[2..]
                        .find("*/")
                        .map_or(text.len(), |end| at + 2 + end + 2),
                    false,
                ))
            }
            Comments::Toml if rest.starts_with('#') => Some((to_line_end(), true)),
            _ => None,
        }
    }

    /// Skips white space and comments from this position. Returns the next position, and whether the last skipped
    /// comment is a line comment.
    pub(super) fn skip(self, text: &str, mut at: usize) -> (usize, bool) {
        let mut open = false;
        loop {
            let rest = &text[at..];
            at += rest.len() - rest.trim_start().len();
            let Some((end, by_line)) = self.comment(text, at) else {
                return (at, open);
            };
            at = end;
            open = by_line;
        }
    }

    /// Returns the ranges to cut to remove an item from a comma-separated list. `open` is the position after the
    /// opening brace, `close` that of the closing one, `before` the end of the previous item.
    pub(super) fn cut_item(
        self,
        text: &str,
        (open, close): (usize, usize),
        before: Option<usize>,
        item: Range<usize>,
    ) -> Vec<Range<usize>> {
        let (mut next, _) = self.skip(text, item.end);
        let comma = text[next..close].starts_with(',').then_some(next);
        if let Some(comma) = comma {
            (next, _) = self.skip(text, comma + 1);
        }
        let alone = before.is_none() && next == close;
        if alone && item.start > open {
            let end = comma.map_or(item.end, |comma| comma + 1);
            let blank = |range: Range<usize>| text[range].trim().is_empty();
            let to_comma = comma.is_none_or(|comma| blank(item.end..comma));
            if blank(open..item.start) && to_comma && blank(end..close) {
                return std::iter::once(open..close).collect();
            }
        }

        let previous = before.map(|before| self.skip(text, before).0);
        let mut cuts = Vec::new();
        // Our item was inserted after the comma of another item, or with a comma of its own.
        match (comma, previous) {
            (Some(comma), _) => cuts.push(comma..comma + 1),
            (None, Some(previous)) if text[previous..close].starts_with(',') => {
                cuts.push(previous..previous + 1);
            }
            _ => {}
        }
        let trimmed = text[..item.start].trim_end().len().max(open);
        let (_, open_comment) = self.skip(text, previous.map_or(open, |comma| comma + 1));
        let end = match comma {
            Some(comma) if comma == item.end => comma + 1,
            _ => item.end,
        };
        let line_goes_on = !text[end..]
            .trim_start_matches([' ', '\t'])
            .starts_with(['\n', '\r']);
        let start = if open_comment && line_goes_on {
            item.start
        } else {
            trimmed
        };
        cuts.push(start..item.end);
        cuts
    }
}
