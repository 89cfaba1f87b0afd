//! The submission of a run.

use super::{Change, Seen, State};

/// What a submission needs next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SubmitEffect {
    /// Make this change, then report whether it was made.
    Change(Change),
    /// Read the record, and compare its spec.
    Read,
    /// Publish a hint, then report whether the queue has it, or that it is [full](Submission::full).
    Hint,
    /// Nothing: the record was deleted, so the id is used up.
    Refuse,
    /// Nothing: the queue is full, and the run will not be carried out.
    Full,
    /// Nothing: the run is acknowledged. An earlier submission has made it if this is `true`.
    Acknowledged(bool),
}

/// The submission of a run: first the record, then the hint. It is acknowledged when both are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Submission(Stage);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Stage {
    Make,
    Settle,
    Hint {
        existed: bool,
    },
    /// The queue is full: the record must not be carried out later.
    Withdraw,
    Cancel(Change),
    Full,
    Acknowledged {
        existed: bool,
    },
    Refuse,
}

impl Submission {
    /// Begins a submission. It may be a repetition of an earlier one.
    pub fn new() -> Self {
        Self(Stage::Make)
    }

    /// Returns what is to be done next.
    pub fn next(self) -> SubmitEffect {
        match self.0 {
            Stage::Make => SubmitEffect::Change(Change::submit()),
            Stage::Settle | Stage::Withdraw => SubmitEffect::Read,
            Stage::Cancel(change) => SubmitEffect::Change(change),
            Stage::Full => SubmitEffect::Full,
            Stage::Hint { .. } => SubmitEffect::Hint,
            Stage::Refuse => SubmitEffect::Refuse,
            Stage::Acknowledged { existed } => SubmitEffect::Acknowledged(existed),
        }
    }

    /// Continues after a request that was answered (`true`), or was refused or not answered (`false`).
    #[must_use]
    pub fn answered(self, is_done: bool) -> Self {
        Self(match (self.0, is_done) {
            (Stage::Make, true) => Stage::Hint { existed: false },
            (Stage::Make, false) => Stage::Settle,
            (Stage::Cancel(_), true) => Stage::Full,
            (Stage::Cancel(_), false) => Stage::Withdraw,
            (Stage::Hint { existed }, true) => Stage::Acknowledged { existed },
            (stage, _) => stage,
        })
    }

    /// Continues after a hint that was refused because the queue is full. A run of this submission is cancelled; one that
    /// was there already gets its hint from [`care`](super::care).
    #[must_use]
    pub fn full(self) -> Self {
        Self(match self.0 {
            Stage::Hint { existed: false } => Stage::Withdraw,
            Stage::Hint { existed: true } => Stage::Acknowledged { existed: true },
            stage => stage,
        })
    }

    /// Continues after a read. The caller has compared the spec of the record with its own, and ends the submission with
    /// an error if it is another one.
    #[must_use]
    pub fn read(self, seen: Seen) -> Self {
        Self(match (self.0, seen.head) {
            (Stage::Withdraw, Some(head)) => match head.state {
                State::Queued => Change::cancel(seen).map_or(self.0, Stage::Cancel),
                State::Cancelled => Stage::Full,
                // It was hinted meanwhile.
                _ => Stage::Acknowledged { existed: false },
            },
            (Stage::Withdraw, None) if seen.revision > 0 => Stage::Full,
            // A claimed run had its hint; a killed submission may have left a queued one without.
            (Stage::Settle, Some(head)) if head.state == State::Queued => {
                Stage::Hint { existed: true }
            }
            (Stage::Settle, Some(_)) => Stage::Acknowledged { existed: true },
            // A run that may have worked is never started again under its id.
            (Stage::Settle, None) if seen.revision > 0 => Stage::Refuse,
            (Stage::Settle, None) => Stage::Make,
            (stage, _) => stage,
        })
    }
}

impl Default for Submission {
    fn default() -> Self {
        Self::new()
    }
}
