//! Slots of connections: those without a valid token cannot take the slots of others.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use teamster_core::sync::lock;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

/// The maximum number of connections whose requests had no valid token yet. A further one takes the slot of the
/// oldest of them.
const GUESTS: usize = 128;

/// The slots of a listener.
#[derive(Debug)]
pub(crate) struct Slots {
    /// Free slots of connections that had a request with a valid token.
    members: Arc<Semaphore>,
    guests: Mutex<Guests>,
}

#[derive(Debug, Default)]
struct Guests {
    last: u64,
    /// Connections without a valid token so far, by their number.
    waiting: BTreeMap<u64, CancellationToken>,
}

/// The slot of a connection, free again when this is dropped.
#[derive(Debug)]
pub(crate) struct Slot {
    number: u64,
    slots: Arc<Slots>,
    /// Cancelled when another connection has taken the slot.
    taken: CancellationToken,
    kept: Mutex<Option<OwnedSemaphorePermit>>,
}

impl Slots {
    /// Creates slots for this number of connections with a valid token.
    pub(crate) fn new(members: usize) -> Arc<Self> {
        Arc::new(Self {
            members: Arc::new(Semaphore::new(members)),
            guests: Mutex::default(),
        })
    }

    /// Returns the slot of a new connection.
    pub(crate) fn enter(self: &Arc<Self>) -> Arc<Slot> {
        let taken = CancellationToken::new();
        let mut guests = lock(&self.guests);
        guests.last += 1;
        let number = guests.last;
        guests.waiting.insert(number, taken.clone());
        if guests.waiting.len() > GUESTS
            && let Some((_, oldest)) = guests.waiting.pop_first()
        {
            oldest.cancel();
        }
        drop(guests);
        Arc::new(Slot {
            number,
            slots: self.clone(),
            taken,
            kept: Mutex::default(),
        })
    }
}

impl Slot {
    /// Keeps the slot for the rest of the connection, because a request had a valid token. Returns `false` if no slot
    /// is free, or if another connection has taken it.
    pub(crate) fn keep(&self) -> bool {
        let mut kept = lock(&self.kept);
        if kept.is_none() {
            *kept = self.slots.members.clone().try_acquire_owned().ok();
            // A guest whose slot was taken begins nothing: its connection is about to be closed.
            if kept.is_some()
                && (lock(&self.slots.guests).waiting)
                    .remove(&self.number)
                    .is_none()
            {
                *kept = None;
            }
        }
        kept.is_some()
    }

    /// Returns a token that is cancelled when another connection takes the slot.
    pub(crate) fn taken(&self) -> CancellationToken {
        self.taken.clone()
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        lock(&self.slots.guests).waiting.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guest_takes_the_slot_of_the_oldest_guest_and_of_no_other() {
        let slots = Slots::new(2);
        let member = slots.enter();
        assert!(member.keep() && member.keep());
        let guests: Vec<_> = (0..GUESTS).map(|_| slots.enter()).collect();
        assert!(!guests[0].taken().is_cancelled());
        let further = slots.enter();
        assert!(guests[0].taken().is_cancelled());
        assert!(!guests[1].taken().is_cancelled() && !member.taken().is_cancelled());
        assert!(!guests[0].keep(), "its slot was taken");
        // Its request arrives in time.
        assert!(further.keep());
        assert!(!guests[1].keep(), "both slots are taken");
        drop(member);
        assert!(guests[1].keep());
        drop((guests, further));
        assert_eq!(lock(&slots.guests).waiting.len(), 0);
    }
}
