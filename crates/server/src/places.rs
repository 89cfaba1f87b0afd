//! Places of connections: those without a valid token cannot take the places of others.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use teamster_core::sync::lock;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

/// The maximum number of connections whose requests had no valid token yet. A further one takes the place of the
/// oldest of them.
const GUESTS: usize = 128;

/// The places of a listener.
#[derive(Debug)]
pub(crate) struct Places {
    /// Free places of connections that had a request with a valid token.
    members: Arc<Semaphore>,
    guests: Mutex<Guests>,
}

#[derive(Debug, Default)]
struct Guests {
    last: u64,
    /// Connections without a valid token so far, by their number.
    waiting: BTreeMap<u64, CancellationToken>,
}

/// The place of a connection, free again when this is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    number: u64,
    places: Arc<Places>,
    /// Cancelled when another connection has taken the place.
    taken: CancellationToken,
    kept: Mutex<Option<OwnedSemaphorePermit>>,
}

impl Places {
    /// Creates places for this number of connections with a valid token.
    pub(crate) fn new(members: usize) -> Arc<Self> {
        Arc::new(Self {
            members: Arc::new(Semaphore::new(members)),
            guests: Mutex::default(),
        })
    }

    /// Returns the place of a new connection.
    pub(crate) fn enter(self: &Arc<Self>) -> Arc<Place> {
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
        Arc::new(Place {
            number,
            places: self.clone(),
            taken,
            kept: Mutex::default(),
        })
    }
}

impl Place {
    /// Keeps the place for the rest of the connection, because a request had a valid token. Returns `false` if no place
    /// is free, or if another connection has taken it.
    pub(crate) fn keep(&self) -> bool {
        let mut kept = lock(&self.kept);
        if kept.is_none() {
            *kept = self.places.members.clone().try_acquire_owned().ok();
            // A guest whose place was taken begins nothing: its connection is about to be closed.
            if kept.is_some()
                && (lock(&self.places.guests).waiting)
                    .remove(&self.number)
                    .is_none()
            {
                *kept = None;
            }
        }
        kept.is_some()
    }

    /// Returns a token that is cancelled when another connection takes the place.
    pub(crate) fn taken(&self) -> CancellationToken {
        self.taken.clone()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        lock(&self.places.guests).waiting.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guest_takes_the_place_of_the_oldest_guest_and_of_no_other() {
        let places = Places::new(2);
        let member = places.enter();
        assert!(member.keep() && member.keep());
        let guests: Vec<_> = (0..GUESTS).map(|_| places.enter()).collect();
        assert!(!guests[0].taken().is_cancelled());
        let further = places.enter();
        assert!(guests[0].taken().is_cancelled());
        assert!(!guests[1].taken().is_cancelled() && !member.taken().is_cancelled());
        assert!(!guests[0].keep(), "its place was taken");
        // Its request arrives in time.
        assert!(further.keep());
        assert!(!guests[1].keep(), "both places are taken");
        drop(member);
        assert!(guests[1].keep());
        drop((guests, further));
        assert_eq!(lock(&places.guests).waiting.len(), 0);
    }
}
