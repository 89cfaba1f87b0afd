//! What the model is asked and what it answers.

use teamster_mock_model::{Part, Turn};

/// What the agent is asked.
pub(crate) const PROMPT: &str = "Please add the line to the list, task 7f3a.";

/// Where a command leaves its mark.
pub(crate) const EFFECTS: &str = "effects.txt";

/// What the model says when it goes well.
pub(crate) const ANSWER: &str = "All done.";

/// An answer in which the model runs a command.
pub(crate) fn runs(command: &str) -> Turn {
    Turn::new(vec![Part::Shell(command.to_owned())])
}

/// An answer in words.
pub(crate) fn says(text: &str) -> Turn {
    Turn::new(vec![Part::Text(text.into())])
}

/// The same answer, so often only.
pub(crate) fn only(times: u32, mut turn: Turn) -> Turn {
    turn.times = Some(times);
    turn
}
