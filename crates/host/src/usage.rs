//! Usage of tokens and money by all agents of this machine: from the CLIs' own files, and the history of runs.

mod history;
mod when;

use std::io;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use jiff::{Timestamp, Zoned};
use teamster_api::history::RunRecord;
use teamster_api::usage::{Dimension, Figures, UsageQuery, UsageSummary};
use teamster_core::AgentError;
use teamster_store::StoreError;
use teamster_usage::prices::{PriceFileError, PriceList};
use teamster_usage::{Accounts, Joined, Locations, Provider, Scan};

use crate::{Warning, environment};

pub use when::When;

/// The interval in which progress is reported.
const FRAME: Duration = Duration::from_millis(100);

/// Sources of usage beside the CLIs' own files.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct UsageSources {
    /// The store with the history of runs. Default: the user's, which may be missing.
    pub store: Option<String>,
    /// The file with prices. Default: the user's, if it exists.
    pub prices: Option<PathBuf>,
}

/// Reason that usage cannot be collected.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UsageError {
    /// A field of the query is not valid.
    #[error(transparent)]
    Query(#[from] AgentError),
    /// The file of prices cannot be used.
    #[error("the file of prices cannot be used")]
    Prices(#[from] PriceFileError),
    /// The store cannot be read.
    #[error("the history of runs cannot be read")]
    Store(#[source] StoreError),
    /// The system refuses a runtime.
    #[error("cannot start the runtime")]
    Runtime(#[source] io::Error),
    /// The system refuses a thread.
    #[error("cannot start a thread")]
    Thread(#[source] io::Error),
    /// Reading has panicked.
    #[error("the files of the CLIs could not be read")]
    Unreadable,
}

/// A period with optional bounds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Period {
    since: Option<Timestamp>,
    until: Option<Timestamp>,
}

impl Period {
    fn of(query: &UsageQuery, now: &Zoned) -> Result<Self, AgentError> {
        let at = |name: &str, text: &Option<String>, at: fn(&When, &Zoned) -> Option<Timestamp>| {
            let Some(text) = text else { return Ok(None) };
            let when = When::parse(text).map_err(|error| AgentError::refused(name, error))?;
            let at = at(&when, now);
            let at = at.ok_or_else(|| AgentError::refused(name, "there is no such time"))?;
            Ok::<_, AgentError>(Some(at))
        };
        let period = Self {
            since: at("since", &query.since, When::begin)?,
            until: at("until", &query.until, When::end)?,
        };
        match (period.since, period.until) {
            (Some(since), Some(until)) if since >= until => {
                Err(AgentError::refused("until", "it is not after `since`"))
            }
            _ => Ok(period),
        }
    }
}

/// Returns the CLIs of a query; all if it names none.
fn providers(query: &UsageQuery) -> Result<Vec<Provider>, AgentError> {
    let Some(names) = &query.provider else {
        return Ok(Provider::ALL.to_vec());
    };
    let read = names.split(',').map(|name| {
        let known = || Provider::ALL.map(Provider::id).join(", ");
        name.parse().map_err(|_| {
            let name = teamster_core::text::one_line(name);
            AgentError::refused(
                "provider",
                format!("no CLI \"{name}\"; expected {}", known()),
            )
        })
    });
    read.collect()
}

/// The usage of a period.
#[derive(Debug)]
pub struct CollectedUsage {
    accounts: Accounts,
    joined: Joined,
    /// The number of runs of agents without known files.
    other_runs: u64,
    /// The groups of a report have models.
    models: bool,
    /// Warnings, such as of a history that cannot be read.
    pub warnings: Vec<Warning>,
}

impl CollectedUsage {
    /// Returns the report, in groups of this kind, with their models if the query has them.
    pub fn summary(&self, by: Dimension) -> UsageSummary {
        if self.models {
            (self.accounts).summary_with_models(by, self.joined, self.other_runs)
        } else {
            (self.accounts).summary(by, self.joined, self.other_runs)
        }
    }

    /// Returns the figures of the whole period.
    pub fn total(&self) -> Figures {
        self.accounts.total()
    }
}

/// Returns the usage of these runs alone, without the files of CLIs, by a query at this time, in whose time zone days are.
///
/// # Errors
///
/// Fails if the query is not valid.
pub fn usage_of_runs(
    query: &UsageQuery,
    runs: &[RunRecord],
    now: &Zoned,
) -> Result<UsageSummary, AgentError> {
    let period = Period::of(query, now)?;
    let providers = providers(query)?;
    let mut accounts = Accounts::new(period.since, period.until, now.time_zone().clone());
    let runs = history::of(runs, &providers);
    let joined = accounts.join(runs.known);
    let collected = CollectedUsage {
        accounts,
        joined,
        other_runs: runs.other_runs,
        models: query.models,
        warnings: Vec::new(),
    };
    Ok(collected.summary(query.by.unwrap_or(Dimension::Day)))
}

/// Collects the usage of a query at this time, in whose time zone days are. Blocks: it reads many files.
///
/// `on_progress` is called about every 100 ms, with the bytes that were read and those of all files.
///
/// # Errors
///
/// Fails if the query is not valid, or if the file of prices or a store that was named cannot be read.
pub fn collect_usage(
    query: &UsageQuery,
    sources: &UsageSources,
    now: &Zoned,
    mut on_progress: impl FnMut(u64, u64),
) -> Result<CollectedUsage, UsageError> {
    let period = Period::of(query, now)?;
    let providers = providers(query)?;
    let prices = match &sources.prices {
        Some(file) => PriceList::with_file(file)?,
        None => PriceList::of_user(environment::variable)?,
    };
    let mut scan = Scan::new(Locations::from_variables(environment::variable))
        .time_zone(now.time_zone().clone())
        .prices(prices)
        .providers(providers.iter().copied());
    if let Some(since) = period.since {
        scan = scan.since(since);
    }
    if let Some(until) = period.until {
        scan = scan.until(until);
    }
    let progress = scan.progress();
    let (done, is_done) = channel();
    let reading = thread::Builder::new().spawn(move || {
        let accounts = scan.run();
        // The receiver is gone only if this call ends.
        let _ = done.send(());
        accounts
    });
    let reading =
        reading.map_err(|error| UsageError::Thread(teamster_process::with_advice(error)))?;
    while is_done.recv_timeout(FRAME) == Err(RecvTimeoutError::Timeout) {
        let all = progress.bytes.load(Ordering::Relaxed);
        on_progress(progress.bytes_read.load(Ordering::Relaxed), all);
    }
    let mut accounts = reading.join().map_err(|_| UsageError::Unreadable)?;
    let mut warnings = Vec::new();
    let store = sources.store.as_deref();
    let runs = history::runs(store, period, &providers, &mut warnings)?;
    let ticks = accounts.ticks();
    let joined = accounts.join(runs.known.into_iter().chain(ticks));
    Ok(CollectedUsage {
        accounts,
        joined,
        other_runs: runs.other_runs,
        models: query.models,
        warnings,
    })
}
