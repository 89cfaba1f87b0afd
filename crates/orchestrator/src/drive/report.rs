//! What a run reports: to the callback, and to the consumer of its log.

use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use teamster_core::{AgentError, LogEntry};

use super::{Driver, millis};
use crate::log::{LifecycleEntry, Report, Said};
use crate::{Next, RunEvent, RunRequest};

impl Driver {
    /// Reports what comes after a failed attempt.
    pub(super) async fn announce(
        &mut self,
        request: &RunRequest,
        last: usize,
        next: usize,
        reason: &AgentError,
        delay: Duration,
        resume: bool,
    ) {
        let mut out = Vec::new();
        self.account.start(&mut out);
        if resume {
            self.account.keep(&mut out);
        } else {
            self.account.discard();
        }
        let candidate = &request.candidates[next];
        let attempt = self.account.attempt();
        let reason = Box::new(reason.clone());
        let delay_ms = millis(delay);
        let coming = Next {
            provider: candidate.provider().to_owned(),
            model: candidate.params.model.clone(),
            resumes: (self.account.session()).filter(|_| resume).cloned(),
        };
        let run_id = self.run_id.clone();
        #[cfg(feature = "tracing")]
        tracing::info!(
            run = %run_id,
            attempt,
            provider = coming.provider,
            reason = %reason.kind,
            delay_ms,
            "{}",
            if next == last { "retry" } else { "fallback" }
        );
        out.push(if next == last {
            RunEvent::Retry {
                run_id,
                attempt,
                reason,
                delay_ms,
                next: coming,
            }
        } else {
            RunEvent::Fallback {
                run_id,
                attempt,
                reason,
                delay_ms,
                next: coming,
            }
        });
        self.emit(&mut out).await;
    }

    /// Reports events of the run. When their consumer is gone, the run is aborted and goes on to its end.
    pub(super) async fn emit(&mut self, events: &mut Vec<RunEvent>) {
        if !events.is_empty() {
            let attempt = self.account.current_attempt();
            self.report((self.config.clock)(), attempt, events);
            self.send_reports().await;
        }
    }

    /// Adds agents' events and what follows from the last of them, at this time, to the reports. The start of
    /// the run comes before.
    pub(super) fn report_with(
        &mut self,
        at_ms: u64,
        entries: &mut Vec<LogEntry>,
        events: &mut Vec<RunEvent>,
    ) {
        let attempt = self.account.current_attempt();
        if matches!(events.first(), Some(RunEvent::Start { .. })) {
            let start = events.remove(0);
            self.report(at_ms, attempt, &mut vec![start]);
        }
        if self.agents && !entries.is_empty() {
            self.reports.push(Report::Agents(mem::take(entries)));
        }
        self.report(at_ms, attempt, events);
    }

    /// Adds events of this time and attempt to the reports.
    pub(super) fn report(&mut self, at_ms: u64, attempt: u32, events: &mut Vec<RunEvent>) {
        for event in events.drain(..) {
            if let Some(call) = &self.on_event {
                // A callback that panics is its caller's affair.
                let _ = catch_unwind(AssertUnwindSafe(|| call(&event)));
            }
            let entry = LifecycleEntry::new(at_ms, attempt, event);
            self.reports.push(Report::Run(entry));
        }
    }

    /// Sends the reports to the consumer of the log.
    pub(super) async fn send_reports(&mut self) {
        self.sender.send(&mut self.reports, &self.abort).await;
    }
}

impl Drop for Driver {
    /// Where the run's task is gone before its end, the consumer of the log still gets what was reported.
    fn drop(&mut self) {
        if self.agents && !self.ended {
            let (said, _) = self.take_account().into_parts();
            let mut reports = mem::take(&mut self.reports);
            reports.push(Report::Said(Said {
                text: said.into_text(),
                last_message: None,
            }));
            self.sender.send_at_once(reports);
        }
    }
}
