//! Something that turns while nothing comes.

use std::time::Duration;

use console::{Term, truncate_str};

/// One line that can be shown, changed, and removed without a trace.
pub(crate) trait Spinner {
    /// Shows this text, and turns a little.
    fn show(&mut self, text: &str);

    /// Removes the line, if there is one.
    fn hide(&mut self);
}

/// How long nothing must have come before the spinner is shown: text that streams must not flicker.
pub(crate) const PATIENCE: Duration = Duration::from_millis(250);

const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

/// A spinner on stderr.
///
/// It is drawn only on request, never by a thread of its own, so it cannot come between the
/// parts of what else is written. And it leaves the cursor in its own line, behind the text: the
/// `^C` that a terminal echoes there goes away with it.
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
            // Not a terminal, although stdout is one.
            return;
        };
        self.hide();
        self.frame = (self.frame + 1) % FRAMES.len();
        let line = format!("  {} {text}", FRAMES[self.frame]);
        // Room for the `^C`: a line that wraps cannot be removed.
        let room = usize::from(columns).saturating_sub(4);
        // It is only an ornament.
        let _ = self.term.write_str(&truncate_str(&line, room, "…"));
        self.shown = true;
    }

    fn hide(&mut self) {
        if std::mem::take(&mut self.shown) {
            let _ = self.term.clear_line();
        }
    }
}

/// A run may end without an event that removes it.
impl Drop for TermSpinner {
    fn drop(&mut self) {
        self.hide();
    }
}
