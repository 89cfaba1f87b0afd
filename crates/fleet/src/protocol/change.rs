//! Changes of records.

use super::{Claim, Head, Seen, State};

/// What a change is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Step {
    /// Make the record.
    Submit,
    /// `queued` → `claimed`.
    Claim,
    /// `claimed` → `started`.
    Start,
    /// `started` again, by the process of the worker that continues with it before the agent starts. From its revision on,
    /// that process knows every wish to stop.
    Resume,
    /// `started` → `ended`.
    End,
    /// `claimed` → `queued`, because the claiming process is gone.
    HandOn,
    /// `queued` or `claimed` → `cancelled`.
    Cancel,
    /// → `conflict`.
    Conflict,
    /// `started` → `lost`.
    GiveUp,
}

/// A change of a record, if its revision is still the expected one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Change {
    /// What it is for.
    pub step: Step,
    /// The expected revision; 0 if there must be no record.
    pub expected: u64,
    /// The head of the new record.
    pub head: Head,
}

/// What has become of a change whose answer was lost, or that was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Settled {
    /// The change was made, with this revision.
    Done(u64),
    /// The change is to be tried again, like this.
    Again(Change),
    /// Another change was first.
    Another,
}

impl Change {
    fn new(step: Step, expected: u64, head: Head) -> Self {
        Self {
            step,
            expected,
            head,
        }
    }

    /// The record of a new run.
    pub fn submit() -> Self {
        Self::new(Step::Submit, 0, Head::QUEUED)
    }

    /// A claim to a queued run; `None` if it is not queued.
    pub fn claim(seen: Seen, claim: Claim) -> Option<Self> {
        (seen.head?.state == State::Queued).then(|| {
            let head = Head::claimed(State::Claimed, claim);
            Self::new(Step::Claim, seen.revision, head)
        })
    }

    /// The last change before the agent may start.
    pub fn start(revision: u64, claim: Claim) -> Self {
        Self::new(Step::Start, revision, Head::claimed(State::Started, claim))
    }

    /// The same, by another process of the worker, or a retry: [`Step::Resume`].
    pub fn resume(revision: u64, claim: Claim) -> Self {
        Self::new(Step::Resume, revision, Head::claimed(State::Started, claim))
    }

    /// The end of a run whose whole log was copied.
    pub fn end(revision: u64, claim: Claim) -> Self {
        Self::new(Step::End, revision, Head::claimed(State::Ended, claim))
    }

    /// The end of a claim whose process is gone; `None` if the run is not claimed.
    pub fn hand_on(seen: Seen) -> Option<Self> {
        (seen.head?.state == State::Claimed)
            .then(|| Self::new(Step::HandOn, seen.revision, Head::QUEUED))
    }

    /// The cancellation of a run that was not started; `None` if it may have been.
    pub fn cancel(seen: Seen) -> Option<Self> {
        matches!(seen.head?.state, State::Queued | State::Claimed).then(|| {
            let head = Head {
                state: State::Cancelled,
                claim: None,
            };
            Self::new(Step::Cancel, seen.revision, head)
        })
    }

    /// The report that a witness has another claim than the record, or that a queued run was started.
    pub fn conflict(revision: u64, claim: Claim) -> Self {
        let head = Head::claimed(State::Conflict, claim);
        Self::new(Step::Conflict, revision, head)
    }

    /// The report that a run has begun, and that its log is gone.
    pub fn lost(revision: u64, claim: Claim) -> Self {
        Self::new(Step::GiveUp, revision, Head::claimed(State::Lost, claim))
    }

    /// The decision of a person that a started run will not be heard of again; `None` if it was not started or has ended.
    pub fn give_up(seen: Seen) -> Option<Self> {
        let claim = seen.head?.claim?;
        (seen.head?.state == State::Started).then(|| {
            Self::new(
                Step::GiveUp,
                seen.revision,
                Head::claimed(State::Lost, claim),
            )
        })
    }

    /// Decides from a later read what has become of the change.
    ///
    /// - The record has the change: it is done.
    /// - The record is of the same claim, in an earlier state: again, from its revision. Another field was changed, or the
    ///   store has lost a write.
    /// - The record is as old as the expected one, or older: again.
    /// - Else another change was first.
    #[must_use]
    pub fn settle(self, seen: Seen) -> Settled {
        let is_newer = seen.revision > self.expected;
        let Some(head) = seen.head else {
            // Deleted, or not yet visible.
            return if is_newer {
                Settled::Another
            } else {
                Settled::Again(self)
            };
        };
        let claim = self.head.claim;
        // A record that is started already does not tell whether it was resumed.
        let is_certain = claim.is_some() && self.step != Step::Resume;
        if head == self.head && (is_newer || is_certain) {
            Settled::Done(seen.revision)
        } else if claim.is_some_and(|claim| head.is_of(claim.nonce)) && !head.state.is_final() {
            Settled::Again(Self {
                expected: seen.revision,
                ..self
            })
        } else if is_newer {
            Settled::Another
        } else {
            Settled::Again(self)
        }
    }
}
