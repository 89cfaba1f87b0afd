//! Changes of a CLI's process.

/// The change of the process with a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Process {
    /// It was started for it, and lives on.
    New,
    /// It was there before, and lives on.
    Same,
    /// It ended with the turn.
    Ended,
}

impl Process {
    /// As a story has it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Same => "same",
            Self::Ended => "ended",
        }
    }
}
