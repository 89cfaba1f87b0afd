//! Runners: the processes of detached runs and sessions.
//!
//! A runner is this program in a new process session, detached from the terminal.

use std::io;
use std::process::{Command, Stdio};

use anyhow::{Context, anyhow, bail};
use nix::unistd::setsid;
use teamster_runner::launch::{self, Launch, Launched};
use teamster_runner::{Finished, NewRun, Retention, Runs};

use crate::args::{Cli, Command as Subcommand};
use crate::signals::Source;
use crate::{chat, exit_code, run};

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

/// Starts a runner with the command line of this process, waits until it accepts the run and prints the run's id.
/// Returns the exit code.
pub(crate) fn launch(agent: &str, prompt: Option<String>) -> anyhow::Result<u8> {
    let command = command(agent)?;
    let launch = Launch::new(std::env::args_os().collect(), prompt);
    match launch
        .start(command, false)
        .map_err(crate::with_advice)
        .context("cannot start a runner")?
    {
        Launched::Accepted(id) => exit_code::of_printed(io::Write::write_fmt(
            &mut io::stdout(),
            format_args!("{id}\n"),
        )),
        Launched::Refused { status, .. } => {
            match status.code().and_then(|code| u8::try_from(code).ok()) {
                Some(code) if code != exit_code::SUCCESS => Ok(code),
                _ => bail!(
                    "the runner ended before the run was accepted ({status}): nothing was started"
                ),
            }
        }
        _ => bail!("the runner has another version"),
    }
}

/// Runs the runner of a detached run or session. Returns the exit code.
pub(crate) fn main() -> anyhow::Result<u8> {
    launch::close_inherited();
    // Fails only for the leader of a process group, which is detached from the terminal as well.
    let _ = setsid();
    let launch = Launch::read(io::stdin()).context("cannot read the launch request")?;
    match Cli::read(launch.args)?.command {
        Subcommand::Run(mut args) => {
            run::detached::runner(&mut args, launch.prompt.unwrap_or_default())
        }
        Subcommand::Chat(mut args) => chat::detached::runner(&mut args, launch.session_id),
        _ => bail!("the launch request is neither for a run nor for a chat"),
    }
}

/// Reports to the parent process that the run is accepted, and detaches from the terminal.
pub(crate) fn detach(run: &NewRun) -> anyhow::Result<()> {
    launch::detach(run).context("cannot detach from the terminal")
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
