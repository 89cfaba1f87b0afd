//! Tasks of this repository, run with `cargo xtask <TASK>`. Each task has a file.

mod bench;
mod capabilities;
mod delegate;
mod generated;
mod prices;
mod published;
mod replay;
mod schema;
mod surface;
mod tidy;

use std::env;
use std::ffi::{OsStr, OsString};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context as _, bail};
use clap::{Parser, Subcommand};

/// Tasks of this repository.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", max_term_width = 100)]
#[command(
    after_help = "Exit codes: 0 all is well, 1 something was found, 2 the task could not run, \
                  3 not run because what it needs (the real CLIs, a compiler) is missing here."
)]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    Bench(bench::Args),
    Capabilities(capabilities::Args),
    /// Record what a real CLI prints, as fixtures.
    Capture(delegate::Args),
    /// Play every scenario with the real CLIs and compare their stories.
    Conformance(delegate::Args),
    /// Kill everything of a fleet at random, or let many workers drain a long queue: `.ci/fleet`.
    Fleet(delegate::Args),
    /// Play the scenarios with versions of the CLIs side by side, and report what they change.
    Follow(delegate::Args),
    /// Try to break what reads strangers' bytes, with changed recordings: `.ci/fuzz`.
    Fuzz(delegate::Args),
    /// Make the packages of all published crates, and check what is in them: `packaging/crates`.
    Package(delegate::Args),
    Prices(prices::Args),
    /// Run `teamster loop` with the real CLIs and see what the model is asked.
    Loop(delegate::Args),
    Replay(replay::Args),
    /// Let runs of the real CLIs fail and go on: never a side effect twice.
    Resilience(delegate::Args),
    Schema(schema::Args),
    /// Run very many turns, events, runs and hours, and see what a process holds after them: `.ci/soak`.
    Soak(delegate::Args),
    Surface(surface::Args),
    Tidy(tidy::Args),
    /// Measure what a workspace of its own costs a run: `.ci/workspaces`.
    Workspaces(delegate::Args),
}

/// Outcome of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Fine,
    Problems,
    /// Something could not be checked. The reason was reported.
    Failed,
    /// A requirement is missing on this machine, so there were no checks.
    NotRun,
}

impl Outcome {
    fn problems_if(found: bool) -> Self {
        if found { Self::Problems } else { Self::Fine }
    }
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let mut out = BufWriter::new(io::stdout().lock());
    let outcome = match cli.task {
        Task::Bench(args) => bench::run(&args, &mut out),
        Task::Capabilities(args) => capabilities::run(args, &mut out),
        Task::Capture(args) => delegate::run("capture", &args),
        Task::Conformance(args) => delegate::run("conformance", &args),
        Task::Fleet(args) => delegate::script(".ci/fleet", &args, &mut out),
        Task::Follow(args) => delegate::run("follow", &args),
        Task::Fuzz(args) => delegate::script(".ci/fuzz", &args, &mut out),
        Task::Package(args) => delegate::script("packaging/crates", &args, &mut out),
        Task::Prices(args) => prices::run(&args, &mut out),
        Task::Loop(args) => delegate::run("loop", &args),
        Task::Replay(args) => replay::run(&args, &mut out),
        Task::Resilience(args) => delegate::run("resilience", &args),
        Task::Schema(args) => schema::run(args, &mut out),
        Task::Soak(args) => delegate::script(".ci/soak", &args, &mut out),
        Task::Surface(args) => surface::run(args, &mut out),
        Task::Tidy(args) => tidy::run(&args, &mut out),
        Task::Workspaces(args) => delegate::script(".ci/workspaces", &args, &mut out),
    };
    let outcome = outcome.and_then(|outcome| {
        out.flush()?;
        Ok(outcome)
    });
    match outcome {
        Ok(Outcome::Fine) => ExitCode::SUCCESS,
        Ok(Outcome::Problems) => ExitCode::from(1),
        Ok(Outcome::Failed) => ExitCode::from(2),
        Ok(Outcome::NotRun) => ExitCode::from(3),
        // The reader of the output has closed the pipe, as in `cargo xtask replay | head`.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            complain(format_args!("{error:#}"));
            ExitCode::from(2)
        }
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let io = cause.downcast_ref::<io::Error>().map(io::Error::kind);
        let json = cause.downcast_ref::<serde_json::Error>();
        let kind = io.or_else(|| json.and_then(serde_json::Error::io_error_kind));
        kind == Some(io::ErrorKind::BrokenPipe)
    })
}

/// Prints on stderr. A closed stderr is ignored.
fn complain(message: impl std::fmt::Display) {
    let _ = writeln!(io::stderr().lock(), "error: {message}");
}

/// Runs a command to its end, and returns what it printed.
fn output_of(command: &mut Command) -> anyhow::Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().with_context(|| program.clone())?;
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr);
        bail!("{program} ended with {}: {}", output.status, message.trim());
    }
    Ok(String::from_utf8(output.stdout)?)
}

fn cargo() -> Command {
    command(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Returns the command of a program that builds, without the variables that cargo has set for this one. Build scripts that
/// read them, such as that of `ring`, would be rerun with all dependents at each change between both environments.
fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    for (name, _) in env::vars_os() {
        let is_set_by_cargo =
            |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
        if name.to_str().is_some_and(is_set_by_cargo) {
            command.env_remove(name);
        }
    }
    command
}

fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here)
}

/// Returns the folder in which cargo builds.
fn target() -> PathBuf {
    target_of(env::var_os("CARGO_TARGET_DIR"))
}

/// Returns the folder in which cargo, started in the root, builds with this value of `CARGO_TARGET_DIR`.
fn target_of(variable: Option<OsString>) -> PathBuf {
    root().join(variable.unwrap_or_else(|| "target".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_target_folder_is_that_of_cargo() {
        assert_eq!(target_of(None), root().join("target"));
        assert_eq!(target_of(Some("other".into())), root().join("other"));
        assert_eq!(
            target_of(Some("/else/where".into())),
            Path::new("/else/where")
        );
    }
}
