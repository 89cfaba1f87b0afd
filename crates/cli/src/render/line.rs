//! One line about a run, and how it looks.

use std::fmt::Write;

use anstyle::{AnsiColor, Style};
use console::measure_text_width;

use crate::words;

/// What a line is about, which decides how it looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    /// A tool that worked.
    Ok,
    /// A tool that failed.
    Failed,
    /// A tool of which it is not known whether it worked.
    Ended,
    /// Something in passing.
    Aside,
    /// Something that is not as it should be.
    Warning,
    /// Something that failed for good.
    Error,
    /// What to do about it.
    Hint,
    /// The end of a run that completed.
    EndWell,
    /// The end of another run.
    EndBadly,
}

/// One line: a mark, a head, a body and a tail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    /// What it is about.
    pub(crate) tone: Tone,
    /// By how many columns it is moved to the right.
    pub(crate) indent: usize,
    /// The name or word that it begins with.
    pub(crate) head: String,
    /// The rest.
    pub(crate) body: String,
    /// What follows the body even if that must be cut.
    pub(crate) tail: String,
    /// Whether the body is cut, so that it stays one line.
    pub(crate) fit: bool,
}

/// How much of a body is kept where there is no width to fit into.
const BODY: usize = 160;

impl Line {
    /// A line of this tone; its body is not cut.
    pub(crate) fn new(tone: Tone, head: impl Into<String>, body: impl Into<String>) -> Self {
        Self {
            tone,
            indent: 0,
            head: head.into(),
            body: body.into(),
            tail: String::new(),
            fit: false,
        }
    }

    /// Something in passing.
    pub(crate) fn aside(body: impl Into<String>) -> Self {
        Self::new(Tone::Aside, "", body)
    }

    /// The same line, moved to the right.
    pub(crate) fn indented(mut self, indent: usize) -> Self {
        self.indent = indent;
        self
    }

    /// The same line, kept to one line of the terminal.
    pub(crate) fn fitting(mut self, indent: usize, tail: impl Into<String>) -> Self {
        self.indent = indent;
        self.tail = tail.into();
        self.fit = true;
        self
    }

    /// The line without its end of line. `width` is that of the terminal.
    pub(crate) fn show(&self, width: Option<usize>, styled: bool) -> String {
        let look = if styled {
            self.tone.look()
        } else {
            Look::default()
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
        add("", look.mark, self.tone.mark());
        add(" ", look.head, &self.head);
        let gap = self.tone.gap();
        let body = self.fit_body(width, gap);
        add(gap, look.body, &body);
        add("  ", look.tail, &self.tail);
        text
    }

    fn fit_body(&self, width: Option<usize>, gap: &str) -> String {
        let mark = self.tone.mark();
        let before = self.indent
            + measure_text_width(mark)
            + usize::from(!mark.is_empty())
            + measure_text_width(&self.head)
            + measure_text_width(gap);
        // The last column stays free: some terminals wrap when it is written.
        let width = width.map(|width| width.saturating_sub(1));
        if !self.fit {
            // A quoted text may be a command to copy, so only the terminal wraps it.
            let width = width.filter(|_| self.tone != Tone::Aside);
            // A text of several lines stays in its column.
            return words::wrap(
                &self.body,
                before,
                self.indent + 2,
                width.unwrap_or(usize::MAX),
            );
        }
        let room = width.map_or(BODY, |width| {
            let taken = before + measure_text_width(&self.tail) + 2;
            width.saturating_sub(taken).max(10)
        });
        words::cut(&self.body, room).into_owned()
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Look {
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

    /// What stands between head and body.
    fn gap(self) -> &'static str {
        match self {
            Self::Warning | Self::Error | Self::Hint => " ",
            Self::EndWell | Self::EndBadly => " · ",
            _ => "  ",
        }
    }

    fn look(self) -> Look {
        let plain = Style::new();
        let dim = plain.dimmed();
        let bold = plain.bold();
        let colour = |colour: AnsiColor| plain.fg_color(Some(colour.into()));
        let look = |mark, head, body| Look {
            mark,
            head,
            body,
            tail: dim,
        };
        match self {
            Self::Ok => look(colour(AnsiColor::Green), bold, plain),
            Self::Failed => look(colour(AnsiColor::Red), bold, plain),
            Self::Ended => look(dim, bold, plain),
            Self::Aside => look(dim, dim, dim),
            Self::Warning => look(plain, colour(AnsiColor::Yellow), plain),
            Self::Error => look(plain, colour(AnsiColor::Red).bold(), plain),
            Self::Hint => look(plain, colour(AnsiColor::Cyan), plain),
            Self::EndWell => look(colour(AnsiColor::Green), bold, dim),
            Self::EndBadly => look(colour(AnsiColor::Red), bold, dim),
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
    fn an_error_is_wrapped_between_words_and_a_command_is_not() {
        let error = Line::new(Tone::Error, "error:", "the model cannot be reached");
        assert_eq!(
            error.show(Some(19), false),
            "error: the model\n  cannot be\n  reached"
        );
        let command = "resume with: teamster run claude --resume s-1 PROMPT";
        assert_eq!(Line::aside(command).show(Some(20), false), command);
    }

    #[test]
    fn styles_are_closed() {
        assert_eq!(
            tool("echo").show(None, true),
            "  \u{1b}[32m✓\u{1b}[0m \u{1b}[1mBash\u{1b}[0m  echo  \u{1b}[2m0.3s\u{1b}[0m"
        );
    }
}
