//! Markdown at a terminal.
//!
//! Text is shown as it comes and never changed afterwards: what is held back is a word until its end, text between marks
//! such as `**` until it is known whether they close, and a table until its last row. What only later text can tell is
//! shown as it is written: the underline of a heading, and a link whose address is defined elsewhere, `[text][label]`. Its
//! definition, `[label]: https://example.com`, mostly follows: it is shown with the whole address, which can be found there
//! and copied.

mod definition;
mod html;
mod inline;
mod line;
mod paper;
mod table;

#[cfg(test)]
mod tests;

use anstyle::Style;

use inline::{BREAK, CODE};
use line::{Begin, Container, Leaf, Line};
use paper::{Paper, Piece};

/// Columns before the lines of code.
const CODE_INDENT: &str = "    ";
/// Maximum columns of a rule.
const LONGEST_RULE: usize = 40;

/// A message in Markdown that is being shown.
#[derive(Debug)]
pub(crate) struct Markdown {
    paper: Paper,
    /// The quotes and list items that are open.
    containers: Vec<Container>,
    leaf: Leaf,
    /// The part of the line that is not shown yet.
    line: String,
    /// The lines of the paragraph before it that are not shown yet.
    held: String,
    state: State,
    /// The last character of the line that is shown.
    before: Option<char>,
    /// An empty line precedes what comes next.
    is_blank: bool,
    /// The innermost item has no text yet.
    is_empty_item: bool,
    has_begun: bool,
}

/// State of the current line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Its kind is not known yet.
    Begin,
    Text(Style),
    Html,
    Code,
}

impl Markdown {
    pub(crate) fn new() -> Self {
        Self {
            paper: Paper::new(),
            containers: Vec::new(),
            leaf: Leaf::None,
            line: String::new(),
            held: String::new(),
            state: State::Begin,
            before: None,
            is_blank: false,
            is_empty_item: false,
            has_begun: false,
        }
    }

    /// Adds text without control characters. Returns what is to be written. `width` is that of the terminal, in columns.
    pub(crate) fn push(&mut self, text: &str, width: Option<usize>) -> String {
        self.paper.set_width(width);
        for piece in text.split_inclusive('\n') {
            let (piece, ends) = match piece.strip_suffix('\n') {
                Some(piece) => (piece, true),
                None => (piece, false),
            };
            self.line.push_str(piece);
            self.advance(ends);
        }
        self.paper.take()
    }

    /// Returns what is held back only until the end of a word. Called when no text comes for a moment.
    pub(crate) fn flush(&mut self) -> String {
        self.paper.flush();
        self.paper.take()
    }

    /// Returns also text between marks that are not closed. Called when no text comes for a longer time.
    pub(crate) fn release(&mut self) -> String {
        match self.state {
            State::Text(style) => self.spans(style, true),
            _ => self.end_paragraph(),
        }
        self.flush()
    }

    /// Ends the message. Returns the rest of it, without an end of its last line.
    pub(crate) fn finish(&mut self) -> String {
        if !self.line.is_empty() || self.state != State::Begin {
            self.advance(true);
        }
        self.end_paragraph();
        self.end_table();
        let mut rest = self.paper.take();
        if rest.ends_with('\n') {
            rest.pop();
        }
        *self = Self::new();
        rest
    }

    fn advance(&mut self, ends: bool) {
        if self.state == State::Begin {
            let line = std::mem::take(&mut self.line);
            let begin = line::begin(&line, ends, &self.containers, &self.leaf);
            self.line = line;
            let Some(begin) = begin else { return };
            self.begin(begin);
            if self.state == State::Begin {
                // The whole line is shown.
                self.line.clear();
                return;
            }
        }
        match self.state {
            State::Code => {
                let code = std::mem::take(&mut self.line);
                self.paper.pieces(&[(CODE, code)]);
            }
            State::Html => {
                let text = std::mem::take(&mut self.line);
                self.paper.text(Style::new(), &text);
            }
            State::Text(style) => {
                let may_continue = ends && self.leaf == Leaf::Paragraph;
                if may_continue {
                    self.line.push(BREAK);
                }
                self.spans(style, ends && !may_continue);
                if may_continue && self.line.len() > BREAK.len_utf8() {
                    self.held = std::mem::take(&mut self.line);
                    self.state = State::Begin;
                    return;
                }
            }
            State::Begin => {}
        }
        if ends {
            self.paper.end_line();
            self.line.clear();
            (self.state, self.before) = (State::Begin, None);
        }
    }

