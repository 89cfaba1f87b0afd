//! Exit codes of the program. They are stable.

use std::fmt;
use std::io::{self, Write};

use anyhow::Context;
use serde::Serialize;
use teamster::{AgentError, BudgetKind, ErrorCode, RunResult, RunStatus};
use teamster_api::{ProblemCode, ServiceError};

/// The run completed, or the command succeeded.
pub(crate) const SUCCESS: u8 = 0;
/// The agent, its CLI or the model service failed, or the output cannot be written.
pub(crate) const AGENT_ERROR: u8 = 1;
/// The command line is wrong, or requests what the provider does not support. Nothing was started.
pub(crate) const USAGE: u8 = 2;
/// For `agents status` only: an agent waits for a limit of its service, and nothing else is wrong.
pub(crate) const AGENTS_LIMITED: u8 = 4;
/// The agent's CLI is not installed or cannot be executed.
pub(crate) const CLI_NOT_FOUND: u8 = 3;
/// A time limit ended the run.
pub(crate) const TIMEOUT: u8 = 4;
/// The CLI's output ended early, or every call of a tool was denied.
pub(crate) const INCOMPLETE: u8 = 5;
/// The run was stopped by a signal, or because the reader of the output is gone.
pub(crate) const ABORTED: u8 = 130;

pub(crate) const HELP: &str = "\
Exit codes:
    0  the run completed
    1  the agent, its CLI or the model service failed, or the output cannot be written
    2  the command line is invalid, or the provider does not support it
    3  the agent's CLI is not installed or cannot be executed
    4  a time limit ended the run
    5  the agent's output ended early, or the run did nothing because its tools were denied
  130  the run was stopped, by a signal or because the reader of the output is gone";

/// The codes in `teamster chat --help`.
pub(crate) const CHAT_HELP: &str = "\
Exit codes, by how the last message was answered:
    0  the agent answered, or there was no message
    1  the agent, its CLI or the model service failed, or the output cannot be written
    2  the command line is invalid, or the provider does not support it
    3  the agent's CLI is not installed or cannot be executed
    4  a time limit ended it
    5  the agent's output ended early, or it did nothing because its tools were denied
  130  it was interrupted; or a signal ended the chat, or the reader of the output is gone";

pub(crate) const ATTACH_HELP: &str = "\
Exit codes: those of the run, as `teamster run --help` lists them; 130 also after Ctrl-C, which ends the
view and not the run.";

/// An error with an exit code of its own.
#[derive(Debug)]
struct Coded {
    code: u8,
    error: anyhow::Error,
}

impl fmt::Display for Coded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl std::error::Error for Coded {}

/// Gives an error this exit code. Without one, it is that of a failure.
pub(crate) fn with(code: u8, error: impl Into<anyhow::Error>) -> anyhow::Error {
    let error = error.into();
    Coded { code, error }.into()
}

/// Gives an error the exit code of a usage error.
pub(crate) fn misuse(error: impl Into<anyhow::Error>) -> anyhow::Error {
    with(USAGE, error)
}

/// Returns the usage error of a refused description, with options in place of parameters.
pub(crate) fn refused(error: impl Into<anyhow::Error>) -> anyhow::Error {
    misuse(crate::hints::usage(error))
}

/// Prints the error of a command, and returns its exit code.
pub(crate) fn of_error(error: anyhow::Error) -> u8 {
    let (code, error) = match error.downcast() {
        Ok(Coded { code, error }) => (code, error),
        Err(error) => (AGENT_ERROR, error),
    };
    crate::report::fail(&error);
    code
}

/// Prints lines, and returns the exit code.
pub(crate) fn of_lines(lines: impl IntoIterator<Item = String>) -> anyhow::Result<u8> {
    let mut out = io::stdout().lock();
    of_printed((lines.into_iter()).try_for_each(|line| writeln!(out, "{line}")))
}

/// Prints a value as one JSON object for people and programs, and returns the exit code.
pub(crate) fn of_json(value: &impl Serialize) -> anyhow::Result<u8> {
    let json = serde_json::to_string_pretty(value).context("cannot write the output")?;
    of_printed(writeln!(io::stdout(), "{json}"))
}

/// Prints values as JSON, one a line, and returns the exit code.
pub(crate) fn of_json_lines(
    values: impl IntoIterator<Item = impl Serialize>,
) -> anyhow::Result<u8> {
    let lines = values
        .into_iter()
        .map(|value| serde_json::to_string(&value));
    of_lines(lines.collect::<Result<Vec<_>, _>>()?)
}

