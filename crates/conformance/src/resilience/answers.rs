//! Prompts and answers of the model.

use teamster_mock_model::{Part, Turn};

pub(crate) const PROMPT: &str = "Please add the line to the list, task 7f3a.";

/// File that a command changes.
pub(crate) const EFFECTS: &str = "effects.txt";

/// The model's text on success.
pub(crate) const ANSWER: &str = "All done.";

/// Returns an answer in which the model runs a command.
pub(crate) fn runs(command: &str) -> Turn {
    Turn::new(vec![Part::Shell(command.to_owned())])
}

pub(crate) fn text(text: &str) -> Turn {
    Turn::new(vec![Part::Text(text.into())])
}

/// Limits an answer to this many requests.
pub(crate) fn only(times: u32, mut turn: Turn) -> Turn {
    turn.times = Some(times);
    turn
}
