//! `teamster runs forget`.

use std::io::{self, Write};

use teamster_api::history::ForgetRuns;
use teamster_core::time::millis;

use super::args::RunsForgetArgs;
use super::history::History;
use crate::{exit_code, words};

/// Deletes the selected runs and returns the exit code.
pub(super) async fn main(args: &RunsForgetArgs, history: &History) -> anyhow::Result<u8> {
    let mut request = ForgetRuns::default();
    request.ids.clone_from(&args.ids);
    request.older_than_ms = args.older_than.map(millis);
    request.logs_over = args.logs_over;
    let deleted = history.forget(request).await?;
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
