//! What a tick used and what it cost.

use std::pin::pin;
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
    /// Turns that the agent has begun by itself since the last tick: they are nobody's, and have accounts of
    /// their own. One that is still being played may take as long as any other, but not at the end.
    pub(super) async fn unasked(&mut self, at_the_end: bool) {
        while let Some(stream) = self.adapter.unasked() {
            let handle = stream.abort_handle();
            let limit = async {
                tokio::select! {
                    () = self.clock.sleep(self.settings.turn_limit) => {}
                    () = self.control.stopping() => {}
                    () = std::future::ready(()), if at_the_end => {}
                }
            };
            let mut result = pin!(stream.result());
            let result = tokio::select! {
                biased;
                result = &mut result => result,
                () = limit => {
                    self.log.line("interrupting a turn that the agent plays by itself");
                    handle.abort();
                    result.await
                }
            };
            self.log.line("the agent played a turn by itself");
            let session = result.session_id.clone();
            let session = session.or_else(|| self.adapter.session());
            // The mark is that of the last tick: since then the files tell of that one too.
            self.record(&result, &[], session.as_ref());
        }
    }

    /// What the CLI's files tell from now on is the next tick's.
    pub(super) async fn mark(&mut self) {
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
        self.record(result, &measured, session);
    }

    fn record(&self, result: &RunResult, measured: &[ModelTick], session: Option<&Id>) {
        let known = Known {
            provider: self.settings.runtime.parse().ok(),
            result,
            measured,
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
