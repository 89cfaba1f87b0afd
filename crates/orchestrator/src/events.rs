//! The way of events from a run to its consumer.

use std::sync::Arc;
use std::task::{Context, Poll};

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
        },
        Receiver {
            events: receiver,
            room,
        },
    )
}

/// The end of the run.
pub(crate) struct Sender {
    events: mpsc::UnboundedSender<Report>,
    room: Arc<Semaphore>,
}

/// The end of the consumer.
#[derive(Debug)]
pub(crate) struct Receiver {
    events: mpsc::UnboundedReceiver<Report>,
    room: Arc<Semaphore>,
}

impl Sender {
    /// Sends an event, when there is room for it. When nobody reads any more, the run is aborted.
    ///
    /// A run that was told to stop waits for nobody: else one whose consumer has fallen asleep could
    /// not be stopped, and would keep its slot for ever.
    pub(crate) async fn send(&self, event: Report, abort: &AbortHandle) {
        tokio::select! {
            biased;
            room = self.room.acquire() => if let Ok(room) = room {
                // It comes back when the event is read.
                room.forget();
            },
            () = abort.aborted() => {}
        }
        if self.events.send(event).is_err() {
            abort.abort();
        }
    }
}

impl Receiver {
    /// The next event; `None` when there will be no more.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Report>> {
        let event = self.events.poll_recv(cx);
        if let Poll::Ready(Some(_)) = event {
            // More than was taken if the event was sent after an abort, when nobody waits any more.
            self.room.add_permits(1);
        }
        event
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        // Whoever waits for room shall see that nobody reads any more.
        self.room.close();
    }
}
