//! `teamster requests`: lists pending requests.

pub(crate) mod args;

use std::io::Write;
use std::path::PathBuf;

use anstyle::Style;
use teamster_api::{PendingRequest, tool_input};
use teamster_core::time::epoch_ms;
use teamster_host::state;

use crate::detached::RunHandle;
use crate::remote::{self, Machine};
use crate::runtime::tokio_runtime;
use crate::table::Table;
use crate::{exit_code, words};
use args::RequestsArgs;

/// Lists the requests of these runs, or of all, and returns the exit code.
pub(crate) fn main(args: &RequestsArgs, machine: &Machine) -> anyhow::Result<u8> {
    let waiting = tokio_runtime()?.block_on(waiting(machine, &args.ids))?;
    let mut out = anstream::stdout();
    exit_code::of_printed(if args.json {
        waiting.iter().try_for_each(|(request, _)| {
            serde_json::to_writer(&mut out, request)?;
            writeln!(out)
        })
    } else if waiting.is_empty() {
        // On stderr, so that scripts do not read it as a request.
        let _ = writeln!(anstream::stderr(), "no pending requests");
        Ok(())
    } else {
        let mut table = Table::new(["REQUEST", "TOOL", "ASKED", "DENIED IN", "FOR"]);
        let now = epoch_ms();
        for (request, directory) in &waiting {
            let ago = words::duration_ms(now.saturating_sub(request.asked_at));
            let left = |at: u64| words::duration_ms(at.saturating_sub(now));
            let cells = [
                words::one_line(&request.request_id),
                words::one_line(&request.tool_name),
                format!("{ago} ago"),
                request.expires_at.map(left).unwrap_or_default(),
                what(request, directory.as_deref()),
            ];
            table.row(cells.map(|cell| (cell, Style::new())));
        }
        let written = table.write(&mut out);
        hint(&waiting[0].0);
        written
    })
}

/// Returns the pending requests of these runs, or of all, each with its run's directory.
async fn waiting(
    machine: &Machine,
    ids: &[String],
) -> anyhow::Result<Vec<(PendingRequest, Option<PathBuf>)>> {
    let runs = match machine {
        Machine::There(client) if ids.is_empty() => {
            return Ok(remote::pending_requests(client).await?);
        }
        Machine::Here if ids.is_empty() => {
            let runs = state::runs()?.list()?.into_iter();
            runs.map(RunHandle::Local).collect()
        }
        _ => RunHandle::find_all(machine, ids).await?,
    };
    // All at once, because a runner may not answer.
    let asking = runs.into_iter().map(|run| {
        let directory = run.info().directory.clone();
        tokio::spawn(async move { (run.requests().await, directory) })
    });
    let mut waiting = Vec::new();
    for asked in asking.collect::<Vec<_>>() {
        match asked.await? {
            (Ok(requests), directory) => {
                waiting.extend(requests.into_iter().map(|it| (it, directory.clone())));
            }
            // One run does not affect the list of all.
            (Err(error), _) if ids.is_empty() => crate::report::warn(&[error.to_string()]),
            (Err(error), _) => return Err(error.into()),
        }
    }
    Ok(waiting)
}

/// Describes the request in one line.
fn what(request: &PendingRequest, directory: Option<&std::path::Path>) -> String {
    let input = tool_input::summary(&request.input, directory);
    match &request.message {
        Some(message) if request.schema.is_some() || input.is_empty() => words::one_line(message),
        _ => input,
    }
}

fn hint(request: &PendingRequest) {
    let answers = if request.schema.is_some() {
        "TEXT"
    } else {
        "allow|deny"
    };
    let id = words::one_line(&request.request_id);
    // On stderr, because it is for people only.
    let _ = writeln!(
        anstream::stderr(),
        "answer with: teamster answer {id} {answers}"
    );
}
