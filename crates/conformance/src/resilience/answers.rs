//! Prompts and answers of the model.

use teamster_mock_model::{Part, Turn};

/// The prompt.
pub(crate) const PROMPT: &str = "Please add the line to the list, task 7f3a.";

/// Where a command leaves its mark.
pub(crate) const EFFECTS: &str = "effects.txt";

/// The model's text when it succeeds.
pub(crate) const ANSWER: &str = "All done.";

/// An answer in which the model runs a command.
pub(crate) fn runs(command: &str) -> Turn {
    Turn::new(vec![Part::Shell(command.to_owned())])
}

/// An answer in words.
pub(crate) fn text(text: &str) -> Turn {
    Turn::new(vec![Part::Text(text.into())])
}

/// The same answer, so often only.
pub(crate) fn only(times: u32, mut turn: Turn) -> Turn {
    turn.times = Some(times);
    turn
}
