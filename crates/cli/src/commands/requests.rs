//! `teamster requests`: lists pending requests.

pub(crate) mod args;

use std::io::Write as _;
use std::path::PathBuf;

use teamster::PermissionRequest;
use teamster_api::{LiveState, PendingRequest, RunHandle, RunInfo, tool_input};
use teamster_core::time::epoch_ms;

use crate::detached::Run;
use crate::dialog::request_text;
use crate::remote::Machine;
use crate::report::note;
use crate::runtime::tokio_runtime;
use crate::table::Table;
use crate::{exit_code, words};
use args::RequestsArgs;

/// Lists the requests of these runs, or of all, and returns the exit code.
pub(crate) fn main(args: &RequestsArgs, machine: &Machine) -> anyhow::Result<u8> {
    let waiting = tokio_runtime()?.block_on(waiting(machine, &args.ids))?;
    if args.json {
        return exit_code::of_json_lines(waiting.iter().map(|(request, _)| request));
    }
    let Some((first, _)) = waiting.first() else {
        note("no pending requests");
        return Ok(exit_code::SUCCESS);
    };
    if !args.ids.is_empty() {
        return in_full(&waiting);
    }
    let mut table = Table::new(["REQUEST", "TOOL", "ASKED", "DENIED IN", "FOR"]);
    let now = epoch_ms();
    for (request, directory) in &waiting {
        let ago = words::duration_ms(now.saturating_sub(request.asked_at_ms));
        let left = |at: u64| words::duration_ms(at.saturating_sub(now));
        let cells = [
            words::short_request_id(&request.request_id),
            words::one_line(&request.tool_name),
            format!("{ago} ago"),
            request.expires_at_ms.map(left).unwrap_or_default(),
            what(request, directory.as_deref()),
        ];
        table.texts(cells);
    }
    let written = table.write(&mut anstream::stdout());
    hint(first);
    exit_code::of_printed(written)
}

/// Prints requests with everything that they would do.
fn in_full(waiting: &[(PendingRequest, Option<PathBuf>)]) -> anyhow::Result<u8> {
    let mut out = anstream::stdout();
    let mut write = |(pending, directory): &(PendingRequest, Option<PathBuf>)| {
        let request = PermissionRequest::from(pending.clone());
        let text = request_text::whole(&request, directory.as_deref());
        write!(
            out,
            "{}{text}",
            words::short_request_id(&pending.request_id)
        )
    };
    let written = waiting.iter().try_for_each(&mut write);
    if let Some((first, _)) = waiting.first() {
        hint(first);
    }
    exit_code::of_printed(written)
}

/// Returns the pending requests of these runs, or of all, each with its run's directory.
async fn waiting(
    machine: &Machine,
    ids: &[String],
) -> anyhow::Result<Vec<(PendingRequest, Option<PathBuf>)>> {
    let mut waiting = Vec::new();
    let mut add = |requests: Vec<_>, run: &RunInfo| {
        let requests = requests.into_iter();
        waiting.extend(requests.map(|request| (request, run.directory.clone())));
    };
    if !ids.is_empty() {
        for run in Run::find_all(machine, ids).await? {
            add(run.handle.requests().await?, &run.info);
        }
        return Ok(waiting);
    }
    let mut asking = Vec::new();
    for run in machine.live_runs().await? {
        let status = run.live.as_ref().map(|live| live.state);
        if status == Some(LiveState::NotAnswering) {
            let run = RunHandle::new(machine.runs(), &*run.info.run_id);
            asking.push(tokio::spawn(async move { run.requests().await }));
        }
        add(run.requests.clone(), &run.info);
    }
    for asked in asking {
        // The reason. One run does not affect the list of all.
        if let Err(error) = asked.await? {
            crate::report::warn(&[error.to_string()]);
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
    let id = words::short_request_id(&request.request_id);
    let teamster = crate::global::typed();
    note(&format!("answer with: {teamster} answer {id} {answers}"));
}
