//! Prompts at the terminal for requests of an attached run.

use std::collections::VecDeque;
use std::io::{self, IsTerminal};

use nix::unistd::{getpgrp, tcgetpgrp};
use teamster::{AgentEvent, Decision, PermissionAnswer, PermissionRequest};
use teamster_api::{LogLine, ProblemCode, RunLogEntry, ServiceError};
use tokio::time::{Duration, sleep};

use super::run::{Entries, Run, was_refused};
use crate::dialog::permission::ask_at_terminal;

/// Bytes of entries that are read ahead of a question. Beyond them, the session waits for its reader.
const MOST_AHEAD: usize = 8 << 20;
/// The interval of checks whether a question is still open while nothing is read.
const REQUEST_POLL: Duration = Duration::from_millis(200);

/// A log reader with lookahead.
pub(crate) struct Reader {
    run: Run,
    entries: Entries,
    /// The next entries, or the error after them.
    ahead: VecDeque<Result<LogLine, ServiceError>>,
    /// The approximate size of these entries, in bytes.
    ahead_bytes: usize,
}

impl Reader {
    /// Follows the log after the entry with this number.
    pub(crate) fn new(run: Run, after: u64) -> Self {
        Self {
            entries: run.follow(after),
            run,
            ahead: VecDeque::new(),
            ahead_bytes: 0,
        }
    }

    pub(crate) fn run(&self) -> &Run {
        &self.run
    }

    /// Returns the next entry; `None` after the last. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Result<Option<LogLine>, ServiceError> {
        match self.ahead.pop_front() {
            Some(line) => {
                self.ahead_bytes -= bytes_of(&line);
                line.map(Some)
            }
            None => self.entries.next().await,
        }
    }

    fn read_ahead(&mut self, next: Result<LogLine, ServiceError>) {
        self.ahead_bytes += bytes_of(&next);
        self.ahead.push_back(next);
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
                        self.read_ahead(next);
                    }
                    None => is_open = false,
                },
            }
        }
    }

    /// Reads ahead until the request is decided or withdrawn, or its turn or the log ends.
    async fn settled(&mut self, id: &str) {
        loop {
            if self.ahead_bytes >= MOST_AHEAD {
                sleep(REQUEST_POLL).await;
            } else {
                let Some(next) = self.entries.next().await.transpose() else {
                    return;
                };
                let settles = next.as_ref().is_ok_and(|line| settles(line, id));
                let is_last = next.is_err();
                self.read_ahead(next);
                if settles || is_last {
                    return;
                }
            }
            // A withdrawn request may have no event.
            let waits = |waiting: &[_]| !find(waiting, id);
            if (self.run.handle.requests().await).is_ok_and(|waiting| waits(&waiting)) {
                return;
            }
        }
    }
}

fn bytes_of(line: &Result<LogLine, ServiceError>) -> usize {
    line.as_ref().map_or(0, LogLine::approximate_bytes)
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

    /// Returns `true` if the entry is the event of a request.
    pub(super) fn is_request(entry: &RunLogEntry) -> bool {
        let RunLogEntry::Agent(entry) = entry else {
            return false;
        };
        matches!(&entry.event, AgentEvent::Permission(it) if it.decision == Decision::Requested)
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;
    use teamster::orchestrator::{Budget, Orchestrator, OrchestratorConfig};
    use teamster::{PermissionPolicy, SessionOptions, ToolKind};
    use teamster_api::{RunInfo, RunKind};
    use teamster_host::AttachedRun;
    use teamster_runner::{RequestChannel, SessionCandidate, SessionPlan, SessionRuns};
    use teamster_testkit::mock_runtime::{MockSessions, Script};
    use tokio::time::timeout;

    use super::super::owner::Owner;
    use super::*;

    #[tokio::test]
    async fn an_open_question_does_not_collect_what_the_agent_prints() {
        let long = "x".repeat(1 << 20);
        let script = (0..40).fold(Script::new(), |script, _| script.text(&*long));
        let mock = MockSessions::new("claude").turn(script);
        let candidate =
            SessionCandidate::open(&mock, SessionOptions::default(), Budget::default()).unwrap();
        let channel = RequestChannel::new("s");
        let PermissionPolicy::Ask(ask) = channel.requests().policy("claude", None) else {
            panic!("requests are asked");
        };
        let mut info = RunInfo::new("s", "claude");
        info.kind = RunKind::Session;
        let orchestrator = Orchestrator::new(OrchestratorConfig::default()).unwrap();
        let plan = SessionPlan::new(SessionRuns::new("s", candidate));
        let (session, work) = AttachedRun::new(info, orchestrator, plan, channel);
        let work = tokio::spawn(work);
        let run = Owner::new(Arc::new(session), None).run();
        let mut reader = Reader::new(run.clone(), 0);
        let request = PermissionRequest::new(1, "Bash", ToolKind::Execute, json!({}));
        let asked = tokio::spawn(ask(request));
        while run.handle.requests().await.unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
        run.handle.say("a").await.unwrap();
        let moment = Duration::from_millis(100);
        while reader.ahead_bytes < MOST_AHEAD {
            let early = timeout(moment, reader.settled("s/1")).await;
            assert!(early.is_err(), "the turn was read to its end");
        }
        let full = reader.ahead_bytes;
        let settled = timeout(moment, reader.settled("s/1")).await;
        assert_eq!((settled.is_err(), reader.ahead_bytes), (true, full));
        asked.abort();
        reader.settled("s/1").await;
        let mut texts = 0;
        loop {
            let line = reader.next().await.unwrap().unwrap();
            match &*line.type_name() {
                "text" => texts += 1,
                "done" => break,
                _ => {}
            }
        }
        assert_eq!((texts, reader.ahead_bytes), (40, 0));
        run.handle
            .cancel(teamster_core::Stopping::Graceful)
            .await
            .unwrap();
        while reader.next().await.unwrap().is_some() {}
        work.await.unwrap();
    }
}
