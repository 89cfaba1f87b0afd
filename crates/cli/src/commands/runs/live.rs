//! `teamster runs list --live`, the running detached runs.

use std::io::{self, Write};
use std::sync::Arc;

use anstyle::Style;
use serde::Serialize;
use teamster_api::{LiveState, LiveStatus, PendingRequest, RunInfo, RunKind, RunSummary};
use teamster_core::time::epoch_ms;

use super::args::RunsListArgs;
use crate::remote::Machine;
use crate::report::note;
use crate::runtime::tokio_runtime;
use crate::table::Table;
use crate::zone::local_time;
use crate::{exit_code, words};

/// A running detached run and its pending requests.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Live {
    #[serde(flatten)]
    info: RunInfo,
    /// Sequence number of the newest log entry.
    seq: u64,
    /// Time of the last write to the log, in milliseconds since the Unix epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    changed_at: Option<u64>,
    /// Current status; `None` if the runner is of an older version.
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<LiveStatus>,
    /// Pending requests.
    requests: Vec<PendingRequest>,
}

/// Lists running runs, newest first, and returns the exit code.
pub(super) fn main(args: &RunsListArgs, machine: &Machine) -> anyhow::Result<u8> {
    let live = tokio_runtime()?.block_on(find(args, machine))?;
    if args.json {
        return exit_code::of_json_lines(&live);
    }
    if live.is_empty() {
        note("no detached run is running");
        return Ok(exit_code::SUCCESS);
    }
    exit_code::of_printed(table(&live, &mut anstream::stdout()))
}

/// Returns the selected runs that have not ended.
async fn find(args: &RunsListArgs, machine: &Machine) -> anyhow::Result<Vec<Live>> {
    let limit = usize::try_from(args.limit).unwrap_or(usize::MAX);
    let directory = (args.cwd.as_deref()).map(|cwd| super::canonical(cwd, machine.is_here()));
    let is_selected = |info: &RunInfo| {
        (args.provider.as_ref()).is_none_or(|provider| info.provider == *provider)
            && (directory.is_none() || info.directory == directory)
    };
    let runs = machine.live_runs().await?.into_iter();
    let selected = runs.filter(|run| is_selected(&run.info)).take(limit);
    Ok(selected
        .map(|run| Arc::unwrap_or_clone(run).into())
        .collect())
}

impl From<RunSummary> for Live {
    fn from(run: RunSummary) -> Self {
        Self {
            info: run.info,
            seq: run.seq,
            changed_at: run.changed_at,
            status: run.live,
            requests: run.requests,
        }
    }
}

fn table(runs: &[Live], out: &mut impl Write) -> io::Result<()> {
    let now = epoch_ms();
    let age = |ms: u64| words::duration_ms(now.saturating_sub(ms));
    let mut table = Table::new([
        "RUN",
        "BEGAN",
        "AGENT",
        "STATE",
        "TURNS",
        "COST",
        "QUIET FOR",
    ]);
    for run in runs {
        let status = run.status.as_ref();
        let turns = (run.info.kind == RunKind::Session)
            .then(|| words::plural(status.map_or(0, |status| status.turns), "turn"));
        let cells = [
            words::one_line(&run.info.run_id),
            local_time(run.info.accepted_at, "%m-%d %H:%M"),
            words::one_line(&run.info.provider),
            state(run),
            turns.unwrap_or_default(),
            status
                .and_then(|status| words::cost_of(status.cost_usd, status.cost_source))
                .unwrap_or_default(),
            run.changed_at.map(age).unwrap_or_default(),
        ];
        table.row(cells.map(|cell| (cell, Style::new())));
    }
    table.write(out)
}

/// Returns the text of the STATE column.
fn state(run: &Live) -> String {
    match &*run.requests {
        [] => {}
        [request] => {
            return format!(
                "waits for an answer: {}",
                words::one_line(&request.tool_name)
            );
        }
        several => return format!("waits for {} answers", several.len()),
    }
    let status = run.status.as_ref();
    match status.map(|status| (status.state, status.pid)) {
        Some((LiveState::Idle, _)) => "idle".to_owned(),
        Some((LiveState::Ending, _)) => "ending".to_owned(),
        Some((LiveState::NotAnswering, Some(pid))) => format!("does not answer (pid {pid})"),
        Some((LiveState::NotAnswering, None)) => "does not answer".to_owned(),
        _ => "running".to_owned(),
    }
}
