//! The end of a run.

use std::mem;

use teamster_core::{AgentError, AgentEvent, Done, ErrorCode, ErrorKind, LogEntry, RunResult};

use super::caught::observed;
use super::{Course, Driver};
use crate::log::View;
use crate::merge::Ending;
use crate::registry::Registration;
use crate::{Outcome, RunEvent};

impl Driver {
    /// Ends the run.
    pub(super) async fn end(mut self, course: Course, registration: Option<Registration>) {
        let mut out = Vec::new();
        self.account.start(&mut out);
        self.account.keep(&mut out);
        if let Course::Error(error) = &course {
            out.push(RunEvent::Error {
                run_id: self.run_id.clone(),
                error: Box::new(error.clone()),
            });
        }
        self.emit(&mut out).await;

        let (error, aborted) = match course {
            Course::Success => (None, false),
            Course::Error(error) => (Some(error), false),
            Course::Aborted => (Some(aborted_error()), true),
        };
        let mut last = Vec::new();
        let attempts = self.account.attempt() - 1;
        let mut outcome = self.outcome(error, aborted, attempts, &mut last);
        if let Some(observer) = &self.observer
            && registration.is_some()
        {
            observed(observer.ended(&outcome), &self.abort).await;
        }
        if self.view.has_agents() {
            let result = self.split(&mut outcome.result);
            last.push(AgentEvent::Done(Done::new(result)).into());
        }
        // A caller that has seen the end finds the run no longer active.
        drop(registration);
        let end = RunEvent::End(Box::new(outcome));
        self.report((self.config.clock)(), &mut vec![end]);
        self.add(last);
        self.ended = true;
        self.send_parts().await;
    }

    /// Ends the log of a run whose task is gone.
    pub(super) fn lost(&mut self) {
        let aborted = self.abort.is_aborted();
        let error = AgentError::new(
            ErrorCode::StreamEndedEarly,
            ErrorKind::Internal,
            "the run is gone without an end: its Tokio runtime shuts down, or lacks a driver",
        );
        let mut last = Vec::new();
        // The attempt that goes on is not over for the account.
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

    /// What came of the run after so many attempts. What is left to say before `done` is added to `out`.
    fn outcome(
        &mut self,
        error: Option<AgentError>,
        aborted: bool,
        attempts: u32,
        out: &mut Vec<LogEntry>,
    ) -> Outcome {
        let duration_ms = self.elapsed_ms();
        let said = self.account.take_said();
        let account = &self.account;
        let result = self.merge.end(
            Ending {
                error: error.as_ref(),
                aborted,
                attempts,
                duration_ms,
                session_id: account.known_session(),
                model: account.model(),
                said,
            },
            out,
        );
        Outcome {
            run_id: self.run_id.clone(),
            provider: account.provider().to_owned(),
            model: account.model().map(str::to_owned),
            session_id: account.known_session().cloned(),
            duration_ms,
            error,
            attempts: account.attempts().to_vec(),
            result,
        }
    }

    /// The result for `done`. A long text is moved there, and copied only where the end of the run is to have
    /// it as well.
    fn split(&self, result: &mut RunResult) -> RunResult {
        if self.view != View::Agents || self.on_event.is_some() {
            // An answer that is all of the text is there once.
            let message = (result.final_message).take_if(|message| *message == result.text);
            let whole = result.clone();
            return match message {
                Some(message) => whole.final_message(message),
                None => whole,
            };
        }
        let (text, pieces) = (mem::take(&mut result.text), mem::take(&mut result.pieces));
        let message = result.final_message.take();
        let mut whole = result.clone();
        (whole.text, whole.pieces, whole.final_message) = (text, pieces, message);
        whole
    }
}

fn aborted_error() -> AgentError {
    AgentError::new(
        ErrorCode::Aborted,
        ErrorKind::Aborted,
        "the run was aborted",
    )
}
