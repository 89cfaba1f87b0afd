//! `teamster runs list`.

use std::io::{self, Write};

use anstyle::Style;
use teamster::store::{RunFilter, RunRecord, RunState, Store};

use super::{local, style, time};
use crate::args::{RunsListArgs, Status};
use crate::table::Table;
use crate::{drive, exit_code, words};

/// How much of an id is shown: of the ids that teamster makes, all that tells the time. `runs show` takes
/// as much.
const ID: usize = 13;

pub(super) async fn main(args: &RunsListArgs, store: &Store) -> anyhow::Result<u8> {
    let mut filter = RunFilter::default();
    filter.limit = Some(args.limit);
    filter.provider.clone_from(&args.provider);
    filter.status = args.status.map(state);
    filter.since_ms = args.since.map(|since| {
        drive::clock().saturating_sub(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    });
    let runs = store.runs(&filter).await?;
    let printed = if args.json {
        json(&runs, &mut io::stdout())
    } else {
        if runs.is_empty() {
            // On stdout would be what a script takes for a run.
            let place = words::one_line(&store.place());
            let _ = writeln!(anstream::stderr(), "no such runs in {place}");
        }
        table(&runs, drive::clock(), &mut anstream::stdout())
    };
    exit_code::of_printed(printed)
}

fn state(status: Status) -> RunState {
    match status {
        Status::Running => RunState::Running,
        Status::Success => RunState::Success,
        Status::Error => RunState::Error,
        Status::Aborted => RunState::Aborted,
        Status::Interrupted => RunState::Interrupted,
    }
}

fn json(runs: &[RunRecord], out: &mut impl Write) -> io::Result<()> {
    for run in runs {
        serde_json::to_writer(&mut *out, run)?;
        writeln!(out)?;
    }
    Ok(())
}

fn table(runs: &[RunRecord], now_ms: u64, out: &mut impl Write) -> io::Result<()> {
    const HEAD: [&str; 8] = [
        "RUN", "BEGAN", "AGENT", "STATUS", "TIME", "TOKENS", "COST", "",
    ];
    if runs.is_empty() {
        return Ok(());
    }
    let mut table = Table::new(HEAD);
    for run in runs {
        let mut styles = [Style::new(); 8];
        styles[3] = style(run.status);
        styles[7] = Style::new().dimmed();
        table.row(row(run, now_ms).into_iter().zip(styles));
    }
    table.write(out)
}

fn row(run: &RunRecord, now_ms: u64) -> [String; 8] {
    let agent = match &run.model {
        Some(model) => format!("{} {}", run.provider, model),
        None => run.provider.clone(),
    };
    let tokens = run.usage.and_then(|usage| usage.total_tokens());
    let mut note = run
        .error
        .as_ref()
        .filter(|_| run.status != RunState::Aborted)
        .map(|error| teamster::excerpt(&words::one_line(&error.message), 60))
        .unwrap_or_default();
    if run.attempts > 1 {
        let attempts = words::plural(run.attempts.into(), "attempt");
        note = match note.as_str() {
            "" => attempts,
            note => format!("{attempts}: {note}"),
        };
    }
    [
        words::one_line(&run.run_id).chars().take(ID).collect(),
        local(run.started_at, "%Y-%m-%d %H:%M:%S"),
        words::one_line(&agent),
        words::one_line(&run.status.to_string()),
        time(run, now_ms)
            .map(words::duration_ms)
            .unwrap_or_default(),
        tokens.map(words::count).unwrap_or_default(),
        run.cost_usd.map(words::usd).unwrap_or_default(),
        note,
    ]
}
