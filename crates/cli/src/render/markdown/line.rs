//! The kind of a line of Markdown, as soon as its beginning decides it.

use anstyle::Style;

use super::definition::is_definition;
use super::html;
use super::paper::Piece;

/// Maximum length of a line that is held back as a whole, in bytes.
pub(super) const MOST_HELD: usize = 2000;
/// Maximum number of containers in each other. A deeper mark is text.
const DEEPEST: usize = 20;
/// The columns of a tab.
const TAB: usize = 4;

/// Quote or list item that contains a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Container {
    Quote,
    /// An item of a list.
    Item {
        /// The columns of the source before its text.
        content: usize,
        /// Its number, and what is after that, in a list with numbers.
        number: Option<(u64, char)>,
        /// The box of a task.
        task: Option<&'static str>,
    },
}

impl Container {
    /// Returns its mark, as it is shown.
    pub(super) fn mark(&self) -> Piece {
        match self {
            Self::Quote => (Style::new().dimmed(), "│ ".to_owned()),
            Self::Item { number, task, .. } => {
                let mark = match number {
                    Some((number, after)) => {
                        format!("{number}{after} {}", task.unwrap_or_default())
                    }
                    None => task.unwrap_or("• ").to_owned(),
                };
                (Style::new(), mark)
            }
        }
    }
}

/// Block that the previous line leaves open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Leaf {
    None,
    Paragraph,
    /// Indented code.
    Code,
    Fence {
        mark: char,
        count: usize,
        indent: usize,
    },
    Table(Table),
    /// HTML until a line with one of these texts, or else until a blank line.
    Html(&'static [&'static str]),
}

/// The rows of a table that is not shown yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Table {
    /// The number of containers that are older than its first row.
    pub(super) opened: usize,
    pub(super) rows: Vec<String>,
}

/// The kind of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Line {
    Blank,
    Paragraph,
    /// A heading, of which the line is complete.
    Heading,
    Fence {
        mark: char,
        count: usize,
        indent: usize,
    },
    FenceEnd,
    Code,
    Rule,
    /// A row of a table, which is complete.
    Row,
    /// The definition of a link, which is complete.
    Definition,
    /// HTML, and what ends it unless this line does.
    Html(Option<&'static [&'static str]>),
}

/// The beginning of a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Begin {
    /// The number of open containers that continue.
    pub(super) kept: usize,
    pub(super) opened: Vec<Container>,
    pub(super) line: Line,
    /// The bytes before the text.
    pub(super) skipped: usize,
    /// The columns that the last tab of these bytes leaves to the text.
    pub(super) rest_of_tab: usize,
}

/// A position in a line.
#[derive(Debug, Clone, Copy)]
struct Cursor<'a> {
    line: &'a str,
    at: usize,
    column: usize,
    /// Columns of a tab before the cursor that are not used yet.
    rest_of_tab: usize,
}

impl<'a> Cursor<'a> {
    fn rest(&self) -> &'a str {
        &self.line[self.at..]
    }

    /// Returns the columns of white space at the cursor.
    fn indent(&self) -> usize {
        let mut ahead = *self;
        ahead.skip_indent(usize::MAX);
        ahead.column - self.column
    }

    /// Returns the bytes of white space at the cursor.
    fn blanks(&self) -> usize {
        let rest = self.rest();
        rest.len() - rest.trim_start_matches([' ', '\t']).len()
    }

    /// Returns `true` if only white space follows, of a length that may be held back. Returns `None` if it is not decided
    /// yet.
    fn is_blank(&self, ends: bool) -> Option<bool> {
        let blanks = self.blanks();
        if blanks < self.rest().len() || blanks > MOST_HELD {
            Some(false)
        } else {
            ends.then_some(true)
        }
    }

    /// Skips white space of at most this number of columns.
    fn skip_indent(&mut self, most: usize) {
        let end = self.column.saturating_add(most);
        while self.column < end {
            if self.rest_of_tab > 0 {
                self.rest_of_tab -= 1;
                self.column += 1;
                continue;
            }
            match self.line.as_bytes().get(self.at) {
                Some(b' ') => self.column += 1,
                Some(b'\t') => self.rest_of_tab = TAB - self.column % TAB,
                _ => return,
            }
            self.at += 1;
        }
    }

    /// Skips this number of bytes, each of which has one column.
    fn skip(&mut self, count: usize) {
        self.at += count;
        self.column += count;
    }
}

