//! Runs a command with the environment that points CLIs at the mock server.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

use anyhow::Context;
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, getpgrp, tcgetpgrp};
use teamster_mock_model::{Cli, HomeVariables, MockModel, MockModelSettings, Script, URL_VARIABLE};
use teamster_process::foreign_git_variables;
use teamster_process::{find_program, run_mark};
use tokio::process::{Child, Command};
use tokio::time::sleep;

use super::requests::RequestPrinter;
use teamster_host::Guard;

use super::args::MockModelArgs;
use crate::exit_code;
use crate::runtime::tokio_runtime;
use crate::signals::{Source, StopSignal};

/// The grace period before SIGTERM. A terminal sends its signal to the command as well, and a second one could mean
/// something else.
const SELF_EXIT_GRACE: Duration = Duration::from_millis(500);
/// The grace period after SIGTERM.
const TERM_GRACE: Duration = Duration::from_secs(5);

pub(super) fn main(
    args: &MockModelArgs,
    script: Script,
    mut settings: MockModelSettings,
    named: Vec<Cli>,
) -> anyhow::Result<u8> {
    // The caller checks that the command is not empty.
    let Some((program, arguments)) = args.command.split_first() else {
        return Ok(exit_code::USAGE);
    };
    let path = std::env::var_os("PATH");
    let not_found = |error: anyhow::Error| exit_code::with(exit_code::CLI_NOT_FOUND, error);
    let found = find_program(&program.to_string_lossy(), path.as_deref());
    let found = found.map_err(|error| not_found(error.into()))?;
    let itself = cli_of(program);
    let variables = match (args.keep_home, named.is_empty() && itself.is_none()) {
        (false, _) => HomeVariables::Home,
        (true, false) => HomeVariables::FoldersWithXdg,
        (true, true) => HomeVariables::Folders,
    };
    let clis = match (named.is_empty(), itself) {
        (false, _) => named,
        (true, Some(cli)) => vec![cli],
        (true, None) => Cli::ALL.into(),
    };
    settings.cli = super::single(&clis);
    let directory = settings.directory.clone();
    let mut printer = RequestPrinter::new(args.verbose, args.log.as_deref())?;
    let (_folder, home) = crate::mock_home::temporary_folder("teamster-mock-")?;
    let guard = Guard::start(crate::global::host(), None);
    teamster_host::adopt_orphans();
    let code = tokio_runtime()?.block_on(async {
        let mut signals = Source::new().context("cannot listen for signals")?;
        let model = super::start(script, settings).await?;
        let home = super::point(model.url(), &home, clis)?;
        let (set, unset) = home.environment(variables);
        let mut clis = home.clis.iter();
        let mut command = Command::new(&found);
        command
            .args(match clis.find(|(cli, _)| Some(*cli) == itself) {
                Some((_, pointing)) => pointing.arguments(arguments),
                None => arguments.to_vec(),
            })
            .envs(set)
            .env(URL_VARIABLE, &home.url)
            .kill_on_drop(true);
        let (mark, id) = run_mark();
        command.env(mark, id);
        for name in unset {
            command.env_remove(name);
        }
        if let Some(directory) = directory.filter(|_| args.directory.is_some()) {
            for name in foreign_git_variables(&directory) {
                command.env_remove(name);
            }
            command.current_dir(directory);
        }
        let child = command.spawn();
        let child = child.with_context(|| format!("cannot start {}", found.display()));
        let child = child.map_err(not_found)?;
        run(child, &model, &mut signals, &mut printer).await
    });
    teamster_host::end_orphans(guard.as_ref().map(Guard::pid));
    code
}

/// Waits for the end of the command and returns the exit code.
async fn run(
    mut child: Child,
    model: &MockModel,
    signals: &mut Source,
    printer: &mut RequestPrinter,
) -> anyhow::Result<u8> {
    let status = loop {
        tokio::select! {
            biased;
            status = child.wait() => break Some(status.context("cannot wait for the command")?),
            signal = signals.stop_signal() => {
                // The terminal sends Ctrl-C to the command too. What it means there is up to that: in an agent's own
                // interface it interrupts a turn.
                if signal == StopSignal::Interrupt && is_in_foreground() {
                    continue;
                }
                stop(&mut child, signals).await;
                break None;
            }
            () = printer.report(model) => break None,
        }
    };
    printer.catch_up(model);
    Ok(status.map_or(exit_code::ABORTED, code_of))
}

/// Returns whether Ctrl-C at the terminal reaches this process, and with it the command.
fn is_in_foreground() -> bool {
    tcgetpgrp(io::stdin()).is_ok_and(|group| group == getpgrp())
}

/// Stops the command: waits, then sends SIGTERM, then SIGKILL. Each further signal skips to the next step.
async fn stop(child: &mut Child, signals: &mut Source) {
    tokio::select! {
        biased;
        _ = child.wait() => return,
        () = sleep(SELF_EXIT_GRACE) => {}
        () = signals.next() => {}
    }
    if let Some(pid) = child.id().and_then(|pid| i32::try_from(pid).ok()) {
        // The child is not reaped yet, so the id is not reused.
        let _ = kill(Pid::from_raw(pid), Signal::SIGTERM);
    }
    tokio::select! {
        biased;
        _ = child.wait() => return,
        () = sleep(TERM_GRACE) => {}
        () = signals.next() => {}
    }
    let _ = child.kill().await;
}

/// Returns the exit code in the form of a shell: 128 plus the number of the signal.
fn code_of(status: ExitStatus) -> u8 {
    use std::os::unix::process::ExitStatusExt;
    let code = status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok())
        .unwrap_or(exit_code::AGENT_ERROR)
}

/// Returns the CLI with the program's file name.
fn cli_of(program: &OsStr) -> Option<Cli> {
    Cli::from_id(Path::new(program).file_name()?.to_str()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;

    #[test]
    fn a_cli_is_known_by_the_name_of_its_program() {
        assert_eq!(cli_of(OsStr::new("/opt/bin/claude")), Some(Cli::Claude));
        assert_eq!(cli_of(OsStr::new("codex")), Some(Cli::Codex));
        assert_eq!(cli_of(OsStr::new("my-claude")), None);
        assert_eq!(cli_of(OsStr::new("/")), None);
    }

    #[test]
    fn an_end_by_a_signal_has_the_code_of_a_shell() {
        assert_eq!(code_of(ExitStatus::from_raw(7 << 8)), 7);
        assert_eq!(code_of(ExitStatus::from_raw(9)), 137);
    }
}
