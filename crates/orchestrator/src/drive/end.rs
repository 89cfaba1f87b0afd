//! The end of a run.

use std::mem;

use teamster_core::sync::caught;
use teamster_core::{
    AgentError, AgentEvent, Done, ErrorCode, ErrorKind, LogEntry, Outcome, RunEvent, RunResult,
};

use super::caught::observed;
use super::{Course, Driver};
use crate::Closed;
use crate::merge::Ending;
use crate::registry::Registration;

impl Driver {
    pub(super) async fn end(mut self, course: Course, registration: Option<Registration>) {
        let mut out = Vec::new();
        self.account.start(&mut out);
        self.account.keep(&mut out);
        if let Course::Error(error) = &course {
            out.push(RunEvent::error(self.run_id.clone(), error.clone()));
        }
        self.emit(&mut out).await;

        let (error, aborted) = match course {
            Course::Success => (None, false),
            Course::Error(error) => (Some(error), false),
            Course::Aborted => (Some(aborted_error()), true),
        };
        let closed = match self.closing.take() {
            Some(close) => caught(async move { close().await })
                .await
                .unwrap_or_default(),
            None => Closed::default(),
        };
        let mut last = Vec::new();
        let attempts = self.account.attempt() - 1;
        let mut outcome = self.outcome(error, aborted, attempts, &mut last);
        outcome.result.workspace = closed.workspace;
        last.extend(closed.events.into_iter().map(LogEntry::from));
        if let Some(observer) = &self.observer {
            observed(observer.ended(&outcome), &self.abort).await;
        }
        // A caller that has seen the end must find the run inactive.
        drop(registration);
        let mut end = RunEvent::End(Box::new(outcome));
        self.call(&end);
        if self.view.has_agents()
            && let RunEvent::End(outcome) = &mut end
        {
            let result = split(&mut outcome.result);
            last.push(AgentEvent::Done(Done::new(result)).into());
        }
        self.log_event((self.config.clock)(), end);
        self.add(last);
        self.ended = true;
        self.send_parts().await;
    }

    /// Ends the log of a run whose task was dropped.
    pub(super) fn lost(&mut self) {
        let aborted = self.abort.is_aborted();
        let error = AgentError::new(
            ErrorCode::StreamEndedEarly,
            ErrorKind::Internal,
            "the run is gone without an end: its Tokio runtime shuts down, or lacks a driver",
        );
        let mut last = Vec::new();
        // The ledger still counts the current attempt as open.
        let attempts = self.account.attempt();
        let outcome = self.outcome(
            Some(error).filter(|_| !aborted),
            aborted,
            attempts,
            &mut last,
        );
        last.push(AgentEvent::Done(Done::new(outcome.result)).into());
        self.add(last);
    }

    /// Builds the outcome after this many attempts. Adds the events before `done` to `out`.
    fn outcome(
        &mut self,
        error: Option<AgentError>,
        aborted: bool,
        attempts: u32,
        out: &mut Vec<LogEntry>,
    ) -> Outcome {
        let duration_ms = self.elapsed_ms();
        let text = self.account.take_text();
        let open = self.account.take_open();
        let account = &self.account;
        let result = self.merge.end(
            Ending {
                error: error.as_ref(),
                aborted,
                attempts,
                duration_ms,
                session_id: account.known_session(),
                model: account.model(),
                text,
                open,
                used: account.used(),
            },
            out,
        );
        let mut outcome = Outcome::new(self.run_id.clone(), account.provider(), result);
        outcome.model = account.model().map(str::to_owned);
        outcome.session_id = account.known_session().cloned();
        outcome.duration_ms = duration_ms;
        outcome.error = error;
        outcome.attempts = account.attempts().to_vec();
        outcome
    }
}

/// Moves the text, which can be long, into a copy of the result for `done`.
fn split(result: &mut RunResult) -> RunResult {
    let (text, pieces) = (mem::take(&mut result.text), mem::take(&mut result.pieces));
    let message = result.final_message.take();
    let mut moved = result.clone();
    (moved.text, moved.pieces, moved.final_message) = (text, pieces, message);
    moved
}

fn aborted_error() -> AgentError {
    AgentError::new(
        ErrorCode::Aborted,
        ErrorKind::Aborted,
        "the run was aborted",
    )
}
