//! What the program does for the server.

use std::ffi::OsString;

use serde_json::Value;
use teamster_server::{Backend, BackendError, StartRun, UsageQuery};

use super::start;
use crate::args::{Cli, Command};
use crate::{doctor, usage};

/// The program.
pub(super) struct Program;

type Future<T> =
    std::pin::Pin<Box<dyn std::future::Future<Output = Result<T, BackendError>> + Send>>;

impl Backend for Program {
    fn start(&self, run_id: String, request: StartRun) -> Future<()> {
        Box::pin(start::start(run_id, request))
    }

    fn providers(&self) -> Future<Value> {
        Box::pin(async { failed(doctor::with_capabilities().await) })
    }

    fn usage(&self, query: UsageQuery) -> Future<Value> {
        Box::pin(async move {
            let read = tokio::task::spawn_blocking(move || {
                let args =
                    usage_args(&query).map_err(|error| BackendError::Invalid(one_line(&error)))?;
                let Command::Usage(args) = args.command else {
                    return Err(BackendError::Failed("no such command".to_owned()));
                };
                failed(usage::value(&args))
            });
            read.await
                .unwrap_or_else(|error| Err(BackendError::Failed(error.to_string())))
        })
    }
}

fn failed<T>(done: anyhow::Result<T>) -> Result<T, BackendError> {
    done.map_err(|error| BackendError::Failed(format!("{error:#}")))
}

/// The command line that says the same, so that values are read as there.
fn usage_args(query: &UsageQuery) -> Result<Cli, clap::Error> {
    let mut words: Vec<OsString> = ["teamster", "usage", "--json"].map(OsString::from).to_vec();
    for (flag, value) in [
        ("--by", &query.by),
        ("--since", &query.since),
        ("--until", &query.until),
    ] {
        if let Some(value) = value {
            words.push(format!("{flag}={value}").into());
        }
    }
    Cli::read(words)
}

/// The first line of the parser's error, without the word in front.
pub(super) fn one_line(error: &clap::Error) -> String {
    let text = error.to_string();
    let line = text.lines().next().unwrap_or_default();
    line.strip_prefix("error: ").unwrap_or(line).to_owned()
}
