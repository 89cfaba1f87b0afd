//! A line about a run and its styles.

use std::fmt::Write;

use anstyle::{AnsiColor, Style};
use console::measure_text_width;

use crate::words;

/// Kind of a line, which decides its mark and style.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    /// A tool that succeeded.
    Ok,
    /// A tool that failed.
    Failed,
    /// A tool whose success is unknown.
    Ended,
    /// A remark.
    Aside,
    Warning,
    Error,
    /// The next step after an error.
    Hint,
    /// The end of a run that completed.
    EndWell,
    /// The end of a run that did not complete.
    EndBadly,
}

/// A line of a mark, a head, a body and a tail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    /// The kind of the line.
    pub(crate) tone: Tone,
    /// Indentation, in columns.
    pub(crate) indent: usize,
    /// The first name or word.
    pub(crate) head: String,
    /// The text.
    pub(crate) body: String,
    /// The text after the body, which is never cut.
    pub(crate) tail: String,
    /// Cuts the body to fit into one line.
    pub(crate) fit: bool,
    /// Wraps a remark, too.
    is_wrapped: bool,
}

/// Maximum width of a fitted body where the terminal's width is unknown, in columns.
const MAX_BODY_WIDTH: usize = 160;

impl Line {
    /// Creates a line whose body is not cut.
    pub(crate) fn new(tone: Tone, head: impl Into<String>, body: impl Into<String>) -> Self {
        Self {
            tone,
            indent: 0,
            head: head.into(),
            body: body.into(),
            tail: String::new(),
            fit: false,
            is_wrapped: false,
        }
    }

    /// Creates a remark.
    pub(crate) fn aside(body: impl Into<String>) -> Self {
        Self::new(Tone::Aside, "", body)
    }

    /// Wraps a remark between words. It MUST have no command to copy.
    pub(crate) fn wrapped(mut self) -> Self {
        self.is_wrapped = true;
        self
    }

    /// Sets the indentation, in columns.
    pub(crate) fn indented(mut self, indent: usize) -> Self {
        self.indent = indent;
        self
    }

    /// Sets indentation and tail, and cuts the body to fit into one line of the terminal.
    pub(crate) fn fitting(mut self, indent: usize, tail: impl Into<String>) -> Self {
        self.indent = indent;
        self.tail = tail.into();
        self.fit = true;
        self
    }

    /// Returns the text without a final newline. `width` is the terminal's, in columns.
    pub(crate) fn show(&self, width: Option<usize>, styled: bool) -> String {
        let styles = if styled {
            self.tone.styles()
        } else {
            LineStyles::default()
        };
        let mut text = " ".repeat(self.indent);
        let mut add = |between: &str, style: Style, part: &str| {
            if !part.is_empty() {
                let between = if text.trim_start().is_empty() {
                    ""
                } else {
                    between
                };
                // Writing to a string cannot fail.
                let _ = write!(text, "{between}{style}{part}{style:#}");
            }
        };
        add("", styles.mark, self.tone.mark());
        add(" ", styles.head, &self.head);
        let gap = self.tone.gap();
        let body = self.fit_body(width, gap);
        add(gap, styles.body, &body);
        add("  ", styles.tail, &self.tail);
        text
    }

    fn fit_body(&self, width: Option<usize>, gap: &str) -> String {
        let mark = self.tone.mark();
        let is_first = self.is_wrapped && mark.is_empty() && self.head.is_empty();
        let gap = if is_first { "" } else { gap };
        let before = self.indent
            + measure_text_width(mark)
            + usize::from(!mark.is_empty())
            + measure_text_width(&self.head)
            + measure_text_width(gap);
        // The last column stays empty: some terminals wrap after it.
        let width = width.map(|width| width.saturating_sub(1));
        if !self.fit {
            // A remark may contain a command to copy, so only the terminal wraps it.
            let width = width.filter(|_| self.is_wrapped || self.tone != Tone::Aside);
            // Continuation lines are indented.
            return words::wrap(
                &self.body,
                before,
                self.indent + 2,
                width.unwrap_or(usize::MAX),
            );
        }
        let room = width.map_or(MAX_BODY_WIDTH, |width| {
            let taken = before + measure_text_width(&self.tail) + 2;
            width.saturating_sub(taken).max(10)
        });
        words::cut(&self.body, room).into_owned()
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct LineStyles {
    mark: Style,
    head: Style,
    body: Style,
    tail: Style,
}

impl Tone {
    fn mark(self) -> &'static str {
        match self {
            Self::Ok | Self::EndWell => "✓",
            Self::Failed | Self::EndBadly => "✗",
            Self::Ended => "•",
            _ => "",
        }
    }

    /// Returns the separator between head and body.
    fn gap(self) -> &'static str {
        match self {
            Self::Warning | Self::Error | Self::Hint => " ",
            Self::EndWell | Self::EndBadly => " · ",
            _ => "  ",
        }
    }

    fn styles(self) -> LineStyles {
        let plain = Style::new();
        let dim = plain.dimmed();
        let bold = plain.bold();
        let colour = AnsiColor::on_default;
        let styles = |mark, head, body| LineStyles {
            mark,
            head,
            body,
            tail: dim,
        };
        match self {
            Self::Ok => styles(colour(AnsiColor::Green), bold, plain),
            Self::Failed => styles(colour(AnsiColor::Red), bold, plain),
            Self::Ended => styles(dim, bold, plain),
            Self::Aside => styles(dim, dim, dim),
            Self::Warning => styles(plain, colour(AnsiColor::Yellow), plain),
            Self::Error => styles(plain, colour(AnsiColor::Red).bold(), plain),
            Self::Hint => styles(plain, colour(AnsiColor::Cyan), plain),
            Self::EndWell => styles(colour(AnsiColor::Green), bold, dim),
            Self::EndBadly => styles(colour(AnsiColor::Red), bold, dim),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(body: &str) -> Line {
        Line::new(Tone::Ok, "Bash", body).fitting(2, "0.3s")
    }

    #[test]
    fn parts_stand_apart() {
        assert_eq!(
            tool("echo one").show(None, false),
            "  ✓ Bash  echo one  0.3s"
        );
        assert_eq!(tool("").show(None, false), "  ✓ Bash  0.3s");
        assert_eq!(Line::aside("x").show(None, false), "x");
        assert_eq!(
            Line::new(Tone::Error, "error:", "one\ntwo").show(None, false),
            "error: one\n  two"
        );
    }

    #[test]
    fn a_tool_stays_in_one_line() {
        let shown = tool("echo 日本語 and more and more").show(Some(30), false);
        assert_eq!(shown, "  ✓ Bash  echo 日本語…  0.3s");
        assert!(measure_text_width(&shown) < 30);
    }

    #[test]
    fn a_line_is_wrapped_between_words_and_a_command_is_not() {
        let error = Line::new(Tone::Error, "error:", "the model cannot be reached");
        assert_eq!(
            error.show(Some(19), false),
            "error: the model\n  cannot be\n  reached"
        );
        let command = "resume with: teamster run claude --resume s-1 PROMPT";
        assert_eq!(Line::aside(command).show(Some(20), false), command);
        let session = Line::aside("Embedded · session 4e584bc5").wrapped();
        assert_eq!(
            session.show(Some(24), false),
            "Embedded · session\n  4e584bc5"
        );
    }

    #[test]
    fn styles_are_closed() {
        assert_eq!(
            tool("echo").show(None, true),
            "  \u{1b}[32m✓\u{1b}[0m \u{1b}[1mBash\u{1b}[0m  echo  \u{1b}[2m0.3s\u{1b}[0m"
        );
    }
}
