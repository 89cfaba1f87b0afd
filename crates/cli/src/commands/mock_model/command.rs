//! Runs a command with the environment that points CLIs at the mock server.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

use anyhow::Context;
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, getpgrp, tcgetpgrp};
use teamster::process::{find_program, run_mark};
use teamster_mock_model::{Cli, MockModel, Pointing, Script, Settings};
use teamster_process::foreign_git_variables;
use tokio::process::{Child, Command};
use tokio::time::sleep;

use super::pointed::Pointed;
use super::requests::RequestPrinter;
use teamster_host::Guard;

use super::args::MockModelArgs;
use crate::exit_code;
use crate::mock_home::URL_VARIABLE;
use crate::runtime::tokio_runtime;
use crate::signals::{Source, StopSignal};

/// The grace period before SIGTERM. A terminal sends its signal to the command as well, and a second one could mean
/// something else.
const SELF_EXIT_GRACE: Duration = Duration::from_millis(500);
/// The grace period after SIGTERM.
const GRACE: Duration = Duration::from_secs(5);

pub(super) fn main(
    args: &MockModelArgs,
    script: Script,
    mut settings: Settings,
    named: Vec<Cli>,
) -> anyhow::Result<u8> {
    // The caller checks that the command is not empty.
    let Some((program, arguments)) = args.command.split_first() else {
        return Ok(exit_code::USAGE);
    };
    let path = std::env::var_os("PATH");
    let found = match find_program(&program.to_string_lossy(), path.as_deref()) {
        Ok(found) => found,
        Err(error) => {
            crate::report::fail(&error.into());
            return Ok(exit_code::CLI_NOT_FOUND);
        }
    };
    let itself = cli_of(program);
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
        let pointed = Pointed::new(model.url(), home, None, &clis)?;
        let (set, unset) = pointed.environment(args.keep_home);
        let pointing = pointed
            .clis
            .iter()
            .find(|(cli, _)| Some(*cli) == itself)
            .map(|(_, pointing)| pointing);
        let mut command = Command::new(&found);
        command
            .args(with_flags(pointing, arguments))
            .envs(set)
            .env(URL_VARIABLE, &pointed.url)
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
        let child = match command.spawn() {
            Ok(child) => child,
            Err(error) => {
                let error =
                    anyhow::Error::new(error).context(format!("cannot start {}", found.display()));
                crate::report::fail(&error);
                return Ok(exit_code::CLI_NOT_FOUND);
            }
        };
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
        () = sleep(GRACE) => {}
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

/// Adds the CLI's flags and model to its arguments.
fn with_flags(pointing: Option<&Pointing>, arguments: &[OsString]) -> Vec<OsString> {
    let mut all: Vec<OsString> = Vec::new();
    let Some(pointing) = pointing else {
        return arguments.to_vec();
    };
    all.extend(pointing.args.iter().map(OsString::from));
    let (head, tail) = match arguments.split_first() {
        Some((first, _)) if pointing.subcommand.is_some_and(|it| first == it) => {
            arguments.split_at(1)
        }
        _ => (&[][..], arguments),
    };
    all.extend_from_slice(head);
    let has_model = arguments.iter().any(names_a_model);
    if let Some(model) = pointing.model.as_ref().filter(|_| !has_model) {
        all.extend(["--model".into(), OsString::from(model)]);
    }
    all.extend_from_slice(tail);
    all
}

/// Returns `true` if the argument selects a model: `--model X`, `--model=X`, `-m X`, `-m=X` or `-mX`. The CLIs have
/// no other short flag that begins with `m`.
fn names_a_model(argument: &OsString) -> bool {
    let argument = argument.to_string_lossy();
    let is_short = argument.starts_with("-m");
    is_short || argument == "--model" || argument.starts_with("--model=")
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
    fn the_model_stands_behind_the_subcommand_and_the_callers_own_is_kept() {
        let mut pointing = Pointing::default();
        pointing.args = vec!["-c".into(), "a=1".into()];
        pointing.model = Some("m".into());
        let words = |subcommand, line: &str| {
            let mut pointing = pointing.clone();
            pointing.subcommand = subcommand;
            let line: Vec<_> = line.split(' ').map(OsString::from).collect();
            let all = with_flags(Some(&pointing), &line);
            all.join(OsStr::new(" ")).into_string().unwrap()
        };
        assert_eq!(words(Some("exec"), "exec hi"), "-c a=1 exec --model m hi");
        assert_eq!(words(Some("run"), "run hi"), "-c a=1 run --model m hi");
        assert_eq!(words(None, "-p hi"), "-c a=1 --model m -p hi");
        assert_eq!(words(None, "-p hi --model x"), "-c a=1 -p hi --model x");
        for own in ["-m x", "-m=x", "-mx", "--model=x"] {
            let line = format!("exec {own} hi");
            assert_eq!(words(Some("exec"), &line), format!("-c a=1 {line}"));
        }
    }

    #[test]
    fn an_end_by_a_signal_has_the_code_of_a_shell() {
        assert_eq!(code_of(ExitStatus::from_raw(7 << 8)), 7);
        assert_eq!(code_of(ExitStatus::from_raw(9)), 137);
    }
}
