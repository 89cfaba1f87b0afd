//! Text in a line of Markdown: bold, code, links and the like.

use anstyle::{AnsiColor, Style};

use super::paper::Paper;
use crate::words;

/// Maximum length of text that waits for the end of its style, in bytes.
const MOST_HELD: usize = 400;
/// Maximum width of code that is not wrapped, in columns.
const UNBROKEN: usize = 40;

pub(super) const CODE: Style = AnsiColor::Cyan.on_default();

/// A piece of text.
pub(super) enum Span<'a> {
    Text(Style, &'a str),
    Code(Style, &'a str),
}

/// Writes the spans of a text.
pub(super) fn write(span: &Span<'_>, paper: &mut Paper) {
    match span {
        Span::Code(style, text) if console::measure_text_width(text) <= UNBROKEN => {
            paper.unbroken(*style, text);
        }
        Span::Text(style, text) | Span::Code(style, text) => paper.text(*style, text),
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
    let (mut at, mut plain, mut before) = (0, 0, before);
    loop {
        let rest = &text[at..];
        let Some(c) = rest.chars().next() else { break };
        if !matches!(c, '\\' | '`' | '*' | '_' | '~' | '[' | '!' | '<' | '&') {
            at += c.len_utf8();
            before = Some(c);
            continue;
        }
        let window = &rest[..rest.floor_char_boundary(MOST_HELD)];
        let is_closed = ends || window.len() < rest.len() || rest.len() >= MOST_HELD;
        match markup(window, is_closed, before) {
            Markup::Open => break,
            Markup::Literal(count) => {
                before = rest[..count].chars().next_back();
                at += count;
            }
            Markup::Is(count, found) => {
                if plain < at {
                    emit(Span::Text(style, &text[plain..at]));
                }
                found.emit(style, emit);
                before = rest[..count].chars().next_back();
                at += count;
                plain = at;
            }
        }
    }
    if plain < at {
        emit(Span::Text(style, &text[plain..at]));
    }
    at
}

/// Emits the spans of a text that is complete.
fn all(text: &str, style: Style, emit: &mut dyn FnMut(Span<'_>)) {
    spans(text, true, None, style, emit);
}

/// Result of reading a mark.
enum Markup<'a> {
    /// It is not decided yet.
    Open,
    /// This number of bytes is text.
    Literal(usize),
    /// This number of bytes is something else.
    Is(usize, Found<'a>),
}

enum Found<'a> {
    Character(char),
    Code(&'a str),
    Styled(fn(Style) -> Style, &'a str),
    Link { text: &'a str, url: &'a str },
}

impl Found<'_> {
    fn emit(&self, style: Style, emit: &mut dyn FnMut(Span<'_>)) {
        match self {
            Found::Character(c) => emit(Span::Text(style, c.encode_utf8(&mut [0; 4]))),
            Found::Code(text) => {
                emit(Span::Code(style.fg_color(CODE.get_fg_color()), text));
            }
            Found::Styled(change, text) => all(text, change(style), emit),
            Found::Link { text, url } => {
                all(text, style, emit);
                if !text.is_empty() && text != url {
                    emit(Span::Text(style, " "));
                }
                let dim = style.dimmed();
                match (text.is_empty(), text == url) {
                    (_, true) => {}
                    (true, _) => emit(Span::Text(dim, url)),
                    _ => {
                        emit(Span::Text(dim, "("));
                        emit(Span::Text(dim, url));
                        emit(Span::Text(dim, ")"));
                    }
                }
            }
        }
    }
}

/// Reads the mark at the beginning of `text`. `is_closed`: no more text can decide it.
fn markup(text: &str, is_closed: bool, before: Option<char>) -> Markup<'_> {
    let open = |literal: usize| {
        if is_closed {
            Markup::Literal(literal)
        } else {
            Markup::Open
        }
    };
    match text.as_bytes()[0] {
        b'\\' => match text[1..].chars().next() {
            Some(c) if c.is_ascii_punctuation() => Markup::Is(2, Found::Character(c)),
            Some(_) => Markup::Literal(1),
            None => open(1),
        },
        b'`' => match code(text, is_closed) {
            Code::Is(count, code) => Markup::Is(count, Found::Code(code)),
            Code::Open => Markup::Open,
            Code::Not(run) => Markup::Literal(run),
        },
        b'*' | b'_' | b'~' => emphasis(text, is_closed, before),
        b'!' => match text.as_bytes().get(1) {
            Some(b'[') => link(&text[1..], is_closed, 1),
            Some(_) => Markup::Literal(1),
            None => open(1),
        },
        b'[' => link(text, is_closed, 0),
        b'<' => address(text, is_closed),
        _ => entity(text, is_closed),
    }
}

/// Result of reading a run of backticks.
enum Code<'a> {
    /// The length of it all, and the text.
    Is(usize, &'a str),
    Open,
    /// No code, after a run of this length.
    Not(usize),
}

fn code(text: &str, is_closed: bool) -> Code<'_> {
    let run = run_of(text, '`');
    let mut at = run;
    while let Some(found) = text[at..].find('`') {
        let begin = at + found;
        let closing = run_of(&text[begin..], '`');
        at = begin + closing;
        // The run may become longer.
        if closing == run && (is_closed || at < text.len()) {
            let code = &text[run..begin];
            let trimmed = code
                .strip_prefix(' ')
                .and_then(|code| code.strip_suffix(' '));
            let trimmed = trimmed.filter(|_| !code.trim().is_empty());
            return Code::Is(at, trimmed.unwrap_or(code));
        }
    }
    if is_closed {
        Code::Not(run)
    } else {
        Code::Open
    }
}

fn run_of(text: &str, mark: char) -> usize {
    text.len() - text.trim_start_matches(mark).len()
}

fn emphasis(text: &str, is_closed: bool, before: Option<char>) -> Markup<'_> {
    let Some(mark) = text.chars().next() else {
        return Markup::Literal(0);
    };
    let run = run_of(text, mark);
    let Some(after) = text[run..].chars().next() else {
        return if is_closed {
            Markup::Literal(run)
        } else {
            Markup::Open
        };
    };
    let change: fn(Style) -> Style = match (mark, run) {
        ('~', 2) => Style::strikethrough,
        ('*' | '_', 1) => Style::italic,
        ('*' | '_', 2) => Style::bold,
        ('*' | '_', 3) => |style| style.bold().italic(),
        _ => return Markup::Literal(run),
    };
    let in_word = mark == '_' && before.is_some_and(char::is_alphanumeric);
    if after.is_whitespace() || in_word {
        return Markup::Literal(run);
    }
    let mut at = run;
    loop {
        let rest = &text[at..];
        let Some(next) = rest.find([mark, '`', '\\']) else {
            return if is_closed {
                Markup::Literal(run)
            } else {
                Markup::Open
            };
        };
        at += next;
        let rest = &text[at..];
        if let Some(escaped) = rest.strip_prefix('\\') {
            at += 1 + escaped.chars().next().map_or(0, char::len_utf8);
            continue;
        }
        if rest.starts_with('`') {
            match code(rest, is_closed) {
                Code::Is(count, _) | Code::Not(count) => at += count,
                Code::Open => return Markup::Open,
            }
            continue;
        }
        let closing = run_of(rest, mark);
        let follows = rest[closing..].chars().next();
        if follows.is_none() && !is_closed {
            return Markup::Open;
        }
        let is_inside = mark == '_' && follows.is_some_and(char::is_alphanumeric);
        let ends = !text[..at].ends_with(char::is_whitespace) && !is_inside;
        if closing == run && ends {
            return Markup::Is(at + closing, Found::Styled(change, &text[run..at]));
        }
        at += closing;
    }
}

/// Reads a link or, after a mark of `skipped` bytes, an image.
fn link(text: &str, is_closed: bool, skipped: usize) -> Markup<'_> {
    let open = || {
        if is_closed {
            Markup::Literal(skipped + 1)
        } else {
            Markup::Open
        }
    };
    let Some(end) = closing(text, b'[', b']', is_closed) else {
        return open();
    };
    let target = &text[end + 1..];
    match target.as_bytes().first() {
        None => return open(),
        Some(b'(') => {}
        Some(_) => return Markup::Literal(skipped + 1),
    }
    let Some(target_end) = closing(target, b'(', b')', is_closed) else {
        return open();
    };
    let inside = target[1..target_end].trim();
    let url = inside.split(char::is_whitespace).next().unwrap_or_default();
    let title = inside[url.len()..].trim();
    let url = url
        .strip_prefix('<')
        .and_then(|url| url.strip_suffix('>'))
        .unwrap_or(url);
    let is_title = title.is_empty() || title.starts_with(['"', '\'', '(']);
    if url.is_empty() || !is_title {
        return Markup::Literal(skipped + 1);
    }
    let count = skipped + end + 1 + target_end + 1;
    Markup::Is(
        count,
        Found::Link {
            text: &text[1..end],
            url,
        },
    )
}

