//! Repair of what killed processes have left.

use super::{Change, Seen, State};

/// What is to be done for a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Care {
    /// Make this change, then publish a hint.
    HandOn(Change),
    /// Publish a hint.
    Hint,
}

/// Decides what any worker does for a record that it finds.
///
/// `is_absent` tells whether the claiming process is gone, as far as the store knows. It may be wrong: a process that was
/// only asleep finds its claim gone. `has_hint` tells whether the queue has a message that may be that of the run.
///
/// A started run is left alone: its machine may come back.
pub fn care(seen: Seen, is_absent: bool, has_hint: bool) -> Option<Care> {
    match seen.head?.state {
        State::Claimed if is_absent => Change::hand_on(seen).map(Care::HandOn),
        State::Queued if !has_hint => Some(Care::Hint),
        _ => None,
    }
}
