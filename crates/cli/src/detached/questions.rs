//! Prompts at the terminal for requests of an attached run.

use std::collections::VecDeque;
use std::io::{self, IsTerminal};

use nix::unistd::{getpgrp, tcgetpgrp};
use teamster::{AgentEvent, Decision, PermissionAnswer, PermissionRequest};
use teamster_api::{LogLine, ProblemCode, RunLogEntry, ServiceError};

use super::run::{Entries, Run, was_refused};
use crate::dialog::permission::ask_at_terminal;

/// A log reader with lookahead.
pub(crate) struct Reader {
    run: Run,
    entries: Entries,
    /// The next entries, or the error after them.
    ahead: VecDeque<Result<LogLine, ServiceError>>,
}

impl Reader {
    /// Follows the log after the entry with this number.
    pub(crate) fn new(run: Run, after: u64) -> Self {
        Self {
            entries: run.follow(after),
            run,
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

    /// Waits for a call, and reads ahead meanwhile, for which the session may wait.
    pub(crate) async fn meanwhile<T>(&mut self, call: impl Future<Output = T>) -> T {
        let mut call = std::pin::pin!(call);
        let mut is_open = true;
        loop {
            tokio::select! {
                biased;
                done = &mut call => return done,
                next = self.entries.next(), if is_open => match next.transpose() {
                    Some(next) => {
                        is_open = next.is_ok();
                        self.ahead.push_back(next);
                    }
                    None => is_open = false,
                },
            }
        }
    }

    /// Reads ahead until the request is decided or withdrawn, or its turn or the log ends.
    async fn settled(&mut self, id: &str) {
        loop {
            let Some(next) = self.entries.next().await.transpose() else {
                return;
            };
            let settles = next.as_ref().is_ok_and(|line| settles(line, id));
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

/// Returns `true` if the entry decides the request or ends its turn.
fn settles(line: &LogLine, id: &str) -> bool {
    let Ok(RunLogEntry::Agent(entry)) = line.entry() else {
        return false;
    };
    match entry.event {
        AgentEvent::Permission(permission) => {
            permission.decision != Decision::Requested
                && permission.request_id.as_deref() == Some(id)
        }
        AgentEvent::Done(_) => true,
        _ => false,
    }
}

/// Undecided requests from the log, to be answered at the terminal.
#[derive(Default)]
pub(crate) struct Questions {
    open: VecDeque<String>,
    /// No other client can answer: without an answer, a request is denied.
    is_only_client: bool,
    /// The number of requests that were denied here in the turn in progress.
    denied: usize,
}

impl Questions {
    /// Creates the requests of a session without other clients.
    pub(crate) fn of_only_client() -> Self {
        Self {
            is_only_client: true,
            ..Self::default()
        }
    }

    /// Returns `true` if a user at the terminal can answer.
    pub(crate) fn can_ask() -> bool {
        let stdin = io::stdin();
        // Reading stdin in a background process group would stop this process.
        stdin.is_terminal() && tcgetpgrp(&stdin).is_ok_and(|front| front == getpgrp())
    }

    /// Records requests and decisions in an entry. Returns the number of requests that were denied here in its turn.
    pub(super) fn record(&mut self, entry: &RunLogEntry) -> usize {
        let denied = self.denied;
        let RunLogEntry::Agent(entry) = entry else {
            return denied;
        };
        match &entry.event {
            AgentEvent::Permission(permission) => {
                if let Some(id) = &permission.request_id {
                    match permission.decision {
                        Decision::Requested => self.open.push_back(id.clone()),
                        _ => self.open.retain(|open| open != id),
                    }
                }
            }
            AgentEvent::Done(_) => self.denied = 0,
            _ => {}
        }
        denied
    }

    /// Returns `true` if no request is open.
    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Prompts for an answer to the oldest request, if it is still pending. Without an answer, the request stays
    /// pending for other clients.
    pub(crate) async fn ask(&mut self, reader: &mut Reader) -> anyhow::Result<()> {
        let Some(id) = self.open.pop_front() else {
            return Ok(());
        };
        let waiting = reader.run().handle.requests().await?;
        let Some(pending) = waiting.into_iter().find(|it| it.request_id == id) else {
            return Ok(());
        };
        let takes_reason = pending.takes_reason;
        let request = PermissionRequest::from(pending);
        let directory = reader.run().info.directory.clone();
        let settled = reader.settled(&id);
        let answer = ask_at_terminal(&request, takes_reason, directory.as_deref(), settled).await;
        let answer = match answer {
            Some(answer) => answer,
            None if self.is_only_client => PermissionAnswer::Deny(None),
            None => return Ok(()),
        };
        let denies = matches!(answer, PermissionAnswer::Deny(_));
        match reader.run().handle.answer(&id, answer.into()).await {
            Ok(()) => self.denied += usize::from(denies),
            // It is withdrawn.
            Err(_) if self.is_only_client => {}
            // Another client answered first, or the run has ended.
            Err(error) if error.code == Some(ProblemCode::RunEnded) => {}
            Err(error) if was_refused(&error) => crate::report::warn(&[error.to_string()]),
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }
}
