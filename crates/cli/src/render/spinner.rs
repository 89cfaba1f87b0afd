//! The spinner that is shown while no event comes.

use std::time::Duration;

use console::{Term, measure_text_width, truncate_str};

/// A temporary line at the end of the output.
pub(crate) trait Spinner {
    /// Shows the next frame with this text.
    fn show(&mut self, text: &str);

    /// Shows the next frame with this text after other text in its line, which has room for this number of columns.
    fn show_after(&mut self, text: &str, room: usize);

    /// Removes what is shown.
    fn hide(&mut self);
}

/// Delay after the last event before the spinner is shown, so that streaming text does not flicker.
pub(crate) const SPINNER_DELAY: Duration = Duration::from_millis(250);

const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

/// A spinner on stderr.
///
/// It has no thread of its own, so it never interleaves with other output. The cursor stays at the end of its
/// line, so the `^C` that a terminal echoes is removed with it.
#[derive(Debug)]
pub(crate) struct TermSpinner {
    term: Term,
    frame: usize,
    shown: Option<Location>,
}

/// Location of the spinner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Location {
    /// A line of its own.
    Line,
    /// The last columns of a line, of this number.
    After(usize),
}

impl TermSpinner {
    pub(crate) fn new() -> Self {
        Self {
            term: Term::stderr(),
            frame: 0,
            shown: None,
        }
    }
}

impl TermSpinner {
    /// Removes the last frame and returns the next one.
    fn next(&mut self, text: &str) -> String {
        self.hide();
        self.frame = (self.frame + 1) % FRAMES.len();
        format!("  {} {text}", FRAMES[self.frame])
    }
}

impl Spinner for TermSpinner {
    fn show(&mut self, text: &str) {
        let Some((_, columns)) = self.term.size_checked() else {
            // stderr is not a terminal, although stdout is.
            return;
        };
        let line = self.next(text);
        // Room for the `^C`: a line that wraps cannot be removed.
        let room = usize::from(columns).saturating_sub(4);
        // An error is ignored: the spinner is optional.
        let _ = self.term.write_str(&truncate_str(&line, room, "…"));
        self.shown = Some(Location::Line);
    }

    fn show_after(&mut self, text: &str, room: usize) {
        let line = self.next(text);
        let line = truncate_str(&line, room, "…");
        let columns = measure_text_width(&line);
        // Two spaces and the frame.
        if columns > 2 && self.term.size_checked().is_some() {
            let _ = self.term.write_str(&line);
            self.shown = Some(Location::After(columns));
        }
    }

    fn hide(&mut self) {
        let _ = match self.shown.take() {
            Some(Location::Line) => self.term.clear_line(),
            // Relative moves: the text before it stays wherever it is.
            Some(Location::After(columns)) => {
                self.term.write_str(&format!("\u{1b}[{columns}D\u{1b}[K"))
            }
            None => Ok(()),
        };
    }
}

/// Removes the line: a run may end without an event that does.
impl Drop for TermSpinner {
    fn drop(&mut self) {
        self.hide();
    }
}
