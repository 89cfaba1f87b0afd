//! Conformance tests: each scenario with the real CLIs of all providers and a scripted model must give one
//! story.
//!
//! `cargo xtask conformance`, `cargo xtask capture`, `cargo xtask follow`, `cargo xtask resilience` and
//! `cargo xtask loop` run this program.
#![cfg_attr(not(test), warn(missing_docs))]

mod accounts;
mod acp;
mod agent;
mod agent_loop;
mod answer;
mod bench;
mod capture;
mod column;
mod conformance;
mod conversation;
mod differences;
mod fact;
mod follow;
mod hot;
mod image;
mod install;
mod isolation;
mod json;
mod location;
mod markdown;
mod matrix;
mod named;
mod play;
mod played;
mod resilience;
mod results;
mod scenario;
mod schedule;
mod story;
mod times;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use clap::{Parser, Subcommand};
use teamster_mock_model::Cli;

use crate::bench::Bench;
use crate::isolation::Network;
use crate::results::Results;

/// Play scenarios with the real CLIs against a scripted model.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", max_term_width = 100)]
#[command(
    after_help = "Exit codes: 0 all is well, 1 something was found, 2 the task could not run, \
                  3 not run because the CLIs cannot be installed."
)]
struct Args {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    Capture(capture::Args),
    Conformance(conformance::Args),
    Follow(follow::Args),
    Loop(agent_loop::Args),
    Resilience(resilience::Args),
    /// The MCP server of the scenarios.
    #[command(hide = true, disable_help_flag = true)]
    FakeMcp {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        flags: Vec<String>,
    },
}

/// Data for the process that is alone with loopback.
#[derive(Debug, Clone, clap::Args)]
struct Inner {
    /// The folder with the CLIs' programs.
    #[arg(long, hide = true)]
    programs: Option<PathBuf>,
    /// How the CLIs are kept from the network.
    #[arg(long, hide = true)]
    network: Option<Network>,
}

impl Inner {
    /// Returns the bench and the network of the process that is alone with loopback, or `None` in the process before it.
    /// `record` is the folder for recordings, if requested.
    fn bench(&self, record: Option<PathBuf>) -> Option<(Bench, Network)> {
        let bench = Bench {
            programs: self.programs.clone()?,
            boxes: std::env::temp_dir(),
            record,
        };
        Some((bench, self.network?))
    }
}

/// Returns the requested items, or all.
fn given_or<T: Clone>(given: &[T], all: Vec<T>) -> Vec<T> {
    if given.is_empty() {
        all
    } else {
        given.to_vec()
    }
}

/// Name of the temporary folder of all runs.
const FOLDER: &str = "teamster-conformance";

/// Returns the folder of this crate.
fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn root() -> &'static Path {
    here().ancestors().nth(2).unwrap_or(here())
}

/// Stores results, and writes the page of them. With `check`, only returns whether they are the stored ones.
fn settle(results: &Results, check: bool, command: &str) -> anyhow::Result<bool> {
    if check {
        return results.are_stored(command);
    }
    results.write()?;
    write_page(results)?;
    Ok(true)
}

/// Writes `docs/conformance.md`.
fn write_page(results: &Results) -> anyhow::Result<()> {
    let path = root().join("docs/conformance.md");
    std::fs::write(&path, page(results)?)
        .with_context(|| format!("cannot write {}", path.display()))
}

fn page(results: &Results) -> anyhow::Result<String> {
    let sections = [
        matrix::section(results)?,
        resilience::section(&results.resilience),
        agent_loop::section(&results.agent_loop),
        times::section(&results.times),
    ];
    Ok(sections
        .each_ref()
        .map(|section| section.trim_end())
        .join("\n\n")
        + "\n")
}

/// Returns the folder of installations.
fn target() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR");
    target
        .map_or_else(|| root().join("target"), PathBuf::from)
        .join("conformance")
}

/// Parses a provider's name, given as a flag or an argument.
fn cli(name: &str) -> Result<Cli, String> {
    let known = install::matrix();
    match Cli::from_id(name) {
        Some(cli) if known.contains(&cli) => Ok(cli),
        Some(cli) => Err(format!(
            "not a column of the matrix; its row is made by `cargo xtask conformance --acp {cli}`"
        )),
        None => {
            let known: Vec<_> = known.iter().map(|cli| cli.id()).collect();
            Err(format!("there is: {}", known.join(", ")))
        }
    }
}

/// Prints progress and findings on stderr. Without a reader, the exit code suffices.
fn say(message: std::fmt::Arguments<'_>) {
    let _ = writeln!(std::io::stderr(), "{message}");
}

/// Prints the result of a scenario, or of a case, and its player.
fn say_played(name: &str, who: impl std::fmt::Display, time: Duration, what: &str) {
    let (who, seconds) = (who.to_string(), time.as_secs_f64());
    say(format_args!(
        "{name:<24} {who:<12} {seconds:>6.1} s  {what}"
    ));
}

fn main() -> ExitCode {
    let args = Args::parse();
    let done = match args.task {
        Task::Capture(args) => capture::run(&args),
        Task::Conformance(args) => conformance::run(&args),
        Task::Follow(args) => follow::run(&args),
        Task::Loop(args) => agent_loop::run(&args),
        Task::Resilience(args) => resilience::run(&args),
        Task::FakeMcp { flags } => {
            return teamster_testkit::fake_mcp_server::main(flags.into_iter());
        }
    };
    match done {
        Ok(code) => code,
        Err(error) => {
            say(format_args!("error: {error:#}"));
            if error.downcast_ref::<install::Unreachable>().is_some() {
                say(format_args!(
                    "NOT RUN: no CLI was started, and nothing is known"
                ));
                return ExitCode::from(3);
            }
            ExitCode::from(2)
        }
    }
}

/// Runs the second half of a task, in the process that only has loopback.
fn alone(programs: &Path) -> anyhow::Result<ExitCode> {
    alone_code(programs, &[]).map(ExitCode::from)
}

/// Returns the exit code of the second half, which gets these further arguments.
fn alone_code(programs: &Path, further: &[&str]) -> anyhow::Result<u8> {
    // The name is always the same, because some output contains it. It differs only during another run.
    let home = tempfile::Builder::new()
        .prefix(FOLDER)
        .rand_bytes(0)
        .tempdir()
        .or_else(|_| tempfile::Builder::new().prefix(FOLDER).tempdir())
        .context("cannot make a temporary folder")?;
    let status = isolation::run_alone(programs, home.path(), further)?;
    let code = status
        .code()
        .and_then(|code| u8::try_from(code).ok())
        .unwrap_or(2);
    Ok(code)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn stored_results_give_the_page_in_the_docs() {
        let stored = std::fs::read_to_string(root().join("docs/conformance.md")).unwrap();
        assert_eq!(page(&Results::read().unwrap()).unwrap(), stored);
    }
}
