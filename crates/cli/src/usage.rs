//! `teamster usage`: tokens and cost of agent CLIs.

mod csv;
mod history;
mod json;
mod limits;
mod prices;
mod statusline;
mod table;
mod watch;

use std::io::{self, IsTerminal};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use anyhow::{Context, bail};
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use teamster::usage::prices::PriceList;
use teamster::usage::{Accounts, Joined, Places, Provider, Scan};
use teamster_api::usage::{UsageQuery, UsageSummary};
use teamster_client::Client;

use crate::args::{By, UsageArgs};
use crate::remote::Machine;
use crate::render::{Spinner, TermSpinner};
use crate::{exit_code, fail, tokio_runtime, zone};

/// The delay of the first progress line.
const PATIENCE: Duration = Duration::from_millis(700);
/// The interval of progress lines.
const FRAME: Duration = Duration::from_millis(100);

pub(crate) use limits::list as limits;

/// Shows the usage and returns the exit code.
pub(crate) fn main(args: &UsageArgs, machine: &Machine) -> anyhow::Result<u8> {
    if args.statusline {
        return statusline::main();
    }
    if let Machine::There(client) = machine {
        return show_remote(args, client);
    }
    if args.limits {
        return exit_code::of_printed(limits::print(&limits::list(), args.json, width()));
    }
    let now = Timestamp::now().to_zoned(zone::local());
    let span = match span(args, &now) {
        Ok(span) => span,
        Err(error) => {
            fail(&error);
            return Ok(exit_code::USAGE);
        }
    };
    let providers = match &*args.providers {
        [] => Provider::ALL.to_vec(),
        some => some.to_vec(),
    };
    let prices = prices::list(args)?;
    if let Some(every) = args.watch {
        return watch::main(args, every, providers, prices);
    }
    let by = args.by.unwrap_or(By::Day);
    let collected = collect(args, span, &now, &providers, &prices)?;
    show(args, &collected.summary(by, args.models), now.time_zone())
}

/// Shows the usage of a server's machine and returns the exit code.
fn show_remote(args: &UsageArgs, client: &Client) -> anyhow::Result<u8> {
    let runtime = tokio_runtime().context("cannot start the runtime")?;
    if args.limits {
        let list = runtime.block_on(client.limits())?;
        return exit_code::of_printed(limits::print(&list, args.json, width()));
    }
    let mut query = UsageQuery::default();
    query.by = Some(args.by.unwrap_or(By::Day).dimension());
    let now = Timestamp::now().to_zoned(zone::local());
    let span = match span(args, &now) {
        Ok(span) => span,
        Err(error) => {
            fail(&error);
            return Ok(exit_code::USAGE);
        }
    };
    // Days are in this machine's time zone.
    query.since = span.since.map(|at| at.to_string());
    query.until = span.until.map(|at| at.to_string());
    if !args.providers.is_empty() {
        let names: Vec<_> = args.providers.iter().map(|it| it.id()).collect();
        query.provider = Some(names.join(","));
    }
    query.models = args.models;
    let summary = runtime.block_on(client.usage(&query));
    let summary = summary?;
    let zone = (summary.time_zone.as_deref()).and_then(|name| TimeZone::get(name).ok());
    show(args, &summary, &zone.unwrap_or_else(zone::local))
}

/// Prints a summary in the requested format and returns the exit code.
fn show(args: &UsageArgs, summary: &UsageSummary, zone: &TimeZone) -> anyhow::Result<u8> {
    let by = args.by.unwrap_or(By::Day);
    let width = width();
    let printed = if args.json {
        json::print(summary, &mut io::stdout())
    } else if args.csv {
        csv::print(summary, by, &mut io::stdout())
    } else if summary.groups.is_empty() {
        table::print_empty(summary, &args.providers, width, &mut anstream::stderr())
    } else {
        table::print(summary, by, zone, width, &mut anstream::stdout())
    };
    exit_code::of_printed(printed)
}

/// Checks that the period can be represented and has an end after its beginning.
pub(crate) fn check_period(args: &UsageArgs) -> anyhow::Result<()> {
    span(args, &Timestamp::now().to_zoned(zone::local())).map(drop)
}