/// Returns the exit code of a command that printed its output. A lost reader ends the command; other failures, such
/// as a full disk, are errors.
pub(crate) fn of_printed(printed: io::Result<()>) -> anyhow::Result<u8> {
    match printed {
        Ok(()) => Ok(SUCCESS),
        Err(error) if reader_left(&error) => Ok(ABORTED),
        Err(error) => Err(error).context("cannot write the output"),
    }
}

/// Returns the exit code of a command that has printed its findings, which may be the code of a problem.
pub(crate) fn of_findings(printed: anyhow::Result<u8>, problem: Option<u8>) -> anyhow::Result<u8> {
    Ok(match printed? {
        SUCCESS => problem.unwrap_or(SUCCESS),
        code => code,
    })
}

/// Returns the error of a service, as a usage error if it refuses a description.
pub(crate) fn of_service(error: ServiceError) -> anyhow::Error {
    match error.code {
        Some(ProblemCode::InvalidParams) => refused(error),
        _ => error.into(),
    }
}

/// Returns `true` if the error means that the reader of stdout (a pipe, socket or terminal) is gone.
fn reader_left(error: &io::Error) -> bool {
    match error.kind() {
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => true,
        // EIO comes from a terminal that hung up, but also from a failing disk.
        _ => {
            error.raw_os_error() == Some(nix::libc::EIO)
                && nix::sys::stat::fstat(io::stdout())
                    .is_ok_and(|stdout| stdout.st_mode & nix::libc::S_IFMT == nix::libc::S_IFCHR)
        }
    }
}

/// Returns the exit code of a run whose output failed. Reports the error unless the reader is gone.
pub(crate) fn of_lost(error: io::Error) -> u8 {
    of_printed(Err(error)).unwrap_or_else(|error| {
        crate::report::fail(&error);
        AGENT_ERROR
    })
}

pub(crate) fn of(result: &RunResult) -> u8 {
    match result.status {
        RunStatus::Completed => SUCCESS,
        RunStatus::Aborted => ABORTED,
        RunStatus::TimedOut => TIMEOUT,
        RunStatus::Incomplete => INCOMPLETE,
        _ => {
            let has = |code| result.errors.iter().any(|error| error.code == code);
            if has(ErrorCode::CliNotFound) {
                CLI_NOT_FOUND
            } else if result.errors.iter().any(out_of_time) {
                TIMEOUT
            } else if has(ErrorCode::InvalidParams)
                || has(ErrorCode::PromptTooLarge)
                || has(ErrorCode::SessionInUse)
            {
                USAGE
            } else {
                AGENT_ERROR
            }
        }
    }
}

pub(crate) fn of_runner(ended: &Result<RunResult, AgentError>) -> u8 {
    // The starting process has got the reason of a refusal.
    ended.as_ref().map_or(USAGE, of)
}

/// Returns `true` if the run's time budget is spent.
fn out_of_time(error: &AgentError) -> bool {
    error.budget() == Some(BudgetKind::Time)
}

#[cfg(test)]
mod tests {
    use super::*;
    use teamster::{ErrorDetail, ErrorKind};

    fn failed(code: ErrorCode) -> RunResult {
        RunResult::default().errors(vec![AgentError::new(code, ErrorKind::Internal, "x")])
    }

    #[test]
    fn every_end_has_its_code() {
        let with = |status| RunResult::default().status(status);
        assert_eq!(of(&with(RunStatus::Completed)), 0);
        assert_eq!(of(&with(RunStatus::Failed)), 1);
        assert_eq!(of(&failed(ErrorCode::CliError)), 1);
        assert_eq!(of(&failed(ErrorCode::InvalidParams)), 2);
        assert_eq!(of(&failed(ErrorCode::SessionInUse)), 2);
        assert_eq!(of(&failed(ErrorCode::PromptTooLarge)), 2);
        assert_eq!(of(&failed(ErrorCode::CliNotFound)), 3);
        assert_eq!(of(&with(RunStatus::TimedOut)), 4);
        assert_eq!(of(&with(RunStatus::Incomplete)), 5);
        assert_eq!(of(&with(RunStatus::Aborted)), 130);
        let error = AgentError::new(ErrorCode::BudgetExceeded, ErrorKind::Budget, "x");
        let error = error.detail(ErrorDetail::budget(BudgetKind::Time, Some(2.0)));
        assert_eq!(of(&RunResult::default().errors(vec![error])), 4);
    }

    #[test]
    fn the_help_names_every_code() {
        for code in [
            SUCCESS,
            AGENT_ERROR,
            USAGE,
            CLI_NOT_FOUND,
            TIMEOUT,
            INCOMPLETE,
            ABORTED,
        ] {
            let listed = HELP
                .lines()
                .any(|line| line.split_whitespace().next() == Some(&code.to_string()));
            assert!(listed, "{code}");
        }
    }
}
