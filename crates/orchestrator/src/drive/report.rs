//! What a run reports: to the callback, and to the consumer of its log.

use std::panic::{AssertUnwindSafe, catch_unwind};

use teamster_core::LogEntry;

use super::Driver;
use crate::RunEvent;
use crate::log::{LifecycleEntry, Report};

impl Driver {
    /// Reports events of the run. When their consumer is gone, the run is aborted and goes on to its end.
    pub(super) async fn emit(&self, events: &mut Vec<RunEvent>) {
        if !events.is_empty() {
            let attempt = self.account.current_attempt();
            self.emit_at((self.config.clock)(), attempt, events).await;
        }
    }

    /// Reports an agent's event and what follows from it. The start of the run comes before.
    pub(super) async fn emit_with(&self, entry: LogEntry, events: &mut Vec<RunEvent>) {
        let (at_ms, attempt) = (entry.at_ms, self.account.current_attempt());
        if matches!(events.first(), Some(RunEvent::Start { .. })) {
            let start = events.remove(0);
            self.emit_at(at_ms, attempt, &mut vec![start]).await;
        }
        if self.agents {
            self.sender.send(Report::Agent(entry), &self.abort).await;
        }
        self.emit_at(at_ms, attempt, events).await;
    }

    /// Reports events of this time and attempt.
    pub(super) async fn emit_at(&self, at_ms: u64, attempt: u32, events: &mut Vec<RunEvent>) {
        for event in events.drain(..) {
            if let Some(call) = &self.on_event {
                // A callback that panics is its caller's affair.
                let _ = catch_unwind(AssertUnwindSafe(|| call(&event)));
            }
            let entry = LifecycleEntry::new(at_ms, attempt, event);
            self.sender.send(Report::Run(entry), &self.abort).await;
        }
    }
}
