//! `teamster mock-model`: serves a scripted model to real CLIs.

pub(crate) mod args;
mod command;
mod pointed;
mod requests;
mod serve;

use std::env;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, anyhow};
use teamster_mock_model::{Cli, MockModel, MockModelSettings, PointedHome, Script, ScriptError};

use crate::exit_code;
use args::MockModelArgs;

const EXAMPLE: &str = include_str!("mock_model/example.toml");

/// Serves until a signal, or runs a command. Returns the exit code.
pub(crate) fn main(args: &MockModelArgs) -> anyhow::Result<u8> {
    if args.example {
        return exit_code::of_printed(io::stdout().write_all(EXAMPLE.as_bytes()));
    }
    // Clap requires it.
    let script = args.script.as_deref().unwrap_or(Path::new("-"));
    let script = script_of(script).map_err(exit_code::misuse)?;
    let settings = settings(args).map_err(exit_code::misuse)?;
    let named = named(&args.cli).map_err(exit_code::misuse)?;
    if args.command.is_empty() {
        serve::main(args, script, settings, named)
    } else {
        command::main(args, script, settings, named)
    }
}

fn script_of(path: &Path) -> anyhow::Result<Script> {
    let (read, name) = if path == Path::new("-") {
        let mut text = String::new();
        io::stdin()
            .read_to_string(&mut text)
            .context("cannot read the script from stdin")?;
        (text.parse(), "the script on stdin".to_owned())
    } else {
        (Script::read(path), path.display().to_string())
    };
    read.map_err(|error| match error {
        ScriptError::Unreadable { path, error } => anyhow!(
            "cannot read the script {path}: {error}; `teamster mock-model --example` prints an example"
        ),
        wrong => anyhow!(
            "{name}: {}\n`teamster mock-model --example` explains the format of a script",
            wrong.to_string().trim_end()
        ),
    })
}

fn settings(args: &MockModelArgs) -> anyhow::Result<MockModelSettings> {
    let mut settings = MockModelSettings::default();
    settings.port = args.port;
    settings.pace = Duration::from_millis(args.pace);
    settings.directory = Some(directory(args.directory.as_deref())?);
    Ok(settings)
}

/// Returns the agent's working directory in canonical form.
fn directory(given: Option<&Path>) -> anyhow::Result<PathBuf> {
    let Some(given) = given else {
        return env::current_dir().context("no current directory; set --directory");
    };
    let directory = given
        .canonicalize()
        .with_context(|| format!("--directory {}", given.display()))?;
    if !directory.is_dir() {
        return Err(anyhow!("--directory {}: not a directory", given.display()));
    }
    Ok(directory)
}

/// Parses the values of `--cli`.
fn named(ids: &[String]) -> anyhow::Result<Vec<Cli>> {
    let known = |id: &String| {
        Cli::from_id(id).with_context(|| {
            format!(
                "--cli {id}: teamster cannot point this agent at a server; set its variables from TEAMSTER_MOCK_URL in \
                COMMAND, as in `-- sh -c 'MY_URL=$TEAMSTER_MOCK_URL/v1 my-agent'`"
            )
        })
    };
    ids.iter().map(known).collect()
}

/// Returns the CLI if there is exactly one.
fn single(clis: &[Cli]) -> Option<Cli> {
    match clis {
        [cli] => Some(*cli),
        _ => None,
    }
}

/// Points CLIs at the model with this address, and writes their files into a home.
fn point(url: String, home: &Path, clis: Vec<Cli>) -> anyhow::Result<PointedHome> {
    PointedHome::new(url, home, clis)
        .with_context(|| format!("cannot write the files of the agents in {}", home.display()))
}

async fn start(script: Script, settings: MockModelSettings) -> anyhow::Result<MockModel> {
    let port = settings.port;
    MockModel::start_with(script, settings)
        .await
        .map_err(|error| match (error.kind(), port) {
            (io::ErrorKind::AddrInUse, _) => anyhow!(
                "port {port} on 127.0.0.1 is in use; choose another one, or omit --port for a free one"
            ),
            (io::ErrorKind::PermissionDenied, 1..1024) => anyhow!(
                "port {port} on 127.0.0.1 needs root privileges; choose one from 1024 up, or omit --port for a free one"
            ),
            _ => anyhow!("cannot listen on port {port} of 127.0.0.1: {error}"),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_can_be_played() {
        let script: Script = EXAMPLE.parse().unwrap();
        assert_eq!(script.turns.len(), 4);
        assert_eq!(script.turns[0].times, Some(1));
    }
}
