//! Prompts at the terminal for requests of an attached run.

use std::collections::VecDeque;
use std::io::{self, IsTerminal};
use std::path::Path;

use nix::unistd::{getpgrp, tcgetpgrp};
use teamster::{AgentEvent, Decision, PermissionRequest};
use teamster_api::{LogLine, ProblemCode, RunLogEntry, ServiceError};

use super::{Entries, Run, was_refused};
use crate::dialog::permission::ask_at_terminal;

/// A log reader with lookahead.
pub(crate) struct Reader {
    run: Run,
    entries: Entries,
    /// The next entries, or the error after them.
    ahead: VecDeque<Result<LogLine, ServiceError>>,
}

impl Reader {
    pub(crate) fn new(run: Run, entries: Entries) -> Self {
        Self {
            run,
            entries,
            ahead: VecDeque::new(),
        }
    }

    pub(crate) fn run(&self) -> &Run {
        &self.run
    }

    /// Returns the next entry; `None` after the last. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Result<Option<LogLine>, ServiceError> {
        match self.ahead.pop_front() {
            Some(line) => line.map(Some),
            None => self.entries.next().await,
        }
    }

    /// Reads ahead until the request is decided or withdrawn, or the log ends.
    async fn settled(&mut self, id: &str) {
        loop {
            let Some(next) = self.entries.next().await.transpose() else {
                return;
            };
            let settles = next.as_ref().is_ok_and(|line| {
                line.is_end() || decided(line).is_some_and(|decided| decided == id)
            });
            let is_last = next.is_err();
            self.ahead.push_back(next);
            if settles || is_last {
                return;
            }
            // A withdrawn request may have no event.
            let waits = |waiting: &[_]| !find(waiting, id);
            if (self.run.handle.requests().await).is_ok_and(|waiting| waits(&waiting)) {
                return;
            }
        }
    }
}

fn find(waiting: &[teamster_api::PendingRequest], id: &str) -> bool {
    waiting.iter().any(|request| request.request_id == id)
}

/// Returns the id of the request that the entry decides.
fn decided(line: &LogLine) -> Option<String> {
    let Ok(RunLogEntry::Agent(entry)) = line.entry() else {
        return None;
    };
    match entry.event {
        AgentEvent::Permission(permission) if permission.decision != Decision::Requested => {
            permission.request_id
        }
        _ => None,
    }
}

/// Undecided requests from the log, to be answered at the terminal.
#[derive(Default)]
pub(crate) struct Questions {
    open: VecDeque<String>,
}

impl Questions {
    /// Returns `true` if a user at the terminal can answer.
    pub(crate) fn can_ask() -> bool {
        let stdin = io::stdin();
        // Reading stdin in a background process group would stop this process.
        stdin.is_terminal() && tcgetpgrp(&stdin).is_ok_and(|front| front == getpgrp())
    }

    /// Records requests and decisions in a shown entry.
    pub(crate) fn record(&mut self, entry: &AgentEvent) {
        let AgentEvent::Permission(permission) = entry else {
            return;
        };
        let Some(id) = &permission.request_id else {
            return;
        };
        match permission.decision {
            Decision::Requested => self.open.push_back(id.clone()),
            _ => self.open.retain(|open| open != id),
        }
    }

    /// Returns `true` if no request is open.
    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Prompts for an answer to the oldest request, if it is still pending. Without an answer, the request stays
    /// pending for other clients.
    pub(crate) async fn ask(
        &mut self,
        reader: &mut Reader,
        directory: Option<&Path>,
    ) -> anyhow::Result<()> {
        let Some(id) = self.open.pop_front() else {
            return Ok(());
        };
        let waiting = reader.run().handle.requests().await?;
        let Some(pending) = waiting.into_iter().find(|it| it.request_id == id) else {
            return Ok(());
        };
        let takes_reason = pending.takes_reason;
        let request = PermissionRequest::from(pending);
        let answer = ask_at_terminal(&request, takes_reason, directory, reader.settled(&id)).await;
        let Some(answer) = answer else {
            return Ok(());
        };
        match reader.run().handle.answer(&id, answer.into()).await {
            // Another client answered first, or the run has ended.
            Err(error) if error.code == Some(ProblemCode::RunEnded) => {}
            Err(error) if was_refused(&error) => crate::report::warn(&[error.to_string()]),
            answered => answered?,
        }
        Ok(())
    }
}