/// Returns the beginning of a line, of which more may come unless it `ends`. Returns `None` if it is not decided yet.
pub(super) fn begin(
    line: &str,
    ends: bool,
    containers: &[Container],
    leaf: &Leaf,
) -> Option<Begin> {
    let mut cursor = Cursor {
        line,
        at: 0,
        column: 0,
        rest_of_tab: 0,
    };
    let mut kept = 0;
    for container in containers {
        let indent = cursor.indent();
        let mut ahead = cursor;
        ahead.skip_indent(usize::MAX);
        let is_blank = cursor.is_blank(ends)?;
        match container {
            Container::Quote if indent < TAB && ahead.rest().starts_with('>') => {
                cursor = ahead;
                quote(&mut cursor, ends)?;
            }
            Container::Item { content, .. } if is_blank || indent >= *content => {
                cursor.skip_indent(*content);
            }
            _ => break,
        }
        kept += 1;
    }
    let is_inside = kept == containers.len();
    let new = |line, cursor: &Cursor<'_>, opened| {
        Some(Begin {
            kept,
            opened,
            line,
            skipped: cursor.at,
            rest_of_tab: cursor.rest_of_tab,
        })
    };
    if let (
        true,
        Leaf::Fence {
            mark,
            count,
            indent,
        },
    ) = (is_inside, leaf)
    {
        let line = in_fence(&mut cursor, ends, *mark, *count, *indent)?;
        return new(line, &cursor, Vec::new());
    }
    if let (true, Leaf::Html(ending)) = (is_inside, leaf) {
        let (ending, beginning) = (*ending, beginning(cursor.rest(), ends)?);
        if !ending.is_empty() || !beginning.trim().is_empty() {
            let line = Line::Html((!html::ends(beginning, ending)).then_some(ending));
            return new(line, &cursor, Vec::new());
        }
    }
    let mut opened = Vec::new();
    loop {
        // Only of the innermost container that is old.
        let in_paragraph = is_inside && opened.is_empty() && *leaf == Leaf::Paragraph;
        let indent = cursor.indent();
        let mut text = cursor;
        text.skip_indent(usize::MAX);
        if cursor.is_blank(ends)? {
            return new(Line::Blank, &text, opened);
        }
        let is_lazy = !is_inside && opened.is_empty() && *leaf == Leaf::Paragraph;
        if indent >= TAB && !in_paragraph && !is_lazy {
            cursor.skip_indent(TAB);
            return new(Line::Code, &cursor, opened);
        }
        if indent >= TAB {
            return Some(paragraph(kept, opened, is_lazy, containers, &text));
        }
        let is_deep = kept + opened.len() >= DEEPEST;
        if !is_deep && text.rest().starts_with('>') {
            cursor = text;
            quote(&mut cursor, ends)?;
            opened.push(Container::Quote);
            continue;
        }
        if text.rest().starts_with('<') {
            let beginning = beginning(text.rest(), ends)?;
            if let Some(ending) = html::ending(beginning, in_paragraph || is_lazy) {
                let line = Line::Html((!html::ends(beginning, ending)).then_some(ending));
                return new(line, &cursor, opened);
            }
        }
        let may_define = text.rest().starts_with('[') && !in_paragraph && !is_lazy;
        if may_define && is_definition(text.rest(), ends)? {
            return new(Line::Definition, &text, opened);
        }
        if let Some(found) = leaf_line(text.rest(), ends, indent, in_paragraph)? {
            let (line, skipped) = found;
            text.skip(skipped);
            return new(line, &text, opened);
        }
        let found = if is_deep {
            None
        } else {
            item(text, ends, indent, in_paragraph)?
        };
        let Some((container, after)) = found else {
            return Some(paragraph(kept, opened, is_lazy, containers, &text));
        };
        opened.push(container);
        cursor = after;
    }
}

fn paragraph(
    kept: usize,
    opened: Vec<Container>,
    is_lazy: bool,
    containers: &[Container],
    text: &Cursor<'_>,
) -> Begin {
    // A paragraph continues without the marks of its containers.
    let kept = if is_lazy && opened.is_empty() {
        containers.len()
    } else {
        kept
    };
    Begin {
        kept,
        opened,
        line: Line::Paragraph,
        skipped: text.at,
        rest_of_tab: 0,
    }
}

/// Returns the line, or the beginning of a long one. Returns `None` if more of it may come.
fn beginning(rest: &str, ends: bool) -> Option<&str> {
    let is_decided = ends || rest.len() > MOST_HELD;
    is_decided.then(|| &rest[..rest.floor_char_boundary(MOST_HELD)])
}

/// Skips the mark of a quote and one space.
fn quote(cursor: &mut Cursor<'_>, ends: bool) -> Option<()> {
    cursor.skip(1);
    if cursor.rest().is_empty() && !ends {
        return None;
    }
    cursor.skip_indent(1);
    Some(())
}

