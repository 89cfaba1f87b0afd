//! A runtime whose runs lock their sessions.

use teamster_core::{
    AbortHandle, AgentError, AgentEvent, AgentRuntime, Capabilities, EventStream, ExecuteParams,
    SharedRuntime,
};

use super::SessionLocks;

/// Runtime whose runs lock their sessions. A run that would resume a session in use is refused before its CLI
/// is started.
pub struct OneWriter {
    runtime: SharedRuntime,
    locks: SessionLocks,
}

impl OneWriter {
    /// Wraps a runtime with these locks.
    pub fn new(runtime: SharedRuntime, locks: SessionLocks) -> Self {
        Self { runtime, locks }
    }
}

impl AgentRuntime for OneWriter {
    fn id(&self) -> &str {
        self.runtime.id()
    }

    fn capabilities(&self) -> &Capabilities {
        self.runtime.capabilities()
    }

    fn check(&self, params: &ExecuteParams) -> Result<(), AgentError> {
        self.runtime.check(params)
    }

    fn execute(&self, params: ExecuteParams) -> EventStream {
        let mut writer = self.locks.writer(self.runtime.id());
        let resumed = params.clone();
        let mut events = self.runtime.execute(params);
        let abort: AbortHandle = events.abort_handle();
        let batches = async_stream::stream! {
            if let Err(error) = writer.begin(&resumed) {
                // The run was never polled, so no process was started.
                events = EventStream::refused(error);
            }
            drop(resumed);
            loop {
                let batch = events.next_batch().await;
                if batch.is_empty() {
                    return;
                }
                for entry in &batch {
                    writer.see(&entry.event);
                    if matches!(entry.event, AgentEvent::Done(_)) {
                        // The process has ended: a reader of the end may resume the session.
                        writer.held.clear();
                    }
                }
                yield batch;
            }
        };
        EventStream::of_batches(batches, abort)
    }
}