    fn spans(&mut self, style: Style, ends: bool) {
        let paper = &mut self.paper;
        let emit = &mut |span: inline::Span<'_>| inline::write(&span, paper);
        let count = inline::spans(&self.line, ends, self.before, style, emit);
        self.before = self.line[..count].chars().next_back().or(self.before);
        self.line.drain(..count);
    }

    /// Shows the lines of a paragraph that has ended.
    fn end_paragraph(&mut self) {
        if self.held.pop().is_none() {
            return;
        }
        let held = std::mem::take(&mut self.held);
        let line = std::mem::replace(&mut self.line, held);
        self.spans(Style::new(), true);
        self.paper.end_line();
        (self.line, self.before) = (line, None);
    }

    /// Shows the beginning of a line.
    fn begin(&mut self, begin: Begin) {
        let Begin {
            kept,
            mut opened,
            line,
            skipped,
            rest_of_tab,
        } = begin;
        if !self.held.is_empty() {
            if line == Line::Paragraph && opened.is_empty() && self.leaf == Leaf::Paragraph {
                let held = std::mem::take(&mut self.held);
                self.line.replace_range(..skipped, &held);
                self.state = State::Text(Style::new());
                return;
            }
            self.end_paragraph();
        }
        let was_table = matches!(self.leaf, Leaf::Table(_));
        let is_row =
            matches!(line, Line::Row) && kept == self.containers.len() && opened.is_empty();
        if was_table && !is_row {
            self.end_table();
        }
        if line == Line::Blank && opened.is_empty() {
            // Items and quotes continue after it, or do not: the next line shows it.
            self.is_blank |= self.has_begun;
            self.leaf = Leaf::None;
            if std::mem::take(&mut self.is_empty_item) {
                self.containers.pop();
            }
            return;
        }
        self.is_empty_item = false;
        if was_table && is_row {
            self.line.drain(..skipped);
            self.row();
            return;
        }
        self.blank(kept);
        if kept < self.containers.len() && matches!(self.leaf, Leaf::Fence { .. }) {
            // It ends with what contains it.
            self.leaf = Leaf::None;
        }
        self.number(kept, &mut opened);
        self.containers.truncate(kept);
        self.containers.extend(opened);
        self.has_begun = true;
        match line {
            // An item without text.
            Line::Blank => {
                self.leaf = Leaf::None;
                self.is_empty_item = matches!(self.containers.last(), Some(Container::Item { .. }));
                self.prefix(kept, None);
                self.paper.end_line();
            }
            Line::Html(ending) => {
                self.leaf = ending.map_or(Leaf::None, Leaf::Html);
                let rest = self.line.split_off(skipped);
                // Only a line that has ended.
                if rest.is_empty() {
                    self.empty_line(kept);
                    return;
                }
                self.prefix(kept, None);
                let text = rest.trim_start_matches([' ', '\t']);
                let indent = " ".repeat(rest_of_tab + rest.len() - text.len());
                self.paper.pieces(&[(Style::new(), indent)]);
                text.clone_into(&mut self.line);
                self.state = State::Html;
            }
            Line::Definition => {
                self.leaf = Leaf::None;
                let text = definition::shown(&self.line.split_off(skipped));
                self.prefix(kept, None);
                self.line = text;
                self.state = State::Html;
            }
            Line::Paragraph => {
                self.leaf = Leaf::Paragraph;
                self.text(kept, skipped, Style::new());
            }
            Line::Heading => {
                self.leaf = Leaf::None;
                let text = self.line.split_off(skipped);
                without_closing_marks(&text).clone_into(&mut self.line);
                self.text(kept, 0, Style::new().bold());
            }
            Line::Fence {
                mark,
                count,
                indent,
            } => {
                let info = self.line[skipped..].trim();
                let info = info
                    .split(char::is_whitespace)
                    .next()
                    .unwrap_or_default()
                    .to_owned();
                // The mark of a list item needs its line, and so does the language.
                if !info.is_empty() || self.containers.len() > kept {
                    self.prefix(kept, None);
                    self.paper.pieces(&[(Style::new().dimmed(), info)]);
                    self.paper.end_line();
                }
                self.leaf = Leaf::Fence {
                    mark,
                    count,
                    indent,
                };
            }
            Line::FenceEnd => self.leaf = Leaf::None,
            Line::Code => {
                if !matches!(self.leaf, Leaf::Fence { .. }) {
                    self.leaf = Leaf::Code;
                }
                let blanks = " ".repeat(rest_of_tab);
                self.line.replace_range(..skipped, &blanks);
                // Only a line that has ended: what is left of a line that may continue is never empty.
                if self.line.is_empty() {
                    self.empty_line(kept);
                    return;
                }
                self.prefix(kept, Some(CODE_INDENT));
                self.state = State::Code;
            }
            Line::Rule => {
                self.leaf = Leaf::None;
                self.prefix(kept, None);
                let room = self.paper.width().saturating_sub(self.paper.column());
                let rule = "─".repeat(room.min(LONGEST_RULE));
                self.paper.pieces(&[(Style::new().dimmed(), rule)]);
                self.paper.end_line();
            }
            Line::Row => {
                // The first row; the mark of a list item is shown with it.
                self.leaf = Leaf::Table(line::Table {
                    opened: kept,
                    rows: Vec::new(),
                });
                self.line.drain(..skipped);
                self.row();
            }
        }
    }

