//! The spinner that is shown while no event comes.

use std::time::Duration;

use console::{Term, truncate_str};

/// A temporary line at the end of the output.
pub(crate) trait Spinner {
    /// Shows the next frame with this text.
    fn show(&mut self, text: &str);

    /// Removes the line if it is shown.
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
    shown: bool,
}

impl TermSpinner {
    pub(crate) fn new() -> Self {
        Self {
            term: Term::stderr(),
            frame: 0,
            shown: false,
        }
    }
}

impl Spinner for TermSpinner {
    fn show(&mut self, text: &str) {
        let Some((_, columns)) = self.term.size_checked() else {
            // stderr is not a terminal, although stdout is.
            return;
        };
        self.hide();
        self.frame = (self.frame + 1) % FRAMES.len();
        let line = format!("  {} {text}", FRAMES[self.frame]);
        // Room for the `^C`: a line that wraps cannot be removed.
        let room = usize::from(columns).saturating_sub(4);
        // An error is ignored: the spinner is optional.
        let _ = self.term.write_str(&truncate_str(&line, room, "…"));
        self.shown = true;
    }

    fn hide(&mut self) {
        if std::mem::take(&mut self.shown) {
            let _ = self.term.clear_line();
        }
    }
}

/// Removes the line: a run may end without an event that does.
impl Drop for TermSpinner {
    fn drop(&mut self) {
        self.hide();
    }
}
