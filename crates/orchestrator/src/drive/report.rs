//! What a run reports: to the callback, and to the consumer of its log.

use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use teamster_core::{AgentError, LogEntry};

use super::{Driver, millis};
use crate::log::{LifecycleEntry, Report};
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

    /// Adds an agent's event and what follows from it to the reports. The start of the run comes before.
    pub(super) fn report_with(&mut self, entry: LogEntry, events: &mut Vec<RunEvent>) {
        let (at_ms, attempt) = (entry.at_ms, self.account.current_attempt());
        if matches!(events.first(), Some(RunEvent::Start { .. })) {
            let start = events.remove(0);
            self.report(at_ms, attempt, &mut vec![start]);
        }
        if self.agents {
            self.reports.push(Report::Agent(entry));
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
        let reports = mem::take(&mut self.reports);
        self.sender.send(reports, &self.abort).await;
    }
}
