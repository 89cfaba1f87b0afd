//! Tokens of requests that the CLI prints, or writes into the session's files, or both.

use teamster_core::Usage;

/// Where the tokens of a request were found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// Its output. Requests for the rest of a cut answer, and those of a sub-agent in the background, are not there.
    Printed,
    /// The session's files, to which a line may be written after the end of its turn.
    Recorded,
}

/// Requests of the main agent, or of its sub-agents, each of which counts once.
#[derive(Debug, Default)]
pub(super) struct Counted {
    /// Usage in the active turn.
    used: Option<Usage>,
    /// Requests that one source has and the other does not yet. Both have the same figures.
    unmatched: Vec<(Source, Usage)>,
}

impl Counted {
    /// Counts a request, unless the other source had it before.
    pub(super) fn add(&mut self, source: Source, request: Usage) {
        let mut unmatched = self.unmatched.iter();
        if let Some(at) = unmatched.position(|it| it.0 != source && it.1 == request) {
            self.unmatched.swap_remove(at);
            return;
        }
        self.unmatched.push((source, request));
        self.used = Some(self.used.map_or(request, |used| used.plus(request)));
    }

    /// Takes the usage of the turn.
    pub(super) fn take(&mut self) -> Option<Usage> {
        self.used.take()
    }
}
