//! Reports of a run to its callback and to the consumer of its log.

use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use teamster_core::{AgentError, LifecycleEntry, LogEntry, Next, RunEvent};

use super::{Driver, millis};
use crate::log::{Part, View};
use crate::{Candidate, Held, RunObserver, RunRequest};

impl Driver {
    /// Reports the attempt that follows a failed one.
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
        let reason = reason.clone();
        let delay_ms = millis(delay);
        let mut coming = Next::new(self.account.attempt(), candidate.provider());
        coming.model.clone_from(&candidate.params.model);
        coming.account.clone_from(&candidate.account);
        coming.resumes = (self.account.session()).filter(|_| resume).cloned();
        let run_id = self.run_id.clone();
        #[cfg(feature = "tracing")]
        tracing::info!(
            target: "teamster::orchestrator",
            attempt = coming.attempt,
            provider = coming.provider,
            reason = %reason.kind,
            delay_ms,
            "{}",
            if next == last { "retry" } else { "fallback" }
        );
        out.push(if next == last {
            RunEvent::retry(run_id, reason, delay_ms, coming)
        } else {
            RunEvent::fallback(run_id, reason, delay_ms, coming)
        });
        self.emit(&mut out).await;
    }

    /// Reports that the run waits for the end of this hold, or for room.
    pub(super) async fn report_wait(&mut self, candidate: &Candidate, held: Option<Held>) {
        let mut out = Vec::new();
        self.account.start(&mut out);
        out.push(RunEvent::hold(
            self.run_id.clone(),
            candidate.group(),
            candidate.params.model.clone(),
            held.map(|held| (held.until_ms, held.reason)),
        ));
        self.emit(&mut out).await;
    }

    /// Reports events of the run. If the consumer is gone, the run is aborted and continues to its end.
    pub(super) async fn emit(&mut self, events: &mut Vec<RunEvent>) {
        if !events.is_empty() {
            self.report((self.config.clock)(), events);
            self.send_parts().await;
        }
    }

    /// Adds agents' events, and the events derived from the last of them, to the log. The start of the run and of the
    /// attempt come first.
    pub(super) fn report_with(
        &mut self,
        at_ms: u64,
        entries: &mut Vec<LogEntry>,
        events: &mut Vec<RunEvent>,
    ) {
        let begins =
            |event: &&RunEvent| matches!(event, RunEvent::Start { .. } | RunEvent::Attempt { .. });
        let first = events.iter().take_while(begins).count();
        if first > 0 {
            self.report(at_ms, &mut events.drain(..first).collect());
        }
        self.add(mem::take(entries));
        self.report(at_ms, events);
    }

    /// Adds events of the run, and the agent events that follow from them, to the log.
    pub(super) fn report(&mut self, at_ms: u64, events: &mut Vec<RunEvent>) {
        for event in events.drain(..) {
            self.call(&event);
            self.log_event(at_ms, event);
        }
    }

    /// Reports an event of the run to the callback.
    pub(super) fn call(&self, event: &RunEvent) {
        if let Some(call) = &self.on_event {
            // A panic of the callback does not affect the run.
            let _ = catch_unwind(AssertUnwindSafe(|| call(event)));
        }
    }

    /// Adds an event of the run, and the agent events that follow from it, to the log.
    pub(super) fn log_event(&mut self, at_ms: u64, event: RunEvent) {
        let mut following = Vec::new();
        self.merge
            .lifecycle(&event, self.account.used(), &mut following);
        self.at_ms = self.at_ms.max(at_ms);
        let is_derived = event.is_derived();
        self.seq += u64::from(!is_derived);
        if !is_derived || self.view == View::Lifecycle {
            let attempt = self.account.current_attempt();
            let entry = LifecycleEntry::new(event).seq(self.seq).at_ms(self.at_ms);
            let entry = entry.attempt(attempt);
            if !is_derived {
                self.observe_log(|observer| observer.run_entry(&entry));
            }
            self.parts.push(Part::Run(entry));
        }
        self.add(following);
    }

    pub(super) fn add(&mut self, mut entries: Vec<LogEntry>) {
        if entries.is_empty() {
            return;
        }
        let attempt = self.account.current_attempt();
        for entry in &mut entries {
            self.seq += 1;
            // A held error is reported with the current time.
            self.at_ms = self.at_ms.max(entry.at_ms);
            entry.seq = self.seq;
            entry.at_ms = self.at_ms;
            entry.run_id = Some(self.run_id.clone());
            entry.attempt = attempt;
        }
        self.observe_log(|observer| entries.iter().for_each(|it| observer.agent_entry(it)));
        if self.view.has_agents() {
            self.parts.push(Part::Agents(entries));
        }
    }

    /// Passes entries of the log to the observer.
    fn observe_log(&self, pass: impl FnOnce(&dyn RunObserver)) {
        if let Some(observer) = &self.observer {
            // A panic of the observer does not affect the run.
            let _ = catch_unwind(AssertUnwindSafe(|| pass(&**observer)));
        }
    }

    /// Sends the pending parts to the consumer of the log.
    pub(super) async fn send_parts(&mut self) {
        self.sender.send(&mut self.parts, &self.abort).await;
    }
}

impl Drop for Driver {
    /// If the run's task is dropped before its end, the consumer of the log still receives the reported parts and
    /// `done`.
    fn drop(&mut self) {
        if !self.view.has_agents() {
            return;
        }
        if !self.ended {
            self.lost();
        }
        self.sender.send_at_once(mem::take(&mut self.parts));
    }
}
