//! The way of events from a run to its consumer.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::vec;

use teamster_core::AbortHandle;
use tokio::sync::{Semaphore, mpsc};

use crate::log::Report;

/// A way on which this many events may wait before the run waits for its consumer.
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
            room,
        },
    )
}

/// The end of the run.
pub(crate) struct Sender {
    events: mpsc::UnboundedSender<Vec<Report>>,
    room: Arc<Semaphore>,
    most: usize,
}

/// The end of the consumer.
#[derive(Debug)]
pub(crate) struct Receiver {
    events: mpsc::UnboundedReceiver<Vec<Report>>,
    /// What was received and not yet read.
    batch: vec::IntoIter<Report>,
    room: Arc<Semaphore>,
}

impl Sender {
    /// Sends events, when there is room for more. When the consumer is gone, the run is aborted.
    ///
    /// A run that was told to stop waits for nobody: else one whose consumer has fallen asleep could
    /// not be stopped, and would keep its slot for ever.
    pub(crate) async fn send(&self, events: Vec<Report>, abort: &AbortHandle) {
        if events.is_empty() {
            return;
        }
        let room = u32::try_from(events.len().min(self.most)).unwrap_or(u32::MAX);
        tokio::select! {
            biased;
            room = self.room.acquire_many(room) => if let Ok(room) = room {
                // It comes back when the events are read.
                room.forget();
            },
            () = abort.aborted() => {}
        }
        if self.events.send(events).is_err() {
            abort.abort();
        }
    }
}

impl Receiver {
    /// The next event; `None` when there will be no more.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Report>> {
        loop {
            if let Some(event) = self.batch.next() {
                // More than was taken if the event was sent after an abort, when nobody waits any more.
                self.room.add_permits(1);
                return Poll::Ready(Some(event));
            }
            match self.events.poll_recv(cx) {
                Poll::Ready(Some(events)) => self.batch = events.into_iter(),
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Pending => return Poll::Pending,
            }
        }
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        // Whoever waits for room shall see that nobody reads any more.
        self.room.close();
    }
}
