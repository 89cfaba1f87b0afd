//! Definitions of links: `[label]: https://example.com "title"`.

use pulldown_cmark::Parser;

use super::line::MOST_HELD;
use crate::words;

/// Returns whether the line is the definition of a link, such as `[label]: https://example.com`. Returns `None` if that is
/// not decided yet.
pub(super) fn is_definition(line: &str, ends: bool) -> Option<bool> {
    if line.len() > MOST_HELD {
        return Some(false);
    }
    let end = label_end(line);
    match end.map(|end| &line[end + 1..]) {
        None | Some("") => ends.then_some(false),
        // It has no event of its own.
        Some(after) if after.starts_with(':') => ends.then(|| Parser::new(line).next().is_none()),
        Some(_) => Some(false),
    }
}

/// Returns the place of the bracket after the label of a link.
fn label_end(line: &str) -> Option<usize> {
    let mut is_escaped = false;
    line.find(|c| {
        let is_end = c == ']' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        is_end
    })
}

/// Returns the definition of a link with its address as a link has it: a mark in it is a part of it, but an escape is none.
pub(super) fn shown(line: &str) -> String {
    let parser = Parser::new(line);
    let found = parser.reference_definitions().iter().next();
    let (Some((_, link)), Some(end)) = (found, label_end(line)) else {
        return line.to_owned();
    };
    let plain = |text: &str| words::printable(text).replace(char::is_control, "");
    let title = link.title.as_deref().map(plain);
    let title = title.map_or_else(String::new, |title| format!(" \"{title}\""));
    format!("{}: {}{title}", &line[..=end], plain(&link.dest))
}
