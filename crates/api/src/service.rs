//! Runs and sessions as a service.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_core::stream::BoxStream;
use serde::{Deserialize, Serialize};
use teamster_core::{AgentError, ErrorCode, ErrorKind};

use crate::history::{ForgetRuns, Forgotten};
use crate::{
    AppliedChanges, Change, Command, DiffQuery, DiscardedChanges, FileList, FileManifest, KeptSpec,
    LogLine, Problem, ProblemCode, RefusalCode, Reply, RunInfo, RunList, RunQuery, RunView, Spec,
    WorkspaceDiff,
};

/// Runs and sessions of one place: of this machine, of another one over HTTP, or in memory for tests.
///
/// Implementations behave the same; `teamster_testkit::run_service` has the tests for that. Ids are whole ids, except
/// for [`resolve`](Self::resolve).
#[async_trait::async_trait]
pub trait RunService: Send + Sync {
    /// Starts a run or a session with this id, which the caller makes. Resolves once it is accepted: from then on it
    /// is found by its id.
    ///
    /// Repeating a call is safe. If the id exists with the same spec, nothing is started, and the answer reports that, with
    /// the warnings of the start.
    ///
    /// # Errors
    ///
    /// [`ProblemCode::RunExists`] if the id exists with another spec, [`ProblemCode::SessionInUse`] if another process
    /// works with the session to resume. Any error means that nothing was started, except one without a code (the
    /// answer was lost) and [`ProblemCode::Internal`]: then the run may be there, and the call can be repeated.
    async fn start(&self, id: &str, spec: Spec) -> Result<Accepted, ServiceError>;

    /// Returns the answer to the start of a run that exists, as a repetition of [`start`](Self::start) does, but starts
    /// nothing if the run was deleted meanwhile. Default: that of a start, for a service that has no other look-up.
    ///
    /// # Errors
    ///
    /// [`ProblemCode::RunNotFound`], or [`ProblemCode::RunExists`] if the id exists with another spec.
    async fn started(&self, id: &str, spec: Spec) -> Result<Accepted, ServiceError> {
        self.start(id, spec).await
    }

    /// Checks whether this spec could be started, without starting anything: whether the agent is installed and logged
    /// in, as far as the service can know. A start can fail all the same. Default: nothing is known.
    ///
    /// # Errors
    ///
    /// Fails with the reason, as [`start`](Self::start) does.
    async fn check(&self, spec: &Spec) -> Result<(), ServiceError> {
        let _ = spec;
        Ok(())
    }

    /// Returns the description of the run with exactly this id, or of the only run whose id begins with this prefix, as it was
    /// written at the start. It never changes, so no runner is asked.
    ///
    /// # Errors
    ///
    /// [`ProblemCode::RunNotFound`] or [`ProblemCode::RunIdAmbiguous`].
    async fn resolve(&self, prefix: &str) -> Result<RunInfo, ServiceError>;

    /// Returns a run's state, with its live status while it has not ended, then with its result.
    ///
    /// # Errors
    ///
    /// [`ProblemCode::RunNotFound`].
    async fn show(&self, id: &str) -> Result<RunView, ServiceError>;

    /// Returns a run's state, with neither its live status nor its result: the one needs an answer of the runner, and the
    /// other may be long.
    ///
    /// # Errors
    ///
    /// [`ProblemCode::RunNotFound`].
    async fn outline(&self, id: &str) -> Result<RunView, ServiceError> {
        let mut view = self.show(id).await?;
        view.result = None;
        if view.summary.live.is_some() {
            Arc::make_mut(&mut view.summary).live = None;
        }
        Ok(view)
    }

    /// Returns a page of runs, newest first.
    async fn list(&self, query: RunQuery) -> Result<RunList, ServiceError>;

    /// Follows the log of a run: the entries after the one with the number `after` (0: from the beginning), then new
    /// ones as they are written. The stream ends after the last entry, `done`, and only then.
    ///
    /// The numbers have no gaps, but for an entry `reset` in place of what was pruned. A connection that breaks is
    /// made again; an error is final, and [`retryable`](ServiceError::retryable) tells whether another call can help.
    fn follow(&self, id: &str, after: u64) -> BoxStream<'static, Result<LogLine, ServiceError>>;

