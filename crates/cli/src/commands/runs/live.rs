//! `teamster runs list --live`, the running detached runs.

use std::io::{self, Write};
use std::sync::Arc;

use serde::Serialize;
use teamster_api::{
    LiveState, LiveStatus, PendingRequest, QueueStatus, RunInfo, RunKind, RunQuery, RunSummary,
    ViewState, list_all,
};
use teamster_core::time::epoch_ms;

use super::args::RunsListArgs;
use crate::remote::Machine;
use crate::report::note;
use crate::runtime::tokio_runtime;
use crate::table::Table;
use crate::zone::local_time;
use crate::{exit_code, words};

/// The most columns of a title, and the fewest on a narrow terminal.
const TITLE_WIDTH: usize = 40;
const MIN_TITLE_WIDTH: usize = 16;
/// The columns that a narrow terminal lacks, those that say least first: `BEGAN`, `QUIET FOR`, `TURNS`, `COST`.
const LEAST: [usize; 4] = [1, 6, 4, 5];

/// A running detached run and its pending requests.
#[serde_with::skip_serializing_none]
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Live {
    #[serde(flatten)]
    info: RunInfo,
    /// State of the run.
    state: ViewState,
    /// Start of the state `queued` or `unknown`, in milliseconds since the Unix epoch.
    since: Option<u64>,
    /// Reason for which it is `queued`.
    queue: Option<QueueStatus>,
    /// Machine of a fleet that has the run.
    machine: Option<String>,
    /// Sequence number of the newest log entry.
    seq: u64,
    /// Time of the last write to the log, in milliseconds since the Unix epoch.
    #[serde(rename = "changedAt")]
    changed_at_ms: Option<u64>,
    /// Current status; `None` if the runner is of an older version.
    status: Option<LiveStatus>,
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
    let printed = table(&live, words::stdout_width(), &mut anstream::stdout());
    exit_code::of_printed(printed)
}

/// Returns the selected runs that have not ended.
async fn find(args: &RunsListArgs, machine: &Machine) -> anyhow::Result<Vec<Live>> {
    let limit = usize::try_from(args.limit).unwrap_or(usize::MAX);
    let mut query = RunQuery::default();
    query.live = true;
    query.agent.clone_from(&args.provider);
    query.directory = (args.cwd.as_deref()).map(|cwd| super::canonical(cwd, machine.is_here()));
    query.text.clone_from(&args.text);
    let runs = list_all(&*machine.runs(), query).await?;
    Ok(runs
        .into_iter()
        .take(limit)
        .map(|run| Arc::unwrap_or_clone(run).into())
        .collect())
}

impl From<RunSummary> for Live {
    fn from(run: RunSummary) -> Self {
        Self {
            info: run.info,
            state: run.state,
            since: run.since,
            queue: run.queue,
            machine: run.machine,
            seq: run.seq,
            changed_at_ms: run.changed_at_ms,
            status: run.live,
            requests: run.requests,
        }
    }
}

fn table(runs: &[Live], width: Option<usize>, out: &mut impl Write) -> io::Result<()> {
    let width = width.unwrap_or(usize::MAX);
    let now = epoch_ms();
    let age = |ms: u64| words::duration_ms(now.saturating_sub(ms));
    // Only those of a fleet have one.
    let has_machines = runs.iter().any(|run| run.machine.is_some());
    let mut head = vec![
        "RUN",
        "BEGAN",
        "AGENT",
        "STATE",
        "TURNS",
        "COST",
        "QUIET FOR",
    ];
    if has_machines {
        head.push("MACHINE");
    }
    // Those of an earlier version have none.
    let has_titles = runs.iter().any(|run| run.info.title.is_some());
    if has_titles {
        head.push("TITLE");
    }
    let title = head.len() - 1;
    let mut table = Table::new(head).without_empty();
    for run in runs {
        let status = run.status.as_ref();
        let turns = (run.info.kind == RunKind::Session)
            .then(|| words::plural(status.map_or(0, |status| status.turns), "turn"));
        let cells = [
            words::short_id(&words::one_line(&run.info.run_id)),
            local_time(run.info.accepted_at_ms, "%m-%d %H:%M"),
            words::one_line(&run.info.provider),
            state(run),
            turns.unwrap_or_default(),
            status
                .and_then(|status| words::cost_of(status.cost_usd, status.cost_source))
                .unwrap_or_default(),
            run.changed_at_ms.map(age).unwrap_or_default(),
        ];
        let mut cells = Vec::from(cells);
        if has_machines {
            let machine = run.machine.as_deref().map(words::one_line);
            cells.push(machine.unwrap_or_default());
        }
        if has_titles {
            let title = words::one_line(run.info.title.as_deref().unwrap_or_default());
            cells.push(words::cut(&title, TITLE_WIDTH).into_owned());
        }
        table.texts(cells);
    }
    let mut least = LEAST.iter();
    let fits = |table: &Table| {
        let cut = if has_titles {
            // What is cut of a title is there in `runs show`.
            table.width_of(title).saturating_sub(MIN_TITLE_WIDTH)
        } else {
            0
        };
        table.width() - cut <= width
    };
    while !fits(&table)
        && let Some(column) = least.next()
    {
        table.without(*column);
    }
    if has_titles && table.width() > width {
        let over = table.width() - width;
        let room = table.width_of(title).saturating_sub(over);
        table.cut(title, room.max(MIN_TITLE_WIDTH));
    }
    table.write(out)
}

