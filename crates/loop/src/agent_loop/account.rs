//! What a tick used and what it cost.

use std::time::Duration;

use teamster_core::{Id, RunResult};
use teamster_usage::ModelTick;

use super::AgentLoop;
use crate::tick_usage::{self, Known, UsageRecord};

/// How often the CLI's files are looked at again if they tell less than the CLI has. Claude writes its last
/// message some 0.1 s after it has said it.
const LOOKS_AT_FILES: u32 = 10;
const BETWEEN_LOOKS: Duration = Duration::from_millis(100);
/// The same if they tell nothing: it may be that there are none.
const LOOKS_FOR_FILES: u32 = 2;

impl AgentLoop {
    /// What the agent did by itself since the last tick is read first: it belongs to nobody's turn.
    pub(super) async fn mark(&mut self) {
        while let Some(stream) = self.adapter.unasked() {
            let limit = self.clock.sleep(self.settings.turn_limit);
            let result = tokio::select! {
                result = stream.result() => result,
                () = limit => break,
                () = self.control.stopping() => break,
            };
            self.log.line("the agent played a turn by itself");
            let session = self.adapter.session();
            self.account(&result, session.as_ref()).await;
        }
        let session = self.adapter.session();
        if let Some(mut meter) = self.meter.take() {
            // Files are read, and for a database there is a runtime of its own.
            let marked = tokio::task::spawn_blocking(move || {
                meter.mark(session.as_deref());
                meter
            });
            self.meter = marked.await.ok();
        }
    }

    pub(super) async fn account(&mut self, result: &RunResult, session: Option<&Id>) {
        let measured = self.measured(result, session.cloned()).await;
        let known = Known {
            provider: self.settings.runtime.parse().ok(),
            result,
            measured: &measured,
            session: session.map(|id| &**id),
            now: self.clock.now(),
        };
        let records = tick_usage::records(&known);
        self.log.line(tick_usage::line(&known, &records));
        if !records.is_empty()
            && let Err(error) = (self.folder).append_json_lines(UsageRecord::NAME, &records)
        {
            self.failed(UsageRecord::NAME, &error);
        }
    }

    /// What the CLI's files say of the tick. They may lag behind what it has said: they are looked at again
    /// until they tell as much.
    async fn measured(&self, result: &RunResult, session: Option<Id>) -> Vec<ModelTick> {
        // Without an id other agents' sessions would be counted.
        let (Some(meter), Some(session)) = (&self.meter, session) else {
            return Vec::new();
        };
        let told = result.usage.and_then(|usage| usage.output_tokens);
        let mut measured = Vec::new();
        for look in 1..=LOOKS_AT_FILES {
            let (meter, session) = (meter.clone(), session.clone());
            let read = tokio::task::spawn_blocking(move || meter.read(Some(&session)));
            measured = read.await.unwrap_or_default();
            let outputs = measured.iter().filter_map(|tick| tick.usage.output_tokens);
            let enough = outputs.sum::<u64>() >= told.unwrap_or(0);
            if enough || (measured.is_empty() && look == LOOKS_FOR_FILES) {
                break;
            }
            self.clock.sleep(BETWEEN_LOOKS).await;
        }
        measured
    }
}
