//! Repair of what killed processes and lost machines have left.

use super::{Change, Seen, State, Tail};

/// What is to be done for a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Care {
    /// Make this change, then publish a hint.
    HandOn(Change),
    /// Publish a hint.
    Hint,
    /// Make this change: the log has the end of the run.
    End(Change),
    /// Publish the end of a run that was given up after the message with this number (0: there must be none), as of the
    /// claim [`Tag::GIVEN_UP`](super::Tag::GIVEN_UP): from then on, a machine that is back adds nothing to the log.
    Fence(u64),
    /// Resubmit the run, under another id. If it is there already, nothing happens.
    Rerun,
}

/// What is known when a record is cared for.
#[derive(Debug, Clone, Copy, Default)]
pub struct Known {
    /// The claiming process is gone, as far as the store knows. That may be wrong: a process that was only asleep finds its
    /// claim gone.
    pub is_absent: bool,
    /// The queue has a message that may be that of the run.
    pub has_hint: bool,
    /// The last message of the log. It is needed of a started run whose process is absent, and of one that was given up.
    pub tail: Option<Tail>,
    /// The run is to be resubmitted if it is given up.
    pub wants_rerun: bool,
}

/// Decides what any worker does for a record that it finds.
///
/// A started run whose log has no end is left alone: its machine may come back.
pub fn care(seen: Seen, known: Known) -> Option<Care> {
    let head = seen.head?;
    match head.state {
        State::Claimed if known.is_absent => Change::hand_on(seen).map(Care::HandOn),
        State::Queued if !known.has_hint => Some(Care::Hint),
        State::Started if known.is_absent => {
            let tail = known.tail.filter(|tail| tail.is_end)?;
            let claim = head.claim.filter(|claim| claim.nonce == tail.nonce)?;
            Some(Care::End(Change::end(seen.revision, claim)))
        }
        State::Lost if !known.tail.is_some_and(|tail| tail.is_end) => {
            Some(Care::Fence(known.tail.map_or(0, |tail| tail.number)))
        }
        State::Lost if known.wants_rerun => Some(Care::Rerun),
        _ => None,
    }
}
