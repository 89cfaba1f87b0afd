//! The end of a run.

use std::mem;

use teamster_core::{AgentError, ErrorCode, ErrorKind, RunStatus};

use super::caught::observed;
use super::{Course, Driver};
use crate::account::Account;
use crate::log::{Report, Said};
use crate::registry::Registration;
use crate::{Outcome, OutcomeStatus, Payload, RunEvent, SideEffects};

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
        let (said, log) = self.take_account().into_parts();
        let last = said.pieces().last().filter(|_| self.broke_off);
        let last_message = last.map(|(_, text)| text.to_owned());
        // A long answer is mostly one message: it is moved, and not copied.
        let rest = if said.count() == 1 {
            outcome.payloads = vec![Payload::new(said.into_text())];
            String::new()
        } else {
            if self.details || self.observer.is_some() {
                let messages = said.pieces().map(|(_, text)| Payload::new(text));
                outcome.payloads = messages.collect();
            }
            said.into_text()
        };
        outcome.meta.attempts = u32::try_from(log.len()).unwrap_or(u32::MAX);
        outcome.meta.attempt_log = log;
        if let Some(observer) = &self.observer
            && registration.is_some()
        {
            observed(observer.ended(&outcome), &self.abort).await;
        }
        if self.agents {
            // What is only one message is not in the rest.
            let text = match outcome.payloads.as_mut_slice() {
                [only] if self.details => only.text.clone(),
                [only] => mem::take(&mut only.text),
                _ => rest,
            };
            let said = Said { text, last_message };
            self.reports.push(Report::Said(said));
            if !self.details {
                // They are in `done`.
                outcome.payloads.clear();
            }
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
        self.ended = true;
        self.send_reports().await;
    }

    pub(super) fn take_account(&mut self) -> Account {
        mem::replace(
            &mut self.account,
            Account::new(self.run_id.clone(), SideEffects::default(), false),
        )
    }
}

fn aborted() -> AgentError {
    AgentError::new(
        ErrorCode::Aborted,
        ErrorKind::Aborted,
        "the run was aborted",
    )
}
