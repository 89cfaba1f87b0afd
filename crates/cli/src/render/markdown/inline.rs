//! Text in Markdown: bold, code, links and the like.
//!
//! The crate `pulldown-cmark` reads them. Here is decided when more text can no longer change what it has read.

use std::ops::Range;

use anstyle::{AnsiColor, Style};
use pulldown_cmark::{Event, LinkType, Options, Parser, Tag};

use super::paper::Paper;
use crate::words;

/// Maximum length of text that waits for the end of its style, in bytes.
const MOST_HELD: usize = 400;
/// Maximum width of code that is not wrapped, in columns.
const UNBROKEN: usize = 40;
/// Maximum length of the name of an entity, in bytes.
const LONGEST_NAME: usize = 32;

/// The end of a line within a paragraph: white space for Markdown, and no character that a text has here.
pub(super) const BREAK: char = '\u{c}';
pub(super) const CODE: Style = AnsiColor::Cyan.on_default();

/// A piece of text.
pub(super) enum Span<'a> {
    Text(Style, &'a str),
    Code(Style, &'a str),
    /// The next line of a paragraph.
    Break,
}

/// Writes the spans of a text.
pub(super) fn write(span: &Span<'_>, paper: &mut Paper) {
    match span {
        Span::Code(style, text) if console::measure_text_width(text) <= UNBROKEN => {
            paper.unbroken(*style, text);
        }
        Span::Text(style, text) | Span::Code(style, text) => paper.text(*style, text),
        Span::Break => paper.break_line(),
    }
}

/// Finds the spans of `text`, which follows the character `before`. Returns the number of bytes that are decided: all if
/// the text `ends` here.
pub(super) fn spans(
    text: &str,
    ends: bool,
    before: Option<char>,
    style: Style,
    emit: &mut dyn FnMut(Span<'_>),
) -> usize {
    // The next line may be one of another paragraph.
    let end = match text.strip_suffix(BREAK) {
        Some(text) if !ends => text.len(),
        _ => text.len(),
    };
    let (mut at, mut plain, mut before) = (0, 0, before);
    while let Some(c) = text[at..end].chars().next() {
        if !matches!(c, '\\' | '`' | '*' | '_' | '~' | '[' | '!' | '<' | '&') {
            at += c.len_utf8();
            before = Some(c);
            continue;
        }
        let rest = &text[at..];
        let window = &rest[..rest.floor_char_boundary(MOST_HELD)];
        let is_closed = ends || window.len() < rest.len() || rest.len() >= MOST_HELD;
        let count = match markup(window, is_closed, before) {
            Markup::Open => break,
            Markup::Literal(count) => {
                before = rest[..count].chars().next_back();
                at += count;
                continue;
            }
            Markup::Is(count, shown) => {
                lines(style, &text[plain..at], emit);
                lines(style, &shown, emit);
                count
            }
            Markup::Read(run) => {
                lines(style, &text[plain..at], emit);
                read(window, run, before, style, emit)
            }
        };
        before = rest[..count].chars().next_back();
        at += count;
        plain = at;
    }
    lines(style, &text[plain..at], emit);
    at
}

/// Emits text with the ends of its lines.
fn lines(style: Style, text: &str, emit: &mut dyn FnMut(Span<'_>)) {
    for (i, line) in text.split(BREAK).enumerate() {
        if i > 0 {
            emit(Span::Break);
        }
        if !line.is_empty() {
            emit(Span::Text(style, line));
        }
    }
}

/// Result of reading a mark.
enum Markup {
    /// It is not decided yet.
    Open,
    /// This number of bytes is text.
    Literal(usize),
    /// This number of bytes is shown as another text.
    Is(usize, String),
    /// The mark has this number of bytes, and what it means is decided.
    Read(usize),
}

/// Reads the mark at the beginning of `text`. `is_closed`: no more text can decide it.
fn markup(text: &str, is_closed: bool, before: Option<char>) -> Markup {
    let open = |literal: usize| {
        if is_closed {
            Markup::Literal(literal)
        } else {
            Markup::Open
        }
    };
    let Some(mark) = text.chars().next() else {
        return Markup::Open;
    };
    let run = text.len() - text.trim_start_matches(mark).len();
    let next = text[1..].chars().next();
    match (mark, next) {
        // Whether the line is the last one of its paragraph is not known.
        ('\\', Some(BREAK)) if text.len() == 2 => open(1),
        ('\\', Some(BREAK)) => Markup::Is(1, String::new()),
        ('\\', Some(c)) if c.is_ascii_punctuation() => Markup::Is(2, c.to_string()),
        ('!', Some('[')) | ('[', _) | ('<', Some('/' | '!' | '?' | 'a'..='z' | 'A'..='Z')) => {
            settled(text, 1, is_closed, before)
        }
        ('\\' | '!' | '<', None) => open(1),
        ('&', _) => entity(text, is_closed),
        ('`', _) => settled(text, run, is_closed, before),
        ('*' | '_' | '~', _) => match text[run..].chars().next() {
            None => open(run),
            Some(next) if !may_open(mark, before, next) || mark == '~' && run != 2 => {
                Markup::Literal(run)
            }
            Some(_) => settled(text, run, is_closed, before),
        },
        _ => Markup::Literal(1),
    }
}

/// Returns `true` if a run of these marks can begin an emphasis.
fn may_open(mark: char, before: Option<char>, next: char) -> bool {
    let in_word = before.is_some_and(char::is_alphanumeric);
    let ends_word = in_word && (mark == '_' || !next.is_alphanumeric());
    !next.is_whitespace() && !ends_word
}

/// Returns whether what begins with a mark of `run` bytes is decided.
fn settled(text: &str, run: usize, is_closed: bool, before: Option<char>) -> Markup {
    if is_closed || is_firm(text, before) {
        Markup::Read(run)
    } else if text.starts_with(['[', '!']) && is_no_link(text) {
        Markup::Literal(run)
    } else {
        Markup::Open
    }
}

/// A text as Markdown has it in a paragraph.
struct Source {
    text: String,
    /// Bytes before it that stand for the character before it.
    skipped: usize,
}

impl Source {
    fn new(text: &str, before: Option<char>) -> Self {
        let prefix = match before {
            Some(c) if c.is_alphanumeric() => "a",
            Some(c) if !c.is_whitespace() => "a.",
            _ => "a ",
        };
        Self {
            text: format!("{prefix}{text}"),
            skipped: prefix.len(),
        }
    }

    /// Returns the events in the text, each with its place there.
    fn events(&self) -> impl Iterator<Item = (Event<'_>, Range<usize>)> {
        let skipped = self.skipped;
        let parser = Parser::new_ext(&self.text, Options::ENABLE_STRIKETHROUGH);
        (parser.into_offset_iter())
            .filter(move |(event, range)| {
                range.end > skipped && !matches!(event, Event::Start(Tag::Paragraph))
            })
            .map(move |(event, range)| {
                (
                    event,
                    range.start.saturating_sub(skipped)..range.end - skipped,
                )
            })
    }
}

/// Returns `true` if the text begins with a style, code, link or tag that more text leaves as it is.
fn is_firm(text: &str, before: Option<char>) -> bool {
    let source = Source::new(text, before);
    let mut events = source.events();
    let Some((first, whole)) = events.next() else {
        return false;
    };
    let is_link = |tag: &Tag<'_>| {
        let (Tag::Link { link_type, .. } | Tag::Image { link_type, .. }) = tag else {
            return None;
        };
        Some(matches!(link_type, LinkType::Autolink | LinkType::Email))
    };
    // Code, tags and addresses in brackets, in which nothing else is Markdown.
    let is_opaque = |event: &Event<'_>| match event {
        Event::Code(_) | Event::InlineHtml(_) => true,
        Event::Start(tag) => is_link(tag) == Some(true),
        _ => false,
    };
    let next = text[whole.end..].chars().next();
    let is_longer = next.is_none() || next == text.chars().next();
    match &first {
        Event::InlineHtml(_) => return true,
        Event::Code(_) => return !is_longer,
        Event::Start(tag) => match is_link(tag) {
            Some(true) => return true,
            None if is_longer => return false,
            _ => {}
        },
        _ => return false,
    }
    let (mut opaque, mut brackets) = (Vec::new(), false);
    for (event, range) in events.take_while(|(_, range)| range.end <= whole.end) {
        if is_opaque(&event) {
            opaque.push(range);
        } else if matches!(event, Event::Text(_)) {
            brackets |= has_mark(text, &range, &['['], &[]);
        }
    }
    // Each may be the beginning of what takes the end of the style or link.
    !brackets && !has_mark(text, &whole, &['`', '<'], &opaque)
}

/// Returns `true` if a part of the text has one of the characters, neither after a backslash nor in `opaque` parts.
fn has_mark(text: &str, part: &Range<usize>, marks: &[char], opaque: &[Range<usize>]) -> bool {
    text[part.clone()].match_indices(marks).any(|(at, _)| {
        let at = part.start + at;
        !is_escaped(text, at) && !opaque.iter().any(|range| range.contains(&at))
    })
}

fn is_escaped(text: &str, at: usize) -> bool {
    let before = &text[..at];
    (before.len() - before.trim_end_matches('\\').len()) % 2 == 1
}

/// Returns `true` if the text in brackets at the beginning has no address, in front of any text.
fn is_no_link(text: &str) -> bool {
    let mut depth = 0_usize;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '`' | '<' => return false,
            '\\' => {
                chars.next();
            }
            '[' => depth += 1,
            ']' => depth -= 1,
            _ => {}
        }
        if c == ']' && depth == 0 {
            return chars.next().is_some_and(|next| next != '(');
        }
    }
    false
}

