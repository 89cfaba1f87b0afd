//! `teamster usage`: tokens and cost of agent CLIs.

pub(crate) mod args;
mod csv;
mod limits;
mod statusline;
mod table;
mod watch;

use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use teamster_api::usage::{Dimension, UsageQuery, UsageSummary};
use teamster_host::usage::{CollectedUsage, UsageError, UsageSources, collect_usage};

use crate::remote::Machine;
use crate::render::{Spinner, TermSpinner};
use crate::report::note;
use crate::runtime::tokio_runtime;
use crate::words::{bytes, printable, stdout_width};
use crate::{exit_code, zone};
use args::UsageArgs;

/// The delay of the first progress line.
const PROGRESS_DELAY: Duration = Duration::from_millis(700);

/// Shows the usage and returns the exit code.
pub(crate) fn main(args: &UsageArgs, machine: &Machine) -> anyhow::Result<u8> {
    if args.statusline {
        return statusline::main();
    }
    let server = machine.agents();
    if args.limits {
        let list = tokio_runtime()?.block_on(server.limits())?;
        return limits::show(&list, args.json, machine.is_fleet());
    }
    let now = Timestamp::now().to_zoned(zone::local());
    let query = query(args, &now).map_err(exit_code::misuse)?;
    if let Some(every) = args.watch {
        return watch::main(args, every);
    }
    if machine.is_here() {
        let by = args.by.unwrap_or(Dimension::Day);
        let summary = collect(args, &query, &now)?.summary(by);
        return show(args, &summary, now.time_zone());
    }
    let summary = tokio_runtime()?.block_on(server.usage(query))?;
    let zone = (summary.time_zone.as_deref()).and_then(|name| TimeZone::get(name).ok());
    show(args, &summary, &zone.unwrap_or_else(zone::local))
}

/// Prints a summary in the requested format and returns the exit code.
fn show(args: &UsageArgs, summary: &UsageSummary, zone: &TimeZone) -> anyhow::Result<u8> {
    let by = args.by.unwrap_or(Dimension::Day);
    let width = stdout_width();
    if args.json {
        return exit_code::of_json(summary);
    }
    let printed = if args.csv {
        csv::print(summary, by, &mut io::stdout())
    } else if summary.groups.is_empty() {
        table::print_empty(summary, &args.providers, width, &mut anstream::stderr())
    } else {
        table::print(summary, by, zone, width, &mut anstream::stdout())
    };
    exit_code::of_printed(printed)
}

/// Returns the query of the arguments. Days are in this machine's time zone, so its times are absolute.
fn query(args: &UsageArgs, now: &Zoned) -> anyhow::Result<UsageQuery> {
    let since = args.since.as_ref().map(|since| {
        let since = since.begin(now);
        since.context("--since: no such time")
    });
    let until = args.until.as_ref().map(|until| {
        let until = until.end(now);
        until.context("--until: no such time")
    });
    let (since, until) = (since.transpose()?, until.transpose()?);
    if let (Some(since), Some(until)) = (since, until)
        && since >= until
    {
        bail!("--until is not after --since");
    }
    let names: Vec<_> = args.providers.iter().map(|it| it.id()).collect();
    let mut query = UsageQuery::default();
    query.by = args.by;
    query.since = since.map(|at| at.to_string());
    query.until = until.map(|at| at.to_string());
    query.provider = (!names.is_empty()).then(|| names.join(","));
    query.models = args.models;
    Ok(query)
}

/// Collects the usage from the CLIs' files and the history, with progress at a terminal.
fn collect(args: &UsageArgs, query: &UsageQuery, now: &Zoned) -> anyhow::Result<CollectedUsage> {
    let mut sources = UsageSources::default();
    sources.store.clone_from(&args.store.url);
    sources.prices.clone_from(&args.prices);
    let shows_progress = io::stderr().is_terminal() && !args.json && args.watch.is_none();
    let began = Instant::now();
    let mut spinner = None;
    let collected = collect_usage(query, &sources, now, |read, all| {
        if shows_progress && began.elapsed() >= PROGRESS_DELAY {
            let spinner = spinner.get_or_insert_with(TermSpinner::new);
            spinner.show(&progress_text(read, all));
        }
    });
    if let Some(mut spinner) = spinner {
        spinner.hide();
    }
    let collected = collected.map_err(|error| match error {
        UsageError::Store(error) => anyhow::Error::from(error).context("--store or TEAMSTER_STORE"),
        error => error.into(),
    })?;
    for warning in &collected.warnings {
        note(&printable(&warning.text));
    }
    Ok(collected)
}

fn progress_text(read: u64, all: u64) -> String {
    if all == 0 {
        return "looking for the CLIs' files".to_owned();
    }
    format!("reading {} of {}", bytes(read), bytes(all))
}

#[cfg(test)]
mod tests;
