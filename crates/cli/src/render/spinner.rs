//! Something that turns while nothing comes.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// One line that can be shown, changed, and removed without a trace.
pub(crate) trait Spinner {
    /// Shows this text, and turns a little.
    fn show(&mut self, text: String);

    /// Removes the line, if there is one.
    fn hide(&mut self);
}

/// A spinner on stderr. It is drawn only when it is told to, never by a thread of its own, so it
/// cannot come between the parts of what else is written.
#[derive(Debug, Default)]
pub(crate) struct ProgressSpinner {
    bar: Option<ProgressBar>,
}

impl Spinner for ProgressSpinner {
    fn show(&mut self, text: String) {
        let bar = self.bar.get_or_insert_with(|| {
            let target = ProgressDrawTarget::stderr_with_hz(20);
            let bar = ProgressBar::with_draw_target(None, target);
            // The default style is a usable second choice.
            if let Ok(style) = ProgressStyle::with_template("  {spinner} {wide_msg}") {
                bar.set_style(style.tick_chars("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏ "));
            }
            bar
        });
        bar.set_message(text);
        bar.tick();
    }

    fn hide(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

/// How long nothing must have come before the spinner is shown: text that streams must not flicker.
pub(crate) const PATIENCE: Duration = Duration::from_millis(250);
