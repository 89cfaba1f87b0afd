//! The way of events from a run to its consumer.

use std::mem;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::vec;

use teamster_core::AbortHandle;
use tokio::sync::{Semaphore, mpsc};

use crate::log::Part;

/// A way on which this many events may wait before the run waits for its consumer, or fewer long ones.
pub(crate) fn channel(most: usize) -> (Sender, Receiver) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let room = Arc::new(Semaphore::new(most));
    (
        Sender {
            events: sender,
            room: room.clone(),
            most,
        },
        Receiver {
            events: receiver,
            batch: Vec::new().into_iter(),
            taken: 0,
            room,
        },
    )
}

/// An event takes as much room again for each of these bytes.
const BYTES: usize = 1024;

/// Events, and the room that they take.
type Batch = (Vec<Part>, usize);

/// The end of the run.
pub(crate) struct Sender {
    events: mpsc::UnboundedSender<Batch>,
    room: Arc<Semaphore>,
    most: usize,
}

/// The end of the consumer.
#[derive(Debug)]
pub(crate) struct Receiver {
    events: mpsc::UnboundedReceiver<Batch>,
    /// Received and not yet read.
    batch: vec::IntoIter<Part>,
    /// The room that its batch took.
    taken: usize,
    room: Arc<Semaphore>,
}

impl Sender {
    /// Sends events, when there is room for more. When the consumer is gone, the run is aborted.
    ///
    /// A run that was asked to stop waits for no consumer: else one whose consumer has fallen asleep could
    /// not be stopped, and would keep its slot forever.
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
                    // It comes back when the events are read.
                    taken.forget();
                }
            }
            () = abort.aborted() => {}
        }
        if self.events.send((mem::take(events), room)).is_err() {
            abort.abort();
        }
    }

    /// Sends events without waiting for room.
    pub(crate) fn send_at_once(&self, events: Vec<Part>) {
        // Without a consumer they are dropped.
        let _ = self.events.send((events, 0));
    }
}

impl Receiver {
    /// The next part; `None` at the end.
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

    /// The next batch of parts; `None` at the end.
    pub(crate) fn poll_batch(&mut self, cx: &mut Context<'_>) -> Poll<Option<Vec<Part>>> {
        // More than was taken if the events were sent after an abort, when no consumer waits any more.
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
        // A sender that waits for room must see that the reader is gone.
        self.room.close();
    }
}
