//! Runners: the processes of detached runs and sessions.
//!
//! A runner is this program in a new process session, detached from the terminal.

use std::io;
use std::process::{Command, Stdio};

use anyhow::{Context, anyhow, bail};
use nix::unistd::setsid;
use teamster::{AgentError, ErrorCode, ErrorKind};
use teamster_api::{Launch, Launched, Spec};
use teamster_runner::launch;
use teamster_runner::{Finished, NewRun, Retention, Runs, RunsError};

use crate::signals::Source;
use crate::{chat, exit_code, run, words};

/// The first argument of a runner. The agent follows, to show it in process lists.
pub(crate) const ARGUMENT: &str = "--teamster-runner";

/// Returns the command that starts a runner. It reads a [`Launch`] from stdin.
pub(crate) fn command(agent: &str) -> anyhow::Result<Command> {
    let program = crate::program().context("cannot find this program")?;
    let mut command = Command::new(program);
    command
        .args([ARGUMENT, agent])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    Ok(command)
}

/// Starts a runner, waits until it accepts the run and prints the run's id. Returns the exit code.
pub(crate) fn launch(launch: &Launch, quiet: bool) -> anyhow::Result<u8> {
    let answer = launch::start(launch, command(launch.what.provider())?)
        .map_err(crate::with_advice)
        .context("cannot start a runner")?;
    match answer {
        Launched::Accepted { warnings, .. } => {
            if !quiet {
                crate::warn(&warnings);
            }
            exit_code::of_printed(io::Write::write_fmt(
                &mut io::stdout(),
                format_args!("{}\n", launch.id),
            ))
        }
        Launched::Refused { error, .. } => {
            let code = match error.kind {
                ErrorKind::Internal => exit_code::AGENT_ERROR,
                _ => exit_code::USAGE,
            };
            // Without a parameter, words in the text are no names of parameters.
            let error = match error.parameter() {
                Some(_) => run::usage(error),
                None => anyhow!(error.message),
            };
            crate::fail(&error);
            Ok(code)
        }
        _ => bail!("the runner has another version"),
    }
}

/// Runs the runner of a detached run or session. Returns the exit code.
pub(crate) fn main() -> anyhow::Result<u8> {
    launch::close_inherited();
    // Fails only for the leader of a process group, which is detached from the terminal as well.
    let _ = setsid();
    let accepted = launch::read(io::stdin())
        .map_err(Into::into)
        .and_then(|launch| match launch.what {
            Spec::Run(spec) => run::detached::runner(&launch.id, *spec),
            Spec::Session(spec) => chat::detached::runner(&launch.id, *spec),
        });
    accepted.unwrap_or_else(|error| {
        launch::answer(&Launched::refused(refusal(&error)));
        Ok(exit_code::USAGE)
    })
}

/// Returns the error of something that is not the fault of the description.
pub(crate) fn failure(what: &str, error: io::Error) -> AgentError {
    let error = anyhow::Error::from(crate::with_advice(error));
    let message = format!("{what}: {}", words::error_chain(&error));
    AgentError::new(ErrorCode::Io, ErrorKind::Internal, message)
}

/// Returns the reason why nothing was started as data.
fn refusal(error: &anyhow::Error) -> AgentError {
    if let Some(error) = error.downcast_ref::<AgentError>() {
        return error.clone();
    }
    let message = words::error_chain(error);
    match error.downcast_ref::<RunsError>() {
        Some(RunsError::Io { .. }) => AgentError::new(ErrorCode::Io, ErrorKind::Internal, message),
        _ => AgentError::invalid_params(message),
    }
}

/// Reports to the parent process that the run is accepted, with warnings, and detaches from the terminal.
pub(crate) fn detach(run: &NewRun, warnings: Vec<String>) -> anyhow::Result<()> {
    launch::detach(run, warnings)
        .map_err(|error| failure("cannot detach from the terminal", error).into())
}

/// Calls `stop(false)` on the first termination signal and `stop(true)` on the second.
pub(crate) fn stop_by_signals(stop: impl Fn(bool) + Send + 'static) -> anyhow::Result<()> {
    let mut signals = Source::new().context("cannot listen for signals")?;
    tokio::spawn(async move {
        signals.next().await;
        stop(false);
        signals.next().await;
        stop(true);
    });
    Ok(())
}

/// Reports an incomplete log on stderr, which is a file in the run's folder.
pub(crate) fn report(finished: &Finished) {
    if let Err(error) = &finished.log {
        crate::fail(&anyhow!("the log of this run is not complete: {error}"));
    }
}

/// Removes the logs of ended runs beyond the retention. Every runner calls it at its end.
pub(crate) fn prune(runs: &Runs, retention: &Retention) {
    if let Err(error) = runs.prune(retention) {
        crate::fail(&anyhow!(error).context("old logs could not be removed"));
    }
}
