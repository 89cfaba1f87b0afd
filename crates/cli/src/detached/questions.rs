//! Requests of an attached run, asked at the terminal.

use std::collections::VecDeque;
use std::io::{self, IsTerminal};
use std::path::Path;

use nix::unistd::{getpgrp, tcgetpgrp};
use teamster::orchestrator::RunLogEntry;
use teamster::{AgentEvent, Decision, PermissionRequest};
use teamster_runner::{LogLine, RunsError};

use super::{Entries, RunHandle};
use crate::chat::permission::at_terminal;

/// The entries of a log, some of which were read before they are shown.
pub(super) struct Reader {
    run: RunHandle,
    entries: Entries,
    ahead: VecDeque<LogLine>,
}

impl Reader {
    pub(super) fn new(run: RunHandle, entries: Entries) -> Self {
        Self {
            run,
            entries,
            ahead: VecDeque::new(),
        }
    }

    pub(super) fn run(&self) -> &RunHandle {
        &self.run
    }

    /// The next entry; `None` after the last. Cancel-safe.
    pub(super) async fn next(&mut self) -> Result<Option<LogLine>, RunsError> {
        match self.ahead.pop_front() {
            Some(line) => Ok(Some(line)),
            None => self.entries.next().await,
        }
    }

    /// Reads ahead until the request needs no answer any more.
    async fn settled(&mut self, id: &str) {
        loop {
            // An error comes once more when the entries are shown.
            let Ok(Some(line)) = self.entries.next().await else {
                return;
            };
            let decides = decided(&line).is_some_and(|decided| decided == id);
            let ends = line.is_end();
            self.ahead.push_back(line);
            if decides || ends {
                return;
            }
            // A request can be withdrawn without an event of its own.
            let waits = |waiting: &[_]| !find(waiting, id);
            if (self.run.requests().await).is_ok_and(|waiting| waits(&waiting)) {
                return;
            }
        }
    }
}

fn find(waiting: &[teamster_runner::protocol::PendingRequest], id: &str) -> bool {
    waiting.iter().any(|request| request.request_id == id)
}

/// The request that this entry decides.
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

/// The requests that were seen in the log and are to be asked here.
#[derive(Default)]
pub(super) struct Questions {
    open: VecDeque<String>,
}

impl Questions {
    /// Whether there is a user to ask.
    pub(super) fn can_ask() -> bool {
        let stdin = io::stdin();
        // In the background, reading would stop this process.
        stdin.is_terminal() && tcgetpgrp(&stdin).is_ok_and(|front| front == getpgrp())
    }

    /// Takes note of an entry that was shown.
    pub(super) fn see(&mut self, entry: &AgentEvent) {
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

    /// Whether there is something to ask.
    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Asks for an answer to the oldest request, if it still waits for one. Without an answer here, it continues
    /// waiting for one from elsewhere.
    pub(super) async fn ask(
        &mut self,
        reader: &mut Reader,
        directory: Option<&Path>,
    ) -> anyhow::Result<()> {
        let Some(id) = self.open.pop_front() else {
            return Ok(());
        };
        let waiting = reader.run().requests().await?;
        let Some(pending) = waiting.into_iter().find(|it| it.request_id == id) else {
            return Ok(());
        };
        let takes_reason = pending.takes_reason;
        let request = PermissionRequest::from(pending);
        let answer = at_terminal(&request, takes_reason, directory, reader.settled(&id)).await;
        let Some(answer) = answer else {
            return Ok(());
        };
        match reader.run().answer(&id, answer.into()).await {
            // Another client was faster, or the run has ended.
            Err(error @ RunsError::Refused { .. }) => crate::warn(&[error.to_string()]),
            Err(RunsError::Ended { .. }) => {}
            answered => answered?,
        }
        Ok(())
    }
}
