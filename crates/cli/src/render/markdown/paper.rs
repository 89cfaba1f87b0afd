//! Words that are laid out in lines of the terminal's width.

use std::fmt::Write;

use anstyle::Style;
use console::measure_text_width;

/// A piece of text in one style.
pub(super) type Piece = (Style, String);

/// Output in which nothing is ever taken back: a word is written once its width is known.
#[derive(Debug)]
pub(super) struct Paper {
    /// The columns of a line.
    width: usize,
    out: String,
    column: usize,
    /// The beginning of each further line of the paragraph.
    hang: Vec<Piece>,
    /// The line has only what begins it.
    is_empty: bool,
    word: Vec<Piece>,
    /// Columns of the word.
    word_width: usize,
    /// Spaces before the word.
    gap: usize,
    /// A part of the word is written, so that no line can end before it.
    is_glued: bool,
}

impl Paper {
    pub(super) fn new() -> Self {
        Self {
            width: usize::MAX,
            out: String::new(),
            column: 0,
            hang: Vec::new(),
            is_empty: true,
            word: Vec::new(),
            word_width: 0,
            gap: 0,
            is_glued: false,
        }
    }

    /// Sets the width for what follows. The last column stays empty: some terminals wrap after it.
    pub(super) fn set_width(&mut self, width: Option<usize>) {
        self.width = width.map_or(usize::MAX, |width| width.saturating_sub(1).max(1));
    }

    pub(super) fn width(&self) -> usize {
        self.width
    }

    /// Returns the column of the cursor.
    pub(super) fn column(&self) -> usize {
        self.column
    }

    /// Takes what was written.
    pub(super) fn take(&mut self) -> String {
        std::mem::take(&mut self.out)
    }

    /// Begins a line with `first`, and the lines into which it is wrapped with `hang`.
    pub(super) fn begin(&mut self, first: &[Piece], hang: Vec<Piece>) {
        self.pieces(first);
        self.hang = hang;
        self.is_empty = true;
    }

    /// Adds text, which can be wrapped between its words.
    pub(super) fn text(&mut self, style: Style, text: &str) {
        let mut buffer = [0; 4];
        for c in text.chars() {
            if c == ' ' || c == '\t' {
                self.end_word();
                // Those at the beginning of a line are left out.
                self.gap += usize::from(!self.is_empty);
                continue;
            }
            let c = c.encode_utf8(&mut buffer);
            let wide = measure_text_width(c);
            // Scripts with wide characters have no spaces between their words.
            let is_joined = || self.last() == Some('\u{200d}');
            if (wide > 1 || self.word_width > 1 && self.is_wide()) && wide > 0 && !is_joined() {
                self.end_word();
            }
            self.push(style, c, wide);
        }
    }

    /// Adds text that is not wrapped.
    pub(super) fn unbroken(&mut self, style: Style, text: &str) {
        self.push(style, text, measure_text_width(text));
    }

    /// Returns `true` if the last character of the word is wide.
    fn is_wide(&self) -> bool {
        let is_wide = |last: char| measure_text_width(last.encode_utf8(&mut [0; 4])) > 1;
        self.last().is_some_and(is_wide)
    }

    /// Returns the last character of the word.
    fn last(&self) -> Option<char> {
        let (_, text) = self.word.last()?;
        text.chars().next_back()
    }

    fn push(&mut self, style: Style, text: &str, wide: usize) {
        self.word_width += wide;
        match self.word.last_mut() {
            Some((last, word)) if *last == style => word.push_str(text),
            _ => self.word.push((style, text.to_owned())),
        }
    }

    /// Writes the word, in the next line if it does not fit.
    pub(super) fn end_word(&mut self) {
        self.write_word();
        self.is_glued = false;
    }

    /// Writes the beginning of a word that may continue.
    pub(super) fn flush(&mut self) {
        if !self.word.is_empty() {
            self.write_word();
            self.is_glued = true;
        }
    }

    fn write_word(&mut self) {
        if self.word.is_empty() {
            return;
        }
        let end = self
            .column
            .saturating_add(self.gap)
            .saturating_add(self.word_width);
        if !self.is_glued && !self.is_empty && end > self.width {
            self.out.push('\n');
            self.column = 0;
            self.begin_further();
        } else {
            self.out.extend(std::iter::repeat_n(' ', self.gap));
            self.column += self.gap;
        }
        self.gap = 0;
        for (style, text) in self.word.drain(..) {
            let _ = write!(self.out, "{style}{text}{style:#}");
        }
        self.column += std::mem::take(&mut self.word_width);
        self.is_empty = false;
    }

    /// Writes pieces as they are.
    pub(super) fn pieces(&mut self, pieces: &[Piece]) {
        for (style, text) in pieces {
            let _ = write!(self.out, "{style}{text}{style:#}");
            self.column += measure_text_width(text);
        }
    }

    /// Ends the line. Spaces at its end are left out.
    pub(super) fn end_line(&mut self) {
        self.end_word();
        self.gap = 0;
        self.out.push('\n');
        self.column = 0;
        self.is_empty = true;
    }

    /// Begins the next line of the paragraph.
    pub(super) fn break_line(&mut self) {
        self.end_line();
        self.begin_further();
    }

    /// Writes what begins each further line of the paragraph.
    fn begin_further(&mut self) {
        let hang = std::mem::take(&mut self.hang);
        self.pieces(&hang);
        self.hang = hang;
    }
}
