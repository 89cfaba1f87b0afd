//! Orders that wait to be carried out by the CLI.

use std::collections::HashMap;
use std::time::Duration;

use teamster_core::provider::OrderId;
use teamster_core::{AgentError, ErrorCode, ErrorKind};
use tokio::sync::oneshot;
use tokio::time::Instant;

/// How long an order may take to be carried out.
const ORDER_LIMIT: Duration = Duration::from_secs(30);

/// Receiver of an order's outcome.
pub(crate) type Outcome = oneshot::Sender<Result<(), AgentError>>;

/// The callers that wait for the outcome of an order.
#[derive(Default)]
pub(crate) struct Replies {
    waiting: HashMap<OrderId, (Outcome, Instant)>,
    next: u64,
}

impl Replies {
    /// The number of a new order.
    pub(crate) fn add(&mut self, to: Outcome) -> OrderId {
        let id = OrderId(self.next);
        self.next += 1;
        self.waiting.insert(id, (to, Instant::now() + ORDER_LIMIT));
        id
    }

    /// The caller that waits for this order.
    pub(crate) fn take(&mut self, id: OrderId) -> Option<Outcome> {
        self.waiting.remove(&id).map(|(to, _)| to)
    }

    /// Ends the orders that have taken too long; whether there were any.
    pub(crate) fn give_up(&mut self) -> bool {
        let now = Instant::now();
        let late = self.waiting.extract_if(|_, (_, until)| *until <= now);
        let mut any = false;
        for (_, (to, _)) in late {
            any = true;
            let message = format!("the CLI did not answer within {ORDER_LIMIT:?}");
            let error = AgentError::new(ErrorCode::WatchdogTimeout, ErrorKind::Timeout, message);
            // The caller may not wait any more.
            let _ = to.send(Err(error));
        }
        any
    }

    /// When the next order has taken too long.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.waiting.values().map(|(_, until)| *until).min()
    }

    /// Ends all of them without an outcome.
    pub(crate) fn clear(&mut self) {
        self.waiting.clear();
    }
}
