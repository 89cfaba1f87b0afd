//! `teamster runs list --live`: detached runs that are running.

use std::io::{self, Write};

use anstyle::Style;
use serde::Serialize;
use teamster_core::time::epoch_ms;
use teamster_runner::protocol::PendingRequest;
use teamster_runner::{RunFolder, RunInfo, RunState, client};

use super::local;
use crate::args::RunsListArgs;
use crate::table::Table;
use crate::{detached, exit_code, tokio_runtime, words};

/// A running run and what it waits for.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Live {
    #[serde(flatten)]
    info: RunInfo,
    /// The number of the newest entry of its log.
    seq: u64,
    /// When the log was last written to, in milliseconds since the Unix epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    changed_at: Option<u64>,
    /// The requests that wait for an answer.
    requests: Vec<PendingRequest>,
}

/// Lists them, newest first; the exit code.
pub(super) fn main(args: &RunsListArgs) -> anyhow::Result<u8> {
    let limit = usize::try_from(args.limit).unwrap_or(usize::MAX);
    let runs = detached::runs()?.list()?.into_iter();
    let runs = runs.filter(|run| {
        (args.provider.as_ref()).is_none_or(|provider| run.info().provider == *provider)
    });
    let directory = args.cwd.as_deref().map(super::real);
    let runs = runs.filter(|run| directory.is_none() || run.info().directory == directory);
    let live = tokio_runtime()?.block_on(async {
        let mut live = Vec::new();
        for run in runs {
            if live.len() == limit {
                break;
            }
            live.extend(look_at(&run).await?);
        }
        anyhow::Ok(live)
    })?;
    let mut out = anstream::stdout();
    exit_code::of_printed(if args.json {
        live.iter().try_for_each(|run| {
            serde_json::to_writer(&mut out, run)?;
            writeln!(out)
        })
    } else if live.is_empty() {
        // On stdout would be what a script takes for a run.
        let _ = writeln!(anstream::stderr(), "no detached run is running");
        Ok(())
    } else {
        table(&live, &mut out)
    })
}

/// The run, unless it has ended.
async fn look_at(run: &RunFolder) -> anyhow::Result<Option<Live>> {
    if run.settle()? == RunState::Ended {
        return Ok(None);
    }
    Ok(Some(Live {
        info: run.info().clone(),
        seq: run.last_line()?.map_or(0, |line| line.seq()),
        changed_at: run.changed_at(),
        requests: client::requests(run).await?,
    }))
}

fn table(runs: &[Live], out: &mut impl Write) -> io::Result<()> {
    let now = epoch_ms();
    let age = |ms: u64| words::duration_ms(now.saturating_sub(ms));
    let mut table = Table::new(["RUN", "BEGAN", "AGENT", "QUIET FOR", "WAITS FOR"]);
    for run in runs {
        let waits = match &*run.requests {
            [] => String::new(),
            [request] => format!("an answer: {}", words::one_line(&request.tool_name)),
            several => format!("{} answers", several.len()),
        };
        let cells = [
            words::one_line(&run.info.run_id),
            local(run.info.accepted_at, "%m-%d %H:%M"),
            words::one_line(&run.info.provider),
            run.changed_at.map(age).unwrap_or_default(),
            waits,
        ];
        table.row(cells.map(|cell| (cell, Style::new())));
    }
    table.write(out)
}
