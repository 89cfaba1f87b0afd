//! Usage and cost of ticks.

use std::time::Duration;

use teamster_core::{EventStream, Id, RunResult};
use teamster_usage::ModelTick;

use super::AgentLoop;
use super::turn::result_of;
use crate::log::Log;
use crate::tick_usage::{self, UsageRecord, UsageSources};

/// Reads of the CLI's files while they lag behind the stream. Claude writes its last message about 0.1 s after
/// printing it.
const USAGE_READS: u32 = 10;
const USAGE_READ_INTERVAL: Duration = Duration::from_millis(100);
/// Reads while the files have no usage of the tick: the CLI may write none.
const USAGE_READS_WITHOUT_DATA: u32 = 2;
/// Interval at which a sleeping loop polls for unasked turns.
const UNASKED_POLL_INTERVAL: Duration = Duration::from_secs(30);

/// A turn that the agent began by itself.
pub(super) struct UnaskedTurn {
    stream: EventStream,
    /// Deadline by the loop's clock. `None` after the interrupt.
    until: Option<Duration>,
}

impl UnaskedTurn {
    fn interrupt(&mut self, log: &Log) {
        if self.until.take().is_some() {
            log.line("interrupting a turn that the agent began by itself");
            self.stream.abort();
        }
    }
}

/// Returns the output tokens of a tick over all models.
pub(super) fn output_of(measured: &[ModelTick]) -> u64 {
    let outputs = measured.iter().filter_map(|tick| tick.usage.output_tokens);
    outputs.sum()
}

impl AgentLoop {
    /// Runs and records the turns that the agent began by itself since the last tick. They belong to no tick.
    /// A turn in progress has the usual time limit, or is interrupted at once with `interrupt`.
    pub(super) async fn finish_unasked_turns(&mut self, interrupt: bool) {
        let control = self.control.clone();
        while self.take_unasked_turn() {
            let result = tokio::select! {
                biased;
                result = self.unasked_turn_end() => Some(result),
                () = control.stopping() => None,
                () = std::future::ready(()), if interrupt => None,
            };
            let result = match result {
                Some(result) => result,
                None => {
                    if let Some(turn) = &mut self.unasked_turn {
                        turn.interrupt(&self.log);
                    }
                    self.unasked_turn_end().await
                }
            };
            self.record_unasked_turn(&result);
        }
    }

    /// Waits for the end of the next unasked turn. Needed during a sleep: the session keeps only the last few.
    /// Cancel-safe.
    pub(super) async fn next_unasked_end(&mut self) -> RunResult {
        loop {
            if self.take_unasked_turn() {
                return self.unasked_turn_end().await;
            }
            self.clock.sleep(UNASKED_POLL_INTERVAL).await;
        }
    }

    /// Takes the next unasked turn, unless one is in progress. Returns whether one is in progress.
    fn take_unasked_turn(&mut self) -> bool {
        if self.unasked_turn.is_none() {
            let limit = self.settings.turn_limit;
            let until = self.clock.elapsed().saturating_add(limit);
            self.unasked_turn = (self.adapter.unasked()).map(|stream| UnaskedTurn {
                stream,
                until: Some(until),
            });
        }
        self.unasked_turn.is_some()
    }

    /// Waits for the end of the unasked turn and interrupts it at its deadline. Cancel-safe.
    async fn unasked_turn_end(&mut self) -> RunResult {
        while let Some(turn) = &mut self.unasked_turn {
            let left = turn.until.map(|it| it.saturating_sub(self.clock.elapsed()));
            tokio::select! {
                biased;
                () = self.clock.sleep(left.unwrap_or_default()), if left.is_some() => {
                    turn.interrupt(&self.log);
                }
                result = result_of(&mut turn.stream) => {
                    self.unasked_turn = None;
                    return result;
                }
            }
        }
        RunResult::default()
    }

    pub(super) fn record_unasked_turn(&self, result: &RunResult) {
        self.log
            .line("a turn that the agent began by itself has ended");
        let session = result.session_id.clone();
        let session = session.or_else(|| self.adapter.session());
        // The meter still counts from the previous tick, so its files include this turn.
        self.record(result, &[], session.as_ref(), None);
    }

    /// Sets the position in the CLI's files from which the next tick counts.
    pub(super) async fn mark(&mut self) {
        let session = self.adapter.session();
        if let Some(mut meter) = self.meter.take() {
            // This reads files, and a database has a runtime of its own.
            let marked = tokio::task::spawn_blocking(move || {
                meter.mark(session.as_deref());
                meter
            });
            self.meter = marked.await.ok();
        }
    }

    /// Records the usage of a tick, by model. `fallback` is the provider that ran it instead: the agent's own
    /// files do not have that usage.
    pub(super) async fn account(
        &mut self,
        result: &RunResult,
        session: Option<&Id>,
        fallback: Option<&str>,
    ) -> Vec<UsageRecord> {
        if fallback.is_some() {
            return self.record(result, &[], result.session_id.as_ref(), fallback);
        }
        let measured = self.measured(result, session.cloned()).await;
        self.record(result, &measured, session, None)
    }

    pub(super) fn record(
        &self,
        result: &RunResult,
        measured: &[ModelTick],
        session: Option<&Id>,
        fallback: Option<&str>,
    ) -> Vec<UsageRecord> {
        let provider = fallback.unwrap_or(self.settings.agent.id);
        let sources = UsageSources {
            provider: provider.parse().ok(),
            prices: &self.prices,
            result,
            measured,
            session: session.map(|id| &**id),
            now: self.clock.now(),
        };
        let records = tick_usage::records(&sources);
        self.log.line(tick_usage::line(&sources, &records));
        if !records.is_empty() {
            let written = (self.folder).append_json_lines(UsageRecord::NAME, &records);
            self.log_file_error(UsageRecord::NAME, written);
        }
        records
    }

    /// Returns the usage of the tick from the CLI's files. They lag behind the stream, so they are read until
    /// they catch up.
    ///
    /// Takes `&mut self` because adapters are not `Sync`, and the future must be `Send`.
    async fn measured(&mut self, result: &RunResult, session: Option<Id>) -> Vec<ModelTick> {
        // Without an id the sessions of other agents would count too.
        let (Some(meter), Some(session)) = (self.meter.clone(), session) else {
            return Vec::new();
        };
        let reported = result.usage.and_then(|usage| usage.output_tokens);
        // Kimi Code's stream has no usage, and its files have it only after the end of the turn.
        let is_only_in_files = reported.is_none() && result.is_success();
        let mut measured = Vec::new();
        for read_count in 1..=USAGE_READS {
            let (meter, session) = (meter.clone(), session.clone());
            let read = tokio::task::spawn_blocking(move || meter.read(Some(&session)));
            measured = read.await.unwrap_or_default();
            let output = output_of(&measured);
            let is_complete = match reported {
                None if is_only_in_files => output > 0,
                _ => output >= reported.unwrap_or(0),
            };
            let is_without_files = measured.is_empty() && read_count == USAGE_READS_WITHOUT_DATA;
            if is_complete || (is_without_files && !is_only_in_files) {
                break;
            }
            self.clock.sleep(USAGE_READ_INTERVAL).await;
        }
        measured
    }
}
