//! `teamster usage`: what agent CLIs have used.

mod csv;
mod history;
mod json;
mod limits;
mod prices;
mod statusline;
mod table;
mod watch;

use std::collections::HashMap;
use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use anyhow::{Context, bail};
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use teamster::usage::prices::PriceList;
use teamster::usage::{Accounts, Dimension, Figures, Group, Joined, Places, Provider, Scan};

use crate::args::{By, UsageArgs};
use crate::render::{Spinner, TermSpinner};
use crate::{exit_code, fail, words, zone};

/// How long nothing is said of how far it is.
const PATIENCE: Duration = Duration::from_millis(700);
/// How often it is said.
const FRAME: Duration = Duration::from_millis(100);

/// Shows what was used; the exit code.
pub(crate) fn main(args: &UsageArgs) -> anyhow::Result<u8> {
    if args.statusline {
        return statusline::main();
    }
    if args.limits {
        return exit_code::of_printed(limits::print(args.json, width()));
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
    let collected = collect(args, span, &now, &providers, &prices)?;
    let by = args.by.unwrap_or(By::Day);
    let report = Report::new(&collected, by, span, &now, args.models);
    let width = width();
    let printed = if args.json {
        json::print(&report, &mut io::stdout())
    } else if args.csv {
        csv::print(&report, &mut io::stdout())
    } else if report.groups.is_empty() {
        table::nothing(&report, &args.providers, width, &mut anstream::stderr())
    } else {
        table::print(&report, width, &mut anstream::stdout())
    };
    exit_code::of_printed(printed)
}

/// What was used, as `--json` has it.
pub(crate) fn value(args: &UsageArgs) -> anyhow::Result<serde_json::Value> {
    let now = Timestamp::now().to_zoned(zone::local());
    let span = span(args, &now)?;
    let prices = prices::list(args)?;
    let collected = collect(args, span, &now, &Provider::ALL, &prices)?;
    let by = args.by.unwrap_or(By::Day);
    json::value(&Report::new(&collected, by, span, &now, args.models))
}

/// How wide the terminal is, if stdout is one.
fn width() -> Option<usize> {
    let size = console::Term::stdout().size_checked();
    size.map(|(_, columns)| usize::from(columns))
}

/// What was used in a time.
struct Collected {
    accounts: Accounts,
    joined: Joined,
    /// Runs of agents whose files are not known.
    of_others: u64,
}

/// Reads the files of the CLIs and the history.
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
        of_others: runs.of_others,
    })
}

/// From when on, and until when.
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
        bail!("--until is not after --since: there is nothing between them");
    }
    Ok(span)
}

/// Reads what the CLIs have left, and says at a terminal how far it is.
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
    let reading = thread::spawn(move || {
        let accounts = scan.run();
        // The waiter is gone only if this program ends.
        let _ = done.send(());
        accounts
    });
    if io::stderr().is_terminal() && !args.json && args.watch.is_none() {
        let mut spinner = TermSpinner::new();
        let mut wait = PATIENCE;
        while is_done.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
            wait = FRAME;
            let all = progress.bytes.load(Ordering::Relaxed);
            let read = progress.bytes_read.load(Ordering::Relaxed);
            spinner.show(&how_far(read, all));
        }
        spinner.hide();
    }
    reading
        .join()
        .map_err(|_| anyhow::anyhow!("the files of the CLIs could not be read"))
}

fn how_far(read: u64, all: u64) -> String {
    if all == 0 {
        return "looking for the files of the CLIs".to_owned();
    }
    let megabytes = |bytes: u64| bytes.div_ceil(1_000_000);
    format!("reading {} of {} MB", megabytes(read), megabytes(all))
}

/// What is shown.
struct Report<'a> {
    by: By,
    span: TimeSpan,
    /// The zone of the days.
    zone: TimeZone,
    groups: Vec<Group>,
    total: Figures,
    /// Models of which not every request has a price.
    unpriced: Vec<Unpriced>,
    joined: Joined,
    /// Runs of agents whose files are not known.
    of_others: u64,
    accounts: &'a Accounts,
    /// The models of each group, if they are shown.
    models: HashMap<Option<Arc<str>>, Vec<Group>>,
}

/// A model of which not every request has a price.
struct Unpriced {
    model: String,
    /// How many have none.
    requests: u64,
    /// Of so many.
    of: u64,
}

impl<'a> Report<'a> {
    fn new(
        collected: &'a Collected,
        by: By,
        span: TimeSpan,
        now: &Zoned,
        with_models: bool,
    ) -> Self {
        let accounts = &collected.accounts;
        let mut groups = accounts.by(by.dimension());
        match by {
            By::Day | By::Week | By::Month => {}
            // The one that was used last comes last, where a terminal shows it.
            By::Session => groups.sort_by_key(|group| group.last),
            By::Model | By::Agent | By::Project | By::Provider => groups.sort_by(|a, b| {
                let cost = |group: &Group| group.figures.spent_usd.unwrap_or_default();
                let tokens = |group: &Group| group.figures.usage.total_tokens();
                cost(b)
                    .total_cmp(&cost(a))
                    .then_with(|| tokens(b).cmp(&tokens(a)))
            }),
        }
        let models = accounts.by(Dimension::Model).into_iter();
        let unpriced = models
            .filter(|model| model.figures.unpriced_requests > 0)
            .map(|model| {
                let name = model
                    .name
                    .as_deref()
                    .map_or_else(String::new, words::one_line);
                Unpriced {
                    model: name,
                    requests: model.figures.unpriced_requests,
                    of: model.figures.requests,
                }
            });
        Self {
            by,
            span,
            zone: now.time_zone().clone(),
            groups,
            total: accounts.total(),
            unpriced: unpriced.collect(),
            joined: collected.joined,
            of_others: collected.of_others,
            accounts,
            models: if with_models {
                accounts.models_by(by.dimension()).into_iter().collect()
            } else {
                HashMap::new()
            },
        }
    }

    /// The models of a group, if they are shown.
    fn models_of(&self, group: &Group) -> &[Group] {
        self.models.get(&group.name).map_or(&[], Vec::as_slice)
    }

    /// What the estimates are made with.
    fn prices() -> (&'static str, &'static str) {
        (
            teamster::usage::prices::source(),
            teamster::usage::prices::date(),
        )
    }
}

#[cfg(test)]
mod tests;