/// Returns the position of the bracket that closes the one at the beginning.
fn closing(text: &str, begin: u8, end: u8, is_closed: bool) -> Option<usize> {
    let (mut depth, mut at) = (0_usize, 0);
    let bytes = text.as_bytes();
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 1,
            b'`' if begin == b'[' => {
                match code(&text[at..], is_closed) {
                    Code::Is(count, _) | Code::Not(count) => at += count,
                    Code::Open => return None,
                }
                continue;
            }
            byte if byte == begin => depth += 1,
            byte if byte == end => {
                depth -= 1;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// Reads an address in angle brackets.
fn address(text: &str, is_closed: bool) -> Markup<'_> {
    let is_address = |rest: &str| {
        ["https://", "http://", "mailto:"]
            .iter()
            .any(|scheme| rest.starts_with(scheme) || scheme.starts_with(rest))
    };
    let end = text.find(|c: char| c == '>' || c.is_whitespace());
    let inside = &text[1..end.unwrap_or(text.len())];
    match end {
        _ if !is_address(inside) => Markup::Literal(1),
        None if !is_closed => Markup::Open,
        Some(end) if text[end..].starts_with('>') && inside.contains(':') => Markup::Is(
            end + 1,
            Found::Link {
                text: inside,
                url: inside,
            },
        ),
        _ => Markup::Literal(1),
    }
}

/// Reads a character that is written as an entity.
fn entity(text: &str, is_closed: bool) -> Markup<'_> {
    const LONGEST: usize = 10;
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '#';
    let name = &text[1..];
    let name = &name[..name.find(|c| !is_name(c)).unwrap_or(name.len())];
    if name.len() > LONGEST {
        return Markup::Literal(1);
    }
    let end = 1 + name.len();
    if end == text.len() && !is_closed {
        return Markup::Open;
    }
    let number = |digits: &str, radix| u32::from_str_radix(digits, radix).ok();
    let numeric = name.strip_prefix('#').and_then(|number_of| {
        let hex = number_of.strip_prefix(['x', 'X']);
        let number = hex.map_or_else(|| number(number_of, 10), |hex| number(hex, 16));
        char::from_u32(number?)
    });
    let found = match name {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        "nbsp" => Some('\u{a0}'),
        _ => numeric,
    };
    // A control character stays as it is written.
    let found =
        found.filter(|c| words::printable(c.encode_utf8(&mut [0; 4])).len() == c.len_utf8());
    let found = found.filter(|c| !c.is_control());
    match found {
        Some(c) if text[end..].starts_with(';') => Markup::Is(end + 1, Found::Character(c)),
        _ => Markup::Literal(1),
    }
}
