//! The channel of events from a run to its consumer.

use std::mem;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::vec;

use teamster_core::AbortHandle;
use tokio::sync::{Notify, Semaphore, mpsc};

use crate::log::Part;

/// Creates a channel with room for this many events. Long events take the room of several.
pub(crate) fn channel(most: usize) -> (Sender, Receiver) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let room = Arc::new(Semaphore::new(most));
    let wants_start = Arc::new(Notify::new());
    (
        Sender {
            events: sender,
            room: room.clone(),
            most,
            wants_start: wants_start.clone(),
        },
        Receiver {
            events: receiver,
            batch: Vec::new().into_iter(),
            taken: 0,
            room,
            wants_start,
        },
    )
}

/// Bytes of an event that take the room of one more event.
pub(crate) const BYTES: usize = 1024;

/// Events and the room that they take.
type Batch = (Vec<Part>, usize);

/// The run's half of the channel.
pub(crate) struct Sender {
    events: mpsc::UnboundedSender<Batch>,
    room: Arc<Semaphore>,
    most: usize,
    /// Notified if the consumer wants the start of the run now.
    wants_start: Arc<Notify>,
}

/// The consumer's half of the channel.
#[derive(Debug)]
pub(crate) struct Receiver {
    events: mpsc::UnboundedReceiver<Batch>,
    /// Parts that were received and not yet read.
    batch: vec::IntoIter<Part>,
    /// The room that the current batch took.
    taken: usize,
    room: Arc<Semaphore>,
    wants_start: Arc<Notify>,
}

impl Sender {
    /// Sends events when there is room for them. If the consumer is gone, aborts the run.
    ///
    /// A run that was asked to stop does not wait for room. Otherwise a stalled consumer would keep the run and its
    /// slot forever.
    pub(crate) async fn send(&self, events: &mut Vec<Part>, abort: &AbortHandle) {
        if events.is_empty() {
            return;
        }
        let mut room = 0;
        for part in events.iter() {
            let (count, bytes) = part.size();
            room += count + bytes / BYTES;
        }
        let room = room.min(self.most);
        tokio::select! {
            biased;
            taken = self.room.acquire_many(u32::try_from(room).unwrap_or(u32::MAX)) => {
                if let Ok(taken) = taken {
                    // The receiver returns the permits when the events are read.
                    taken.forget();
                }
            }
            () = abort.aborted() => {}
        }
        if self.events.send((mem::take(events), room)).is_err() {
            abort.abort();
        }
    }

    /// Waits until the consumer wants the start of the run. Cancel-safe.
    pub(crate) async fn start_wanted(&self) {
        self.wants_start.notified().await;
    }

    /// Sends events without waiting for room.
    pub(crate) fn send_at_once(&self, events: Vec<Part>) {
        // Without a consumer they are dropped.
        let _ = self.events.send((events, 0));
    }
}

impl Receiver {
    /// Asks the run to report its start now.
    pub(crate) fn want_start(&self) {
        // Kept for a run that does not wait for it yet.
        self.wants_start.notify_one();
    }

    /// Returns the next part, or `None` at the end.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Part>> {
        loop {
            if let Some(event) = self.batch.next() {
                return Poll::Ready(Some(event));
            }
            match self.poll_batch(cx) {
                Poll::Ready(Some(events)) => self.batch = events.into_iter(),
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// Returns the next batch of parts, or `None` at the end.
    pub(crate) fn poll_batch(&mut self, cx: &mut Context<'_>) -> Poll<Option<Vec<Part>>> {
        // This returns more permits than were acquired if the events were sent after an abort. No sender waits then.
        self.room.add_permits(mem::take(&mut self.taken));
        self.events.poll_recv(cx).map(|batch| {
            let (events, room) = batch?;
            self.taken = room;
            Some(events)
        })
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        // Wake a sender that waits for room.
        self.room.close();
    }
}