    /// Numbers an item after the one that it follows: the numbers of the text do not matter.
    fn number(&self, kept: usize, opened: &mut [Container]) {
        let before = self.containers.get(kept);
        if let (
            Some(Container::Item {
                number: Some((last, end)),
                ..
            }),
            Some(Container::Item {
                number: Some((number, after)),
                ..
            }),
        ) = (before, opened.first_mut())
            && end == after
        {
            *number = last + 1;
        }
    }

    fn text(&mut self, kept: usize, skipped: usize, style: Style) {
        self.prefix(kept, None);
        self.line.drain(..skipped);
        self.state = State::Text(style);
    }

    /// Shows an empty line between two lines of which the second has `kept` containers of the first.
    fn blank(&mut self, kept: usize) {
        if std::mem::take(&mut self.is_blank) {
            self.empty_line(kept);
        }
    }

    fn empty_line(&mut self, kept: usize) {
        let quotes = self.containers[..kept.min(self.containers.len())].iter();
        let quotes: Vec<_> = quotes
            .take_while(|it| matches!(it, Container::Quote))
            .collect();
        self.paper.begin(&hang(&quotes), Vec::new());
        self.paper.end_line();
    }

    /// Begins a line in the containers, of which those after `kept` are new.
    fn prefix(&mut self, kept: usize, more: Option<&str>) {
        let kept = kept.min(self.containers.len());
        let all: Vec<_> = self.containers.iter().collect();
        let mut first = hang(&all[..kept]);
        first.extend(all[kept..].iter().map(|container| container.mark()));
        let mut hang = hang(&all);
        let more = more.map(|more| (Style::new(), more.to_owned()));
        first.extend(more.clone());
        hang.extend(more);
        self.paper.begin(&first, hang);
    }

    /// Adds the line to the table.
    fn row(&mut self) {
        let line = std::mem::take(&mut self.line);
        if let Leaf::Table(table) = &mut self.leaf {
            table.rows.push(line.trim().to_owned());
        }
    }

    /// Shows a table that has ended.
    fn end_table(&mut self) {
        let Leaf::Table(line::Table { opened, rows }) =
            std::mem::replace(&mut self.leaf, Leaf::None)
        else {
            return;
        };
        let all: Vec<_> = self.containers.iter().collect();
        let indent: usize = (hang(&all).iter())
            .map(|(_, text)| console::measure_text_width(text))
            .sum();
        let room = self.paper.width().saturating_sub(indent);
        let mut kept = opened;
        if let Some(lines) = table::lay_out(&rows, room) {
            for line in lines {
                self.prefix(kept, None);
                self.paper.pieces(&line);
                self.paper.end_line();
                kept = self.containers.len();
            }
            return;
        }
        // Text with bars, or a table that is too wide.
        let (line, before) = (std::mem::take(&mut self.line), self.before.take());
        for row in rows {
            self.prefix(kept, None);
            self.line = row;
            self.before = None;
            self.spans(Style::new(), true);
            self.line.clear();
            self.paper.end_line();
            kept = self.containers.len();
            self.leaf = Leaf::Paragraph;
        }
        (self.line, self.before) = (line, before);
    }
}

/// Returns what begins the further lines of these containers.
fn hang(containers: &[&Container]) -> Vec<Piece> {
    let piece = |container: &&Container| {
        let (style, mark) = container.mark();
        match container {
            Container::Quote => (style, mark),
            Container::Item { .. } => (style, " ".repeat(console::measure_text_width(&mark))),
        }
    };
    containers.iter().map(piece).collect()
}

/// Leaves out the marks that may follow the text of a heading.
fn without_closing_marks(text: &str) -> &str {
    let text = text.trim();
    let without = text.trim_end_matches('#');
    if without.is_empty() || without.ends_with([' ', '\t']) {
        without.trim_end()
    } else {
        text
    }
}