    /// Returns the current state of all runs, then changes. The stream ends with an error only.
    fn changes(&self) -> BoxStream<'static, Result<Change, ServiceError>>;

    /// Sends a command to a live run or session.
    ///
    /// # Errors
    ///
    /// [`ProblemCode::RunNotFound`], [`ProblemCode::RunEnded`], or the reason of a refusal.
    async fn send(&self, id: &str, command: Command) -> Result<Reply, ServiceError>;

    /// Gives a run another title, whether it has ended or not; with `None`, the one that it had at its start. A session that
    /// had none gets the first line of its next prompt then.
    ///
    /// # Errors
    ///
    /// [`ProblemCode::RunNotFound`], or [`ProblemCode::InvalidParams`] if [`check_title`](crate::check_title) refuses it.
    async fn rename(&self, id: &str, title: Option<String>) -> Result<(), ServiceError> {
        let _ = (id, title);
        unsupported("titles that are given later")
    }

    /// Returns the spec that is kept of a run, without what was withheld.
    ///
    /// # Errors
    ///
    /// [`ProblemCode::RunNotFound`], or [`ProblemCode::Unsupported`] if none is kept, as of a tick.
    async fn spec(&self, id: &str) -> Result<KeptSpec, ServiceError> {
        let _ = id;
        unsupported("specs of runs")
    }

    /// Deletes ended runs and logs.
    ///
    /// # Errors
    ///
    /// If one of the named runs is unknown, ambiguous or live, none of the named ones is deleted:
    /// [`ProblemCode::RunNotFound`], [`ProblemCode::RunIdAmbiguous`] or [`ProblemCode::RunLive`].
    async fn forget(&self, request: ForgetRuns) -> Result<Forgotten, ServiceError>;

    /// Returns the changes of a run's workspace: so far while it is live, then those that it has left.
    ///
    /// # Errors
    ///
    /// [`ProblemCode::RunNotFound`], or [`ProblemCode::NoWorkspace`] if the run has no workspace of its own.
    async fn diff(&self, id: &str, query: DiffQuery) -> Result<WorkspaceDiff, ServiceError> {
        let _ = (id, query);
        unsupported("changes of a workspace")
    }

    /// Returns the files of an ended run that can be read: [`BUNDLE`](crate::BUNDLE), [`PATCH`](crate::PATCH) and the
    /// collected ones.
    ///
    /// # Errors
    ///
    /// [`ProblemCode::RunNotFound`], or [`ProblemCode::RunLive`] if it has not ended.
    async fn files(&self, id: &str) -> Result<FileList, ServiceError> {
        let _ = id;
        unsupported("files of runs")
    }

    /// Returns the manifest of a run's file. It does not change.
    ///
    /// # Errors
    ///
    /// [`ProblemCode::RunNotFound`], [`ProblemCode::FileNotFound`] or [`ProblemCode::RunLive`].
    async fn manifest(&self, id: &str, name: &str) -> Result<FileManifest, ServiceError> {
        let _ = (id, name);
        unsupported("files of runs")
    }

    /// Returns a part of a run's file, from 0. The caller checks it by [`FileManifest::check_part`].
    ///
    /// # Errors
    ///
    /// As [`manifest`](Self::manifest); [`ProblemCode::FileNotFound`] without such a part.
    async fn read_part(&self, id: &str, name: &str, number: u32) -> Result<Vec<u8>, ServiceError> {
        let _ = (id, name, number);
        unsupported("files of runs")
    }

    /// Applies the changes that an ended run has left, committed or not, to the files of the repository that its worktree was
    /// made from, on the service's machine: all of them, or nothing. The index and the branches stay as they are.
    ///
    /// # Errors
    ///
    /// [`ProblemCode::ChangesConflict`] if they do not fit the files, [`ProblemCode::RunLive`] before the end of the run,
    /// [`ProblemCode::NoWorkspace`] if nothing is left of it, [`ProblemCode::Unsupported`] if the service's machine has no
    /// files of that repository, as after an upload.
    async fn apply(&self, id: &str) -> Result<AppliedChanges, ServiceError> {
        let _ = id;
        unsupported("working trees")
    }

