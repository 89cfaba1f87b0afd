//! HTML in Markdown: where it begins and ends.

use pulldown_cmark::{Event, Parser, Tag};

/// Returns what ends the HTML that begins with this line: one of the texts, without them a blank line. Returns `None` if
/// it begins no HTML.
pub(super) fn ending(line: &str, in_paragraph: bool) -> Option<&'static [&'static str]> {
    const ENDINGS: &[(&str, &[&str])] = &[
        ("<!--", &["-->"]),
        ("<?", &["?>"]),
        ("<![cdata[", &["]]>"]),
        ("<!", &[">"]),
        ("<script", RAW),
        ("<pre", RAW),
        ("<style", RAW),
        ("<textarea", RAW),
    ];
    const RAW: &[&str] = &["</script>", "</pre>", "</style>", "</textarea>"];
    let before = if in_paragraph { "a\n" } else { "" };
    let source = format!("{before}{line}");
    if !Parser::new(&source).any(|event| matches!(event, Event::Start(Tag::HtmlBlock))) {
        return None;
    }
    let line = line.to_ascii_lowercase();
    let is_whole = |name: &str| {
        let after = line.strip_prefix(name)?.chars().next();
        Some(after.is_none_or(|c| !name.ends_with(char::is_alphabetic) || " \t>".contains(c)))
    };
    let found = ENDINGS
        .iter()
        .find(|(name, _)| is_whole(name) == Some(true));
    Some(found.map_or(&[], |(_, ending)| *ending))
}

/// Returns whether the line has one of the texts that end its HTML.
pub(super) fn ends(line: &str, ending: &[&str]) -> bool {
    let line = line.to_ascii_lowercase();
    ending.iter().any(|end| line.contains(end))
}
