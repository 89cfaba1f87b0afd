//! `teamster runs forget`.

use std::io::{self, Write};

use teamster_api::history::ForgetRuns;
use teamster_core::time::millis;
use teamster_host::ForgetError;

use super::args::RunsForgetArgs;
use super::history::History;
use crate::{exit_code, words};

/// Deletes the selected runs and returns the exit code.
pub(super) async fn main(args: &RunsForgetArgs, history: &History) -> anyhow::Result<u8> {
    let mut request = ForgetRuns::default();
    request.ids.clone_from(&args.ids);
    request.older_than_ms = args.older_than.map(millis);
    request.logs_over = args.logs_over;
    let deleted = history.forget(&request).await?;
    let runs = words::plural(deleted.runs, "run");
    let mut out = io::stdout();
    exit_code::of_printed(if deleted.logs > 0 {
        let logs = words::plural(deleted.logs, "log");
        let size = words::bytes(deleted.log_bytes);
        writeln!(out, "{runs} forgotten, {logs} deleted ({size})")
    } else {
        writeln!(out, "{runs} forgotten")
    })
}

/// Returns the error with the next step.
pub(super) fn with_step(error: ForgetError) -> anyhow::Error {
    match error {
        ForgetError::Unknown { id, place } => {
            let id = words::one_line(&id);
            let place = place.unwrap_or_else(|| "the history".to_owned());
            anyhow::anyhow!(
                "there is no run `{id}` in {place}: `teamster runs list` shows the runs"
            )
        }
        ForgetError::Live(id) => {
            anyhow::anyhow!("the run `{id}` is live: stop it with `teamster cancel {id}` first")
        }
        ForgetError::LiveElsewhere { id, pid } => {
            let id = words::one_line(&id);
            anyhow::anyhow!("the run `{id}` is live in process {pid}: stop it first")
        }
        error => error.into(),
    }
}
