//! The end of an attempt.

use std::mem;

use teamster_core::{AgentError, ErrorCode, ErrorKind, Id, RunResult, RunStatus};

use super::{Account, Current};

#[derive(Debug)]
pub(crate) struct Ended {
    /// The error of a failed attempt.
    pub(crate) error: Option<AgentError>,
    /// True if the attempt was stopped.
    pub(crate) aborted: bool,
}

impl Account {
    /// Records a change that was made in this attempt, or that may have been made without being reported.
    pub(super) fn remember_changes(
        &mut self,
        result: Option<&RunResult>,
        error: Option<&AgentError>,
    ) {
        let now = &mut self.now;
        let used = mem::take(&mut now.changes).into_first(&now.denied);
        let changed = now.changed.take().or_else(|| {
            used.map(|tool| format!("the agent had used `{tool}`, which can change things"))
        });
        if let Some(changed) = changed.or_else(|| now.unseen(result, error?)) {
            // A known change is more specific than a possible one.
            self.changed = Some(changed);
        }
    }
}

impl Current {
    /// Forgets the calls of an interrupted answer, if the CLI runs calls only after the answer.
    pub(super) fn forget_calls_not_run(&mut self, result: &RunResult, error: &AgentError) {
        if self.runs_calls_after_answer && answer_broke_off(error, result) {
            self.changes.truncate(self.ran);
        }
    }

    /// Returns whether this call may have run and can change things.
    pub(super) fn may_have_run(&self, id: &Id) -> bool {
        !self.denied.contains(id) && self.changes.has(id)
    }

    /// Returns the reason why something may have been changed without being reported.
    pub(super) fn unseen(&self, result: Option<&RunResult>, error: &AgentError) -> Option<String> {
        let provider = &self.provider;
        let Some(result) = result else {
            // Its remaining output was lost.
            return Some(format!(
                "the stream of {provider} broke off, so a tool may have been used without being reported"
            ));
        };
        let lost = &result.diagnostics;
        // Lines of an unknown type do not count, because every new version of a CLI has some: unless there is nothing else.
        let is_all_unknown =
            error.kind == ErrorKind::Protocol && lost.unknown > 0 && !self.answered;
        if is_all_unknown {
            return Some(format!(
                "{provider} printed only lines of unknown types, so a tool may have been in them"
            ));
        }
        if lost.malformed > 0 || lost.oversize > 0 {
            return Some(format!(
                "{provider} printed lines that were not understood, so a tool may have been in them"
            ));
        }
        let are_never_run = self.runs_calls_after_answer && answer_broke_off(error, result);
        if lost.unfinished_calls > 0 && !are_never_run {
            return Some(format!(
                "{provider} had begun to call a tool, which may have run"
            ));
        }
        if !broke_off(error, result) {
            return None;
        }
        if !self.announces_tools {
            return Some(format!(
                "{provider} reports a tool only after it has ended, so one may have been running"
            ));
        }
        (self.commands).then(|| "the prompt may have been a command that changes things".to_owned())
    }
}

/// Creates the error of an attempt whose stream violated the protocol.
pub(crate) fn broken_off(message: &str) -> AgentError {
    AgentError::new(ErrorCode::StreamEndedEarly, ErrorKind::Protocol, message)
}

/// Returns whether the agent's work was interrupted, rather than refused or ended by the CLI itself.
fn broke_off(error: &AgentError, result: &RunResult) -> bool {
    let never_began = matches!(
        error.code,
        ErrorCode::CliNotFound
            | ErrorCode::InvalidParams
            | ErrorCode::PromptTooLarge
            | ErrorCode::ConfigLease
            | ErrorCode::SessionInUse
    );
    let reported = error.code == ErrorCode::CliError && result.status == RunStatus::Failed;
    !never_began && !reported
}

/// Returns whether the CLI ended the run itself because its last request failed.
fn answer_broke_off(error: &AgentError, result: &RunResult) -> bool {
    let request_failed = matches!(
        error.kind,
        ErrorKind::Network
            | ErrorKind::Overloaded
            | ErrorKind::RateLimit
            | ErrorKind::Quota
            | ErrorKind::Protocol
    );
    request_failed && error.code == ErrorCode::CliError && result.status == RunStatus::Failed
}

/// Returns how an attempt ended according to its result.
pub(super) fn how(result: &RunResult) -> Ended {
    if result.status == RunStatus::Completed {
        return Ended {
            error: None,
            aborted: false,
        };
    }
    Ended {
        error: result.failure(),
        aborted: result.status == RunStatus::Aborted,
    }
}
