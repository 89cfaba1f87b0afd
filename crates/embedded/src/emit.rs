//! Emission of a run's events.

use std::sync::{Arc, Mutex};

use teamster_core::provider::{
    DecodedResult, Decoder, Events, Exit, RunAssembler, Secrets, UniqueIds,
};
use teamster_core::sync::lock;
use teamster_core::time::epoch_ms;
use teamster_core::{AgentEvent, Id, LogEntry, NoticeLevel, NoticeSource};
use tokio::sync::mpsc;

/// Capacity of a run's channel to its consumer, in batches of events. The run waits while it is full.
pub(crate) const WAITING: usize = 1024;

/// Enforces the grammar of a run's stream and assembles its result.
pub(crate) struct Emitter {
    assembler: RunAssembler,
    summary: Arc<Mutex<DecodedResult>>,
    out: Events,
    to: mpsc::Sender<Vec<LogEntry>>,
    messages: u32,
    requests: u64,
    tools: UniqueIds,
}

/// Decoder without lines, which only supplies the summary at the end.
struct Summary(Arc<Mutex<DecodedResult>>);

impl Decoder for Summary {
    fn line(&mut self, _line: &[u8], _out: &mut Events) {}

    fn finish(&mut self, _exit: &Exit, _out: &mut Events) -> DecodedResult {
        std::mem::take(&mut *lock(&self.0))
    }
}

impl Emitter {
    pub(crate) fn new(to: mpsc::Sender<Vec<LogEntry>>, secrets: Secrets) -> Self {
        let summary = Arc::new(Mutex::new(DecodedResult::default()));
        let decoder = Box::new(Summary(summary.clone()));
        Self {
            assembler: RunAssembler::new(decoder).hide(secrets).started(),
            summary,
            out: Events::new(),
            to,
            messages: 0,
            requests: 0,
            tools: UniqueIds::default(),
        }
    }

    /// Returns an id for the model's next message.
    pub(crate) fn next_message(&mut self) -> Id {
        self.messages += 1;
        self.message()
    }

    /// Returns the id of the model's last message.
    pub(crate) fn message(&self) -> Id {
        format!("m{}", self.messages).into()
    }

    /// Returns a number for the next permission request.
    pub(crate) fn next_request(&mut self) -> u64 {
        self.requests += 1;
        self.requests
    }

    /// Returns a call's id in the stream. It is the service's id, with a suffix if the run already used that id.
    pub(crate) fn tool_id(&mut self, own: &str) -> Id {
        self.tools.unique(own)
    }

    /// Emits an event. Waits while the consumer is far behind.
    pub(crate) async fn event(&mut self, event: impl Into<AgentEvent>) {
        let event = event.into();
        self.assembler.events(&mut self.out, |out| out.push(event));
        self.flush().await;
    }

    pub(crate) async fn notice(&mut self, level: NoticeLevel, message: impl Into<String>) {
        self.event(AgentEvent::notice(level, NoticeSource::Runtime, message))
            .await;
    }

    /// Ends the stream.
    pub(crate) async fn finish(mut self, exit: Exit, summary: DecodedResult, duration_ms: u64) {
        *lock(&self.summary) = summary;
        let mut out = std::mem::take(&mut self.out);
        if matches!(exit.stop, Some(teamster_core::provider::Stop::Aborted)) {
            self.assembler.stop_requested();
        }
        self.assembler.finish(exit, duration_ms, &mut out);
        let entries = out.drain_entries(epoch_ms()).collect();
        // An error means that the consumer is gone.
        let _ = self.to.send(entries).await;
    }

    async fn flush(&mut self) {
        let entries: Vec<_> = self.out.drain_entries(epoch_ms()).collect();
        if !entries.is_empty() {
            // An error means that the consumer is gone. That aborts the run, which is detected elsewhere.
            let _ = self.to.send(entries).await;
        }
    }
}
