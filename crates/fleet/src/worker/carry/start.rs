//! The start of a run's agent, and its end where none is wanted.

use std::sync::atomic::Ordering;
use std::time::Duration;

use teamster_api::{Command, ProblemCode, ServiceError, ViewState};
use teamster_core::{AgentError, ErrorCode, ErrorKind, RunResult, RunStatus};
use teamster_host::state;
use tokio::time::{Instant, sleep};

use super::{Carry, Outside, RETRY};
use crate::protocol::{Folder, Outcome, Reason};
use crate::worker::folder::Folders;

/// Time in which the agent of a run that was given up must end until it is killed, and in which its runner must begin.
const GRACE: Duration = Duration::from_secs(15);
/// How often a start is tried whose runner has ended without an answer.
const STARTS: u32 = 5;

impl Carry {
    /// Starts the runner, unless it has begun.
    pub(super) async fn spawn(&self) -> Result<(), AgentError> {
        match self.look().await {
            None => return Ok(()),
            Some(folder) if folder.has_begun => {
                self.begun().await;
                return Ok(());
            }
            Some(_) => {}
        }
        let spec = loop {
            match self.permitted_here() {
                Ok(spec) => break spec,
                // Of this machine's disk: it may pass.
                Err(error) if error.code == Some(ProblemCode::Internal) => {
                    self.shared.unreadable(&self.key, &error).await;
                }
                Err(error) => return Err(agent_error(error)),
            }
        };
        if self.shared.interrupts.load(Ordering::Relaxed) {
            let message = "the worker ended before the agent was started: submit the run again";
            return Err(AgentError::new(
                ErrorCode::Aborted,
                ErrorKind::Aborted,
                message,
            ));
        }
        self.until_done(move |shared, key| {
            let runs = state::runs().map_err(std::io::Error::other)?;
            runs.keep(&key.local()).map_err(std::io::Error::other)?;
            shared.folders.spawns(key)
        })
        .await;
        let local = self.key.local();
        let mut attempt = 1;
        loop {
            let started = self.shared.runs.start(&local, spec.clone()).await;
            let Err(error) = started else { break };
            let error = Outside::of(&self.key).error(error);
            self.shared
                .notice(&self.key, format!("cannot be started: {error}"));
            // An earlier run of this id, whose record was deleted.
            if error.code == Some(ProblemCode::RunExists) {
                return Err(agent_error(error));
            }
            // The runner may have accepted the run, and its answer was lost.
            if self.shared.runs.outline(&local).await.is_ok() {
                break;
            }
            let may_pass = matches!(error.code, None | Some(ProblemCode::Internal));
            if !may_pass || attempt == STARTS {
                return Err(agent_error(error));
            }
            attempt += 1;
            sleep(RETRY).await;
        }
        self.begun().await;
        self.shared
            .notice(&self.key, format!("was started with {}", spec.provider()));
        Ok(())
    }

    /// Writes down that no agent is started, unless one was.
    pub(super) async fn refuse(&mut self, reason: Reason) -> Outcome {
        if self.look().await.is_none_or(|folder| folder.has_begun) {
            return Outcome::Done;
        }
        let error = match (reason, self.refused.take()) {
            (Reason::Failed, Some(error)) => error,
            (Reason::Failed, None) => AgentError::new(
                ErrorCode::Io,
                ErrorKind::Internal,
                "the run was not started",
            ),
            (Reason::Stopped, _) => {
                let message = "the run was cancelled before its agent was started";
                AgentError::new(ErrorCode::Aborted, ErrorKind::Aborted, message)
            }
        };
        self.until_done(move |shared, key| shared.folders.refuse(key, &error))
            .await
    }

    /// Returns the reason why no agent is started.
    pub(super) async fn refusal(&self, folder: Folder) -> Option<AgentError> {
        if folder.has_begun || !folder.is_refused {
            return None;
        }
        let refusal = self.shared.until_read(&self.key, Folders::refusal);
        refusal.await.unwrap_or_else(|error| {
            let message = format!("the run was not started; the reason cannot be read: {error}");
            Some(AgentError::new(ErrorCode::Io, ErrorKind::Internal, message))
        })
    }

    async fn begun(&self) {
        self.until_done(|shared, key| shared.folders.begun(key))
            .await;
    }

    /// Stops the agent, and waits for its end.
    pub(super) async fn stop(&self) {
        let runs = &self.shared.runs;
        let local = self.key.local();
        let may_begin = self.shared.folders.may_have_spawned(&self.key);
        let until = Instant::now() + GRACE;
        loop {
            let kill = Instant::now() > until;
            match runs.outline(&local).await {
                Ok(view) if view.summary.state == ViewState::Ended => return,
                // A runner that a killed worker has started has begun by then, or never will.
                Err(error)
                    if error.code == Some(ProblemCode::RunNotFound)
                        && (kill || matches!(may_begin, Ok(false))) =>
                {
                    return;
                }
                _ => {}
            }
            if let Err(error) = runs.send(&local, Command::Cancel { kill }).await
                && kill
            {
                self.shared
                    .notice(&self.key, format!("cannot be stopped: {error}"));
            }
            sleep(RETRY).await;
        }
    }
}

/// Returns the result of a run for which no agent was started.
pub(in crate::worker) fn refused_result(error: &AgentError) -> RunResult {
    let is_aborted = error.code == ErrorCode::Aborted;
    let status = if is_aborted {
        RunStatus::Aborted
    } else {
        RunStatus::Failed
    };
    let mut result = RunResult::default().status(status);
    result.aborted = is_aborted;
    result.errors.push(error.clone());
    result
}

/// Returns the error of a refused start as the result of a run has it.
fn agent_error(error: ServiceError) -> AgentError {
    match error.agent_error {
        Some(error) => *error,
        None => AgentError::new(ErrorCode::Io, ErrorKind::Internal, error.message),
    }
}