    /// Discards the changes that an ended run has left: its worktree, its branch and its commits. What is reported of the
    /// run, and its collected files, stay.
    ///
    /// # Errors
    ///
    /// [`ProblemCode::ChangesConflict`] if the worktree was changed since the end of the run, or belongs to others too;
    /// [`ProblemCode::RunLive`] before the end of the run, [`ProblemCode::NoWorkspace`] if nothing is left of it. Nothing
    /// was discarded then.
    async fn discard(&self, id: &str) -> Result<DiscardedChanges, ServiceError> {
        let _ = id;
        unsupported("working trees")
    }

    /// Returns which of these commits the service has, each with its whole history, in a repository that is known by its
    /// first commit: an upload need not bring them.
    async fn known_commits(
        &self,
        root: &str,
        offered: Vec<String>,
    ) -> Result<Vec<String>, ServiceError> {
        let _ = (root, offered);
        Ok(Vec::new())
    }

    /// Declares a file that the run with this id will take along, before the run is started. Returns the numbers of the
    /// parts that are missing, in ascending order; none once the file is complete. Repeating a call is safe; with another
    /// manifest, it replaces the file.
    ///
    /// A file whose run is not started is removed after a day.
    ///
    /// # Errors
    ///
    /// [`ProblemCode::InvalidParams`] if the manifest is none, [`ProblemCode::RunExists`] if the run was started,
    /// [`ProblemCode::OverQuota`] if the service keeps no more files, [`ProblemCode::Unsupported`] if it takes none.
    async fn offer(&self, id: &str, manifest: FileManifest) -> Result<Vec<u32>, ServiceError> {
        let _ = (id, manifest);
        unsupported("uploads")
    }

    /// Keeps a part of a file that was [offered](Self::offer), from 0. Repeating a call is safe.
    ///
    /// # Errors
    ///
    /// [`ProblemCode::FileNotFound`] if the file was not offered or has no such part, [`ProblemCode::FileDamaged`] if the
    /// content is not the one of the manifest, [`ProblemCode::Unsupported`] if the service takes no files.
    async fn write_part(
        &self,
        id: &str,
        name: &str,
        number: u32,
        content: Vec<u8>,
    ) -> Result<(), ServiceError> {
        let _ = (id, name, number, content);
        unsupported("uploads")
    }

    /// Removes the files that were [offered](Self::offer) for the run with this id, which will not be started. Repeating a
    /// call is safe.
    ///
    /// # Errors
    ///
    /// [`ProblemCode::RunExists`] if the run was started, [`ProblemCode::Unsupported`] if the service takes no files.
    async fn withdraw(&self, id: &str) -> Result<(), ServiceError> {
        let _ = id;
        unsupported("uploads")
    }
}

/// The refusal of what a service cannot do.
pub(crate) fn unsupported<T>(what: &'static str) -> Result<T, ServiceError> {
    let message = format!("this service has no {what}");
    Err(ServiceError::new(ProblemCode::Unsupported, message))
}

/// A run that was accepted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Accepted {
    /// An earlier call with the same id and spec has started it.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub existed: bool,
    /// Warnings, such as of options without effect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Those of the warnings that a user who wants no others sees too, such as that the history is incomplete.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub important: Vec<String>,
}

impl Accepted {
    /// Creates the answer for a run that this call has started.
    pub fn new(warnings: Vec<String>) -> Self {
        Self {
            warnings,
            ..Self::default()
        }
    }

    /// Creates the answer for a run that this call has started, with important warnings and others.
    pub fn with_important(important: Vec<String>, others: Vec<String>) -> Self {
        Self {
            existed: false,
            warnings: [important.clone(), others].concat(),
            important,
        }
    }

    /// Creates the answer for a run that an earlier call has started.
    pub fn existed() -> Self {
        Self::default().again()
    }

    /// Returns the answer to a repetition of the call: the run exists, and the warnings are the same.
    #[must_use]
    pub fn again(mut self) -> Self {
        self.existed = true;
        self
    }
}

