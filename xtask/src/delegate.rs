//! Tasks elsewhere: in a separate package, so that the other tasks do not wait for its build, or in a script.

use std::fs;
use std::io::Write;
use std::process::{Command, ExitStatus};

use anyhow::Context as _;

use crate::{Outcome, cargo, root};

/// Arguments that are handed on as they are.
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Args {
    #[arg(
        value_name = "ARG",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    args: Vec<String>,
}

/// Runs a task of the package `conformance`.
pub(crate) fn run(task: &str, args: &Args) -> anyhow::Result<Outcome> {
    if task == "loop" {
        // It runs the program itself, and starts it where there is no network to build it.
        let built = cargo()
            .args(["build", "--quiet", "--package", "teamster-cli"])
            .status()
            .context("cannot start cargo")?;
        if !built.success() {
            return Ok(Outcome::Failed);
        }
    }
    let status = cargo()
        .args(["run", "--package", "conformance", "--", task])
        .args(&args.args)
        .status()
        .context("cannot start cargo")?;
    Ok(outcome(status))
}

/// Runs a script of `.ci`. Its help is the comment at its beginning.
pub(crate) fn script(name: &str, args: &Args, out: &mut impl Write) -> anyhow::Result<Outcome> {
    let script = root().join(".ci").join(name);
    if args.args.iter().any(|arg| arg == "-h" || arg == "--help") {
        let text =
            fs::read_to_string(&script).with_context(|| format!("cannot read .ci/{name}"))?;
        for line in text
            .lines()
            .skip(1)
            .map_while(|line| line.strip_prefix('#'))
        {
            writeln!(out, "{}", line.strip_prefix(' ').unwrap_or(line))?;
        }
        return Ok(Outcome::Fine);
    }
    let status = Command::new(script)
        .args(&args.args)
        .status()
        .with_context(|| format!("cannot start .ci/{name}"))?;
    Ok(outcome(status))
}

fn outcome(status: ExitStatus) -> Outcome {
    match status.code() {
        Some(0) => Outcome::Fine,
        Some(1) => Outcome::Problems,
        Some(3) => Outcome::NotRun,
        _ => Outcome::Failed,
    }
}