/// An element that is being emitted.
enum Element {
    Styled(Style),
    /// Strikethrough with one mark, which is none.
    Tildes,
    /// A link or image, with the text that it has so far.
    Link {
        url: String,
        text: String,
    },
}

/// Emits what begins with a mark of `run` bytes. Returns its length.
fn read(
    text: &str,
    run: usize,
    before: Option<char>,
    style: Style,
    emit: &mut dyn FnMut(Span<'_>),
) -> usize {
    let source = Source::new(text, before);
    let mut open: Vec<Element> = Vec::new();
    let mut at = 0;
    for (event, range) in source.events() {
        // The text of an address in brackets, which is shown.
        if range.end <= at {
            continue;
        }
        // The end is that of the paragraph.
        if open.is_empty() && (range.start >= run || matches!(event, Event::End(_))) {
            break;
        }
        let style = style_of(&open, style);
        let whole = &text[range.clone()];
        match event {
            Event::Start(Tag::Link {
                link_type: LinkType::Autolink | LinkType::Email,
                dest_url,
                ..
            }) => {
                let is_web = ["http://", "https://"]
                    .iter()
                    .any(|it| dest_url.starts_with(it));
                let shown = if is_web {
                    &whole[1..whole.len() - 1]
                } else {
                    whole
                };
                say(&mut open, style, shown, emit);
                at = range.end;
            }
            Event::Start(tag) => {
                let element = match tag {
                    Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => Element::Link {
                        url: words::printable(&dest_url).replace(char::is_control, ""),
                        text: String::new(),
                    },
                    Tag::Strong => Element::Styled(style.bold()),
                    Tag::Strikethrough if whole.starts_with("~~") => {
                        Element::Styled(style.strikethrough())
                    }
                    Tag::Strikethrough => {
                        say(&mut open, style, "~", emit);
                        Element::Tildes
                    }
                    _ => Element::Styled(style.italic()),
                };
                open.push(element);
            }
            Event::End(_) => {
                match open.pop() {
                    Some(Element::Link { url, text }) => address(style, &url, &text, emit),
                    Some(Element::Tildes) => say(&mut open, style, "~", emit),
                    Some(Element::Styled(_)) | None => {}
                }
                at = range.end;
            }
            Event::Code(_) => {
                let code = code(whole);
                add(&mut open, &code);
                emit(Span::Code(style.fg_color(CODE.get_fg_color()), &code));
                at = range.end;
            }
            // Only the mark: what follows it is read on its own.
            Event::Text(_) if open.is_empty() => {
                at = range.end.min(run);
                say(&mut open, style, &text[range.start..at], emit);
            }
            Event::Text(shown) => {
                let shown = decoded(whole, &shown, is_escaped(text, range.start));
                say(&mut open, style, &shown, emit);
                at = range.end;
            }
            _ => {
                say(&mut open, style, whole, emit);
                at = range.end;
            }
        }
    }
    // White space at the end is no part of a paragraph.
    if at < run {
        lines(style, &text[at..run], emit);
    }
    at.max(run)
}

/// Returns the style within the elements.
fn style_of(open: &[Element], style: Style) -> Style {
    let styled = open.iter().rev().find_map(|element| match element {
        Element::Styled(style) => Some(*style),
        Element::Tildes | Element::Link { .. } => None,
    });
    styled.unwrap_or(style)
}

/// Adds to the text of the links that contain it.
fn add(open: &mut [Element], shown: &str) {
    for element in open {
        if let Element::Link { text, .. } = element {
            text.push_str(shown);
        }
    }
}

fn say(open: &mut [Element], style: Style, shown: &str, emit: &mut dyn FnMut(Span<'_>)) {
    add(open, shown);
    lines(style, shown, emit);
}

/// Emits the address of a link, unless it is the text.
fn address(style: Style, url: &str, text: &str, emit: &mut dyn FnMut(Span<'_>)) {
    let dim = style.dimmed();
    if text.is_empty() {
        emit(Span::Text(dim, url));
        return;
    }
    let same = [
        Some(url),
        url.strip_prefix("mailto:"),
        url.strip_suffix('/'),
    ];
    if url.is_empty() || same.contains(&Some(text)) {
        return;
    }
    emit(Span::Text(style, " "));
    for part in ["(", url, ")"] {
        emit(Span::Text(dim, part));
    }
}

/// Returns the text between backticks.
fn code(whole: &str) -> String {
    let run = whole.len() - whole.trim_start_matches('`').len();
    // A tab would be as wide as the terminal decides.
    let text = whole[run..whole.len() - run].replace([BREAK, '\t'], " ");
    let is_padded = text.starts_with(' ') && text.ends_with(' ') && !text.trim().is_empty();
    if is_padded {
        text[1..text.len() - 1].to_owned()
    } else {
        text
    }
}

/// Returns the meaning of a part of the text. `is_escaped`: a backslash is before it.
fn decoded(source: &str, shown: &str, is_escaped: bool) -> String {
    if source != shown {
        // A control character stays as it is written.
        let shown = if is_shown(shown) { shown } else { source };
        return shown.to_owned();
    }
    // A backslash ends the line as its end does.
    let (first, rest) = source.split_at(usize::from(is_escaped && source.starts_with('\\')));
    format!("{first}{}", rest.replace("\\\u{c}", "\u{c}"))
}

fn is_shown(text: &str) -> bool {
    !text.contains(char::is_control) && words::printable(text).len() == text.len()
}

/// Reads a character that is written as an entity.
fn entity(text: &str, is_closed: bool) -> Markup {
    let name = &text[1..];
    let length = name.find(|c: char| !(c.is_ascii_alphanumeric() || c == '#'));
    let length = length.unwrap_or(name.len());
    if length == name.len() && length <= LONGEST_NAME && !is_closed {
        return Markup::Open;
    }
    if length > LONGEST_NAME || !name[length..].starts_with(';') {
        return Markup::Literal(1);
    }
    let whole = &text[..=length + 1];
    let source = Source::new(whole, None);
    let shown: String = (source.events())
        .filter_map(|(event, _)| match event {
            Event::Text(shown) => Some(shown.into_string()),
            _ => None,
        })
        .collect();
    if shown.ends_with(whole) || !is_shown(&shown) {
        Markup::Literal(1)
    } else {
        Markup::Is(whole.len(), shown)
    }
}