/// An error of a service.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ServiceError {
    /// The reason, for programs. `None` if the service could not be reached, or what it answered could not be read.
    pub code: Option<ProblemCode>,
    /// The kind of an agent's error, if that is the reason.
    pub kind: Option<ErrorKind>,
    /// The field or parameter that was refused.
    pub parameter: Option<String>,
    /// The agent's error with all its fields, if that is the reason and the service has it.
    pub agent_error: Option<Box<AgentError>>,
    /// The run that the error is about: that of the [`RunHandle`](crate::RunHandle), or the one that works with the
    /// session to resume.
    pub run_id: Option<String>,
    /// The process of a runner that does not answer, if it is one of this machine.
    pub runner: Option<RunnerProcess>,
    /// Why a command for agents in a loop was refused, if their supervisor is on this machine.
    pub refusal: Option<crate::agents::ErrorCode>,
    /// The reason, for people.
    pub message: String,
    /// The same call can succeed later.
    pub retryable: bool,
    /// The wait before another try that the service asks for.
    pub retry_after: Option<Duration>,
}

/// The process of a runner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunnerProcess {
    /// Process id.
    pub pid: u32,
    /// The process is stopped (`SIGSTOP`).
    pub is_stopped: bool,
}

impl RunnerProcess {
    /// Creates the description of a process that is not stopped.
    pub fn new(pid: u32) -> Self {
        Self {
            pid,
            is_stopped: false,
        }
    }
}

impl ServiceError {
    /// Creates an error with this code.
    pub fn new(code: ProblemCode, message: impl Into<String>) -> Self {
        Self {
            code: Some(code),
            retryable: code.is_retryable(),
            ..Self::unreachable(message)
        }
    }

    /// Creates the error of a service that could not be reached.
    pub fn unreachable(message: impl Into<String>) -> Self {
        Self {
            code: None,
            kind: None,
            parameter: None,
            agent_error: None,
            run_id: None,
            runner: None,
            refusal: None,
            message: message.into(),
            retryable: true,
            retry_after: None,
        }
    }

    /// Creates the error of a run that has ended.
    pub fn ended(run_id: &str) -> Self {
        Self::new(ProblemCode::RunEnded, format!("run {run_id} has ended")).about(run_id)
    }

    /// Sets the run that the error is about, if none is known.
    #[must_use]
    pub fn about(mut self, run_id: &str) -> Self {
        self.run_id.get_or_insert_with(|| run_id.to_owned());
        self
    }
}

/// The refusal of a command by a runner.
impl From<(RefusalCode, String)> for ServiceError {
    fn from((code, message): (RefusalCode, String)) -> Self {
        Self::new(code.into(), message)
    }
}

impl From<Problem> for ServiceError {
    fn from(problem: Problem) -> Self {
        Self::new(problem.code, problem.detail)
    }
}

/// The refusal of a spec, or the failure of a start.
impl From<AgentError> for ServiceError {
    fn from(error: AgentError) -> Self {
        let code = match (error.code, error.kind) {
            (ErrorCode::SessionInUse, _) => ProblemCode::SessionInUse,
            (_, ErrorKind::Internal) => ProblemCode::Internal,
            _ => ProblemCode::InvalidParams,
        };
        Self {
            kind: Some(error.kind),
            parameter: error.parameter().map(str::to_owned),
            agent_error: Some(Box::new(error.clone())),
            run_id: error.holder().map(str::to_owned),
            ..Self::new(code, error.message)
        }
    }
}

impl fmt::Display for ServiceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ServiceError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_has_the_code_of_its_reason() {
        for (error, code) in [
            (
                AgentError::refused("prompt", "it is empty"),
                ProblemCode::InvalidParams,
            ),
            (
                AgentError::session_in_use("session_id", "run 7 works with it"),
                ProblemCode::SessionInUse,
            ),
            (
                AgentError::new(ErrorCode::Io, ErrorKind::Internal, "no space"),
                ProblemCode::Internal,
            ),
        ] {
            assert_eq!(ServiceError::from(error).code, Some(code));
        }
        let held = AgentError::session_in_use("session_id", "run 7 works with it").held_by("7");
        assert_eq!(ServiceError::from(held).run_id.as_deref(), Some("7"));
    }
}
