//! Tasks elsewhere: in a separate package, so that the other tasks do not wait for its build, or in a script.

use std::fs;
use std::io::Write;
use std::process::ExitStatus;

use anyhow::Context as _;

use crate::{Outcome, cargo, command, root};

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

/// Runs a script, by its path in the repository. Its help is the comment at its beginning.
pub(crate) fn script(name: &str, args: &Args, out: &mut impl Write) -> anyhow::Result<Outcome> {
    let script = root().join(name);
    if args.args.iter().any(|arg| arg == "-h" || arg == "--help") {
        let text = fs::read_to_string(&script).with_context(|| format!("cannot read {name}"))?;
        for line in text
            .lines()
            .skip(1)
            .map_while(|line| line.strip_prefix('#'))
        {
            writeln!(out, "{}", line.strip_prefix(' ').unwrap_or(line))?;
        }
        return Ok(Outcome::Fine);
    }
    let status = command(script)
        .args(&args.args)
        .status()
        .with_context(|| format!("cannot start {name}"))?;
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

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn wrong_arguments_of_a_script_are_named_and_start_nothing() {
        for (script, args, problem) in [
            (
                ".ci/fleet",
                &["chaos", "--seconds=9"][..],
                "no setting --seconds=9",
            ),
            (
                ".ci/fleet",
                &["simulate", "seconds=9"],
                "no setting seconds=9",
            ),
            (".ci/fleet", &[], "chaos or simulate"),
            (
                ".ci/fuzz",
                &["log", "--seconds"],
                "--seconds takes a whole number",
            ),
            (
                ".ci/fuzz",
                &["log", "--seconds", "1m"],
                "--seconds takes a whole number",
            ),
            (
                ".ci/fuzz",
                &["log", "--seconds", "0"],
                "--seconds takes a whole number",
            ),
            (".ci/fuzz", &["log", "--input"], "--input takes files"),
            (".ci/fuzz", &["--input", "a"], "--input takes one target"),
            (".ci/soak", &["turns", "turn"], "no part turn"),
            (".ci/workspaces", &["small", "large"], "no part large"),
            ("packaging/crates", &["--tests"], "usage: packaging/crates"),
        ] {
            // Without cargo: nothing is built even if a check is missing.
            let ran = Command::new(root().join(script))
                .args(args)
                .env("PATH", "/usr/bin:/bin")
                .output()
                .unwrap();
            let stderr = String::from_utf8_lossy(&ran.stderr);
            assert_eq!(ran.status.code(), Some(2), "{script} {args:?}: {stderr}");
            assert!(stderr.contains(problem), "{script} {args:?}: {stderr}");
        }
    }

    #[test]
    fn help_of_a_script_is_the_comment_at_its_beginning() {
        for script in [
            ".ci/fleet",
            ".ci/fuzz",
            ".ci/soak",
            ".ci/workspaces",
            "packaging/crates",
        ] {
            let args = Args {
                args: vec!["--help".to_owned()],
            };
            let mut out = Vec::new();
            let outcome = super::script(script, &args, &mut out).unwrap();
            assert_eq!(outcome, Outcome::Fine);
            let help = String::from_utf8(out).unwrap();
            assert!(help.contains(&format!("  {script} ")), "{help}");
            assert!(!help.contains("set -euo"), "{help}");
        }
    }
}
