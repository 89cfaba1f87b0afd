//! The end of a run.

use std::mem;

use teamster_core::{AgentError, ErrorCode, ErrorKind, RunStatus};

use super::caught::observed;
use super::{Course, Driver};
use crate::account::Account;
use crate::registry::Registration;
use crate::{Outcome, OutcomeStatus, RunEvent, SideEffects};

impl Driver {
    /// Ends the run.
    pub(super) async fn end(mut self, course: Course, registration: Option<Registration>) {
        let mut out = Vec::new();
        self.account.start(&mut out);
        self.account.keep(&mut out);
        let (status, error) = match course {
            Course::Success => (OutcomeStatus::Success, None),
            Course::Error(error) => (OutcomeStatus::Error, Some(error)),
            Course::Aborted => (OutcomeStatus::Aborted, Some(aborted())),
        };
        if let (OutcomeStatus::Error, Some(error)) = (status, &error) {
            out.push(RunEvent::Error {
                run_id: self.run_id.clone(),
                error: Box::new(error.clone()),
            });
        }
        self.emit(&mut out).await;

        let mut outcome = Outcome::new(self.run_id.clone(), self.account.provider(), status);
        let spent = self.account.spent();
        outcome.usage = Some(spent.usage).filter(|usage| !usage.is_empty());
        outcome.meta.session_id = self.account.known_session().cloned();
        outcome.meta.model = self.account.model().map(str::to_owned);
        outcome.meta.duration_ms = self.elapsed_ms();
        outcome.meta.error = error;
        outcome.meta.cost_usd = spent.cost_usd;
        outcome.meta.num_turns = spent.reported_turns();
        outcome.structured_output = (self.last_result.as_ref())
            // Also of one that has completed over its budget.
            .filter(|result| result.status == RunStatus::Completed)
            .and_then(|result| result.structured_output.clone());
        outcome.last_result = self.last_result.take();
        let attempt = self.account.current_attempt();
        let account = mem::replace(
            &mut self.account,
            Account::new(self.run_id.clone(), SideEffects::default(), false),
        );
        let (payloads, log) = account.into_parts();
        outcome.payloads = payloads;
        outcome.meta.attempts = u32::try_from(log.len()).unwrap_or(u32::MAX);
        outcome.meta.attempt_log = log;
        if let Some(observer) = &self.observer
            && registration.is_some()
        {
            observed(observer.ended(&outcome), &self.abort).await;
        }
        // Whoever has seen the end finds the run no longer active.
        drop(registration);
        let end = RunEvent::End {
            run_id: self.run_id.clone(),
            status,
            duration_ms: outcome.meta.duration_ms,
            result: Box::new(outcome),
        };
        let at_ms = (self.config.clock)();
        self.report(at_ms, attempt, &mut vec![end]);
        self.send_reports().await;
    }
}

fn aborted() -> AgentError {
    AgentError::new(
        ErrorCode::Aborted,
        ErrorKind::Aborted,
        "the run was aborted",
    )
}