fn in_fence(
    cursor: &mut Cursor<'_>,
    ends: bool,
    mark: char,
    count: usize,
    indent: usize,
) -> Option<Line> {
    let mut text = *cursor;
    text.skip_indent(usize::MAX);
    let rest = text.rest();
    let run = rest.len() - rest.trim_start_matches(mark).len();
    let may_end = rest.len() <= MOST_HELD && cursor.indent() < TAB;
    if may_end && rest[run..].trim().is_empty() {
        if !ends {
            return None;
        }
        if run >= count {
            return Some(Line::FenceEnd);
        }
    }
    cursor.skip_indent(indent);
    // An empty line of code is one of text that is empty.
    Some(Line::Code)
}

/// Returns a heading, fence, rule or row, and the bytes before its text. The outer `None`: not decided yet.
#[expect(clippy::option_option, reason = "not decided, and decided to be none")]
fn leaf_line(
    rest: &str,
    ends: bool,
    indent: usize,
    in_paragraph: bool,
) -> Option<Option<(Line, usize)>> {
    let Some(mark) = rest.chars().next() else {
        return Some(None);
    };
    let run = rest.len() - rest.trim_start_matches(mark).len();
    let after = &rest[run..];
    // Such a line is shown as it comes.
    if rest.len() > MOST_HELD && matches!(mark, '#' | '`' | '~' | '|' | '=' | '-' | '*' | '_') {
        return Some(None);
    }
    match mark {
        '#' if run <= 6 => match after.chars().next() {
            None if !ends => None,
            Some(' ' | '\t') | None => ends.then_some(Some((Line::Heading, run))),
            Some(_) => Some(None),
        },
        '`' | '~' if run < 3 && after.is_empty() && !ends => None,
        '`' | '~' if run >= 3 => {
            if mark == '`' && after.contains('`') {
                return Some(None);
            }
            let line = Line::Fence {
                mark,
                count: run,
                indent,
            };
            ends.then_some(Some((line, run)))
        }
        '|' => ends.then_some(Some((Line::Row, 0))),
        '=' if in_paragraph && after.trim().is_empty() => ends.then_some(Some((Line::Rule, 0))),
        '-' | '*' | '_' if rest.chars().all(|c| c == mark || c == ' ' || c == '\t') => {
            if !ends {
                return None;
            }
            let count = rest.matches(mark).count();
            let is_underline = mark == '-' && in_paragraph && after.trim().is_empty();
            Some((count >= 3 || is_underline).then_some((Line::Rule, 0)))
        }
        _ => Some(None),
    }
}

/// Returns an item of a list, and the position of its text. The outer `None`: not decided yet.
#[expect(clippy::option_option, reason = "not decided, and decided to be none")]
fn item(
    text: Cursor<'_>,
    ends: bool,
    indent: usize,
    in_paragraph: bool,
) -> Option<Option<(Container, Cursor<'_>)>> {
    let rest = text.rest();
    let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (count, number) = match rest.as_bytes() {
        [b'-' | b'+' | b'*', ..] => (1, None),
        _ if digits == 0 || digits > 9 => return Some(None),
        _ => match rest[digits..].chars().next() {
            Some(after @ ('.' | ')')) => {
                let number = rest[..digits].parse().unwrap_or_default();
                (digits + 1, Some((number, after)))
            }
            None if !ends => return None,
            _ => return Some(None),
        },
    };
    // Within a paragraph, a number may be one of its words.
    if in_paragraph && digits > 0 && rest[..digits].trim_start_matches('0') != "1" {
        return Some(None);
    }
    let mut after = text;
    after.skip(count);
    let spaces = after.indent();
    let is_empty = after.is_blank(ends)?;
    let is_text = if is_empty { in_paragraph } else { spaces == 0 };
    if is_text {
        return Some(None);
    }
    // Five spaces or more are code after one.
    let used = if is_empty || spaces > TAB { 1 } else { spaces };
    after.skip_indent(used);
    let (task, after) = match task(after, ends)? {
        Some((task, after)) => (Some(task), after),
        None => (None, after),
    };
    let container = Container::Item {
        content: indent + count + used,
        number,
        task,
    };
    Some(Some((container, after)))
}

/// Returns the mark of a task and the position of its text. The outer `None`: not decided yet.
#[expect(clippy::option_option, reason = "not decided, and decided to be none")]
fn task(text: Cursor<'_>, ends: bool) -> Option<Option<(&'static str, Cursor<'_>)>> {
    let rest = text.rest();
    for (source, shown) in [("[ ]", "☐ "), ("[x]", "☑ "), ("[X]", "☑ ")] {
        if rest.len() <= source.len() && source.starts_with(rest) && !ends {
            return None;
        }
        if let Some(after) = rest.strip_prefix(source)
            && after.starts_with([' ', '\t'])
        {
            let mut cursor = text;
            cursor.skip(source.len());
            // A mark without text is text.
            if cursor.blanks() > MOST_HELD || cursor.is_blank(ends)? {
                return Some(None);
            }
            cursor.skip_indent(usize::MAX);
            return Some(Some((shown, cursor)));
        }
    }
    Some(None)
}