/// Returns the text of the STATE column.
fn state(run: &Live) -> String {
    match (run.state, &run.queue) {
        (ViewState::Queued, Some(queue)) => {
            return format!("queued: {}", words::one_line(&queue.detail));
        }
        (ViewState::Queued, None) => return "queued".to_owned(),
        (ViewState::Unknown, _) => {
            let machine = run.machine.as_deref().map(words::one_line);
            return format!(
                "unknown: {} does not report",
                machine.as_deref().unwrap_or("its machine")
            );
        }
        _ => {}
    }
    if let Some(waits) = waits_for(&run.requests) {
        return waits;
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

/// Describes what a run with these requests waits for.
pub(super) fn waits_for(requests: &[PendingRequest]) -> Option<String> {
    match requests {
        [] => None,
        [request] => Some(format!(
            "waits for an answer: {}",
            words::one_line(&request.tool_name)
        )),
        several => Some(format!("waits for {} answers", several.len())),
    }
}

#[cfg(test)]
mod tests {
    use teamster_api::QueueReason;

    use super::*;

    #[test]
    fn json_keys_are_those_of_the_api() {
        let mut run = RunSummary::new(RunInfo::new("one", "codex"), ViewState::Running);
        run.info.accepted_at_ms = 3;
        (run.seq, run.changed_at_ms) = (7, Some(5));
        let ours = serde_json::to_value(Live::from(run)).unwrap();
        assert_eq!(ours["changedAt"], 5, "{ours}");
        assert_eq!(ours["acceptedAt"], 3, "{ours}");
        assert_eq!(ours["seq"], 7, "{ours}");
    }

    #[test]
    fn fleet_runs_show_their_machine_or_why_they_wait() {
        let mut queued = RunSummary::new(RunInfo::new("one", "codex"), ViewState::Queued);
        queued.queue = Some(QueueStatus::new(
            QueueReason::NoSlot,
            "all slots are in use",
        ));
        let mut lost = RunSummary::new(RunInfo::new("two", "codex"), ViewState::Unknown);
        lost.machine = Some("mini".to_owned());
        let here = RunSummary::new(RunInfo::new("three", "codex"), ViewState::Running);
        let mut titled = here.clone();
        titled.info.title = Some("Fix the\nlogin".to_owned());
        let shown = |runs: &[&RunSummary]| {
            let live: Vec<Live> = runs.iter().map(|run| (*run).clone().into()).collect();
            let mut bytes = Vec::new();
            table(&live, None, &mut bytes).unwrap();
            String::from_utf8(bytes).unwrap()
        };
        let narrow = |columns: usize| {
            let live = Live::from(titled.clone());
            let mut bytes = Vec::new();
            table(&[live], Some(columns), &mut bytes).unwrap();
            let text = String::from_utf8(bytes).unwrap();
            anstream::adapter::strip_str(&text).to_string()
        };
        let shortest = narrow(30);
        assert!(
            shortest.starts_with("RUN    AGENT  STATE    TITLE\n"),
            "{shortest}"
        );
        for columns in [45, 60, 80] {
            let shown = narrow(columns);
            assert!(shown.contains("Fix the login"), "{shown}");
            let widest = shown.lines().map(str::len).max().unwrap();
            assert!(widest <= columns, "{shown}");
        }
        let fleet = shown(&[&queued, &lost]);
        assert!(fleet.contains("queued: all slots are in use"), "{fleet}");
        assert!(fleet.contains("unknown: mini does not report"), "{fleet}");
        assert!(fleet.contains("MACHINE"), "{fleet}");
        let alone = shown(&[&here]);
        assert!(alone.contains("running"), "{alone}");
        assert!(
            !alone.contains("MACHINE") && !alone.contains("TITLE"),
            "{alone}"
        );
        let both = shown(&[&here, &titled]);
        assert!(
            both.contains("TITLE") && both.contains("Fix the login"),
            "{both}"
        );
    }
}