/// Returns the usage as in `--json`.
pub(crate) fn summary(args: &UsageArgs) -> anyhow::Result<UsageSummary> {
    let now = Timestamp::now().to_zoned(zone::local());
    let span = span(args, &now)?;
    let prices = prices::list(args)?;
    let providers = match &*args.providers {
        [] => Provider::ALL.to_vec(),
        some => some.to_vec(),
    };
    let collected = collect(args, span, &now, &providers, &prices)?;
    Ok(collected.summary(args.by.unwrap_or(By::Day), args.models))
}

/// Returns the width of the terminal if stdout is one.
fn width() -> Option<usize> {
    let size = console::Term::stdout().size_checked();
    size.map(|(_, columns)| usize::from(columns))
}

/// The usage of a period.
struct Collected {
    accounts: Accounts,
    joined: Joined,
    /// The number of runs of agents without known files.
    other_runs: u64,
}

impl Collected {
    fn summary(&self, by: By, models: bool) -> UsageSummary {
        self.accounts
            .summary(by.dimension(), models, self.joined, self.other_runs)
    }
}

/// Collects the usage from the CLIs' files and the history.
fn collect(
    args: &UsageArgs,
    span: TimeSpan,
    now: &Zoned,
    providers: &[Provider],
    prices: &PriceList,
) -> anyhow::Result<Collected> {
    let mut accounts = read(args, span, now, providers, prices)?;
    let runs = history::runs(&args.store, span, providers)?;
    let ticks = accounts.ticks();
    let joined = accounts.join(runs.known.into_iter().chain(ticks));
    Ok(Collected {
        accounts,
        joined,
        other_runs: runs.other_runs,
    })
}

/// A period with optional bounds.
#[derive(Debug, Clone, Copy, Default)]
struct TimeSpan {
    since: Option<Timestamp>,
    until: Option<Timestamp>,
}

fn span(args: &UsageArgs, now: &Zoned) -> anyhow::Result<TimeSpan> {
    let since = args.since.as_ref().map(|since| {
        let since = since.begin(now);
        since.context("--since: there is no such time")
    });
    let until = args.until.as_ref().map(|until| {
        let until = until.end(now);
        until.context("--until: there is no such time")
    });
    let span = TimeSpan {
        since: since.transpose()?,
        until: until.transpose()?,
    };
    if let (Some(since), Some(until)) = (span.since, span.until)
        && since >= until
    {
        bail!("--until is not after --since");
    }
    Ok(span)
}

/// Reads the CLIs' files, with progress at a terminal.
fn read(
    args: &UsageArgs,
    span: TimeSpan,
    now: &Zoned,
    providers: &[Provider],
    prices: &PriceList,
) -> anyhow::Result<Accounts> {
    let mut scan = Scan::new(Places::from_env())
        .zone(now.time_zone().clone())
        .prices(prices.clone())
        .providers(providers.iter().copied());
    if let Some(since) = span.since {
        scan = scan.since(since);
    }
    if let Some(until) = span.until {
        scan = scan.until(until);
    }
    let progress = scan.progress();
    let (done, is_done) = channel();
    let reading = thread::Builder::new().spawn(move || {
        let accounts = scan.run();
        // The receiver is gone only if this program ends.
        let _ = done.send(());
        accounts
    });
    let reading = reading.map_err(teamster_host::threads::with_advice);
    let reading = reading.context("cannot start a thread")?;
    if io::stderr().is_terminal() && !args.json && args.watch.is_none() {
        let mut spinner = TermSpinner::new();
        let mut wait = PATIENCE;
        while is_done.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
            wait = FRAME;
            let all = progress.bytes.load(Ordering::Relaxed);
            let read = progress.bytes_read.load(Ordering::Relaxed);
            spinner.show(&progress_text(read, all));
        }
        spinner.hide();
    }
    reading
        .join()
        .map_err(|_| anyhow::anyhow!("the files of the CLIs could not be read"))
}

fn progress_text(read: u64, all: u64) -> String {
    if all == 0 {
        return "looking for the CLIs' files".to_owned();
    }
    format!(
        "reading {} of {}",
        crate::words::bytes(read),
        crate::words::bytes(all)
    )
}

#[cfg(test)]
mod tests;
