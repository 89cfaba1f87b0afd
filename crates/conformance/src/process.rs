//! Changes of a CLI's process.

/// The change of the process during a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Process {
    /// The process was started for the turn and keeps running.
    New,
    /// The process existed before and keeps running.
    Same,
    /// The process ended with the turn.
    Ended,
}

impl Process {
    /// Returns the word for a story.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Same => "same",
            Self::Ended => "ended",
        }
    }
}
