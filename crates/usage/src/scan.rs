//! Parallel reading of the files of all CLIs.

use std::num::NonZero;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::SystemTime;

use jiff::Timestamp;
use jiff::fmt::temporal::DateTimeParser;
use jiff::tz::TimeZone;
use teamster_api::usage::Diagnostics;
use teamster_core::sync::lock;

use crate::source::{Found, Sink, Source, Sources};
use crate::{Accounts, Locations, Provider};
use teamster_prices::PriceList;

/// Number of records that a thread collects before it adds them to the accounts.
const BATCH: usize = 1024;

/// Progress of a scan, readable from another thread.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Progress {
    /// Bytes to read; 0 until all files are found.
    pub bytes: AtomicU64,
    /// Bytes of the files that have been read.
    pub bytes_read: AtomicU64,
}

/// A scan of the files of all CLIs.
#[derive(Debug, Clone)]
pub struct Scan {
    locations: Locations,
    providers: Vec<Provider>,
    since: Option<Timestamp>,
    until: Option<Timestamp>,
    zone: TimeZone,
    prices: PriceList,
    threads: Option<NonZero<usize>>,
    progress: Arc<Progress>,
}

/// Error of a time zone that is not known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown time zone {0:?}: use an IANA name such as Europe/Berlin, or an offset such as +05:30"
)]
pub struct UnknownZone(String);

/// Converts a time; one beyond the range of timestamps becomes the nearest.
pub(crate) fn timestamp(time: SystemTime) -> Timestamp {
    Timestamp::try_from(time).unwrap_or(if time < SystemTime::UNIX_EPOCH {
        Timestamp::MIN
    } else {
        Timestamp::MAX
    })
}

teamster_core::setters! {
    Scan {
        /// Sets the time zone of days, for one without a name.
        #[doc(hidden)]
        set zone as time_zone: TimeZone,
        /// Sets the prices for estimates. Default: those of the table.
        set prices: PriceList,
        /// Sets the number of reading threads. Default: the number of processors.
        some threads: NonZero<usize>,
    }
}

impl Scan {
    /// Creates a scan of these locations for all CLIs and times, with days in the system's time zone.
    pub fn new(locations: Locations) -> Self {
        Self {
            locations,
            providers: Provider::ALL.to_vec(),
            since: None,
            until: None,
            zone: TimeZone::system(),
            prices: PriceList::default(),
            threads: None,
            progress: Arc::default(),
        }
    }

    /// Limits the scan to these CLIs.
    #[must_use]
    pub fn providers(mut self, providers: impl IntoIterator<Item = Provider>) -> Self {
        self.providers = providers.into_iter().collect();
        self.providers.sort_unstable();
        self.providers.dedup();
        self
    }

    /// Limits the scan to requests from this time on. Files that were last changed before are not read.
    #[must_use]
    pub fn since(mut self, since: impl Into<SystemTime>) -> Self {
        self.since = Some(timestamp(since.into()));
        self
    }

    /// Limits the scan to requests before this time.
    #[must_use]
    pub fn until(mut self, until: impl Into<SystemTime>) -> Self {
        self.until = Some(timestamp(until.into()));
        self
    }

    /// Sets the time zone of days, by its IANA name (`Europe/Berlin`) or its offset from UTC (`+05:30`).
    ///
    /// # Errors
    ///
    /// Fails if this is neither, or if the machine does not know the name.
    ///
    /// ```
    /// use teamster_usage::{Locations, Scan};
    ///
    /// let scan = Scan::new(Locations::from_env());
    /// assert!(scan.clone().zone("-03:30").is_ok());
    /// let error = scan.zone("Mars/Base").unwrap_err().to_string();
    /// assert!(error.starts_with("unknown time zone \"Mars/Base\""), "{error}");
    /// ```
    pub fn zone(self, zone: &str) -> Result<Self, UnknownZone> {
        let known = DateTimeParser::new().parse_time_zone(zone);
        let known = known.map_err(|_| UnknownZone(zone.to_owned()))?;
        Ok(self.time_zone(known))
    }

    /// Returns the progress of the scan, for another thread.
    pub fn progress(&self) -> Arc<Progress> {
        self.progress.clone()
    }

    /// Reads all files. Blocks until it is done. Problems of files are in [`Accounts::diagnostics()`].
    pub fn run(&self) -> Accounts {
        let mut sources = Sources::new(self.since.map(SystemTime::from));
        for provider in &self.providers {
            provider.sources(&self.locations, &mut sources);
        }
        let Sources {
            mut found,
            diagnostics,
            ..
        } = sources;
        // Large files first, so that no large one remains for a single thread at the end.
        found.sort_by(|a, b| b.size.cmp(&a.size).then_with(|| a.path.cmp(&b.path)));
        let bytes = found.iter().map(|source| source.size).sum();
        self.progress.bytes.store(bytes, Ordering::Relaxed);

        let mut accounts = Accounts::new(self.since, self.until, self.zone.clone());
        accounts.prices = self.prices.clone();
        accounts.diagnostics = diagnostics;
        let threads = self
            .threads
            .or_else(|| thread::available_parallelism().ok())
            .map_or(1, NonZero::get)
            .min(found.len());
        let shared = Mutex::new(accounts);
        let next = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 1..threads {
                // The system may refuse further threads.
                let _ = thread::Builder::new()
                    .spawn_scoped(scope, || self.work(&found, &next, &shared));
            }
            self.work(&found, &next, &shared);
        });
        shared.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads sources until all are taken.
    fn work(&self, sources: &[Source], next: &AtomicUsize, accounts: &Mutex<Accounts>) {
        let mut batch = Vec::with_capacity(BATCH);
        let mut diagnostics = Diagnostics::default();
        while let Some(source) = sources.get(next.fetch_add(1, Ordering::Relaxed)) {
            let mut take = |found: Found| {
                batch.push(found);
                if batch.len() >= BATCH {
                    enter(&mut batch, accounts);
                }
            };
            diagnostics.merge(read(source, &mut take));
            self.progress
                .bytes_read
                .fetch_add(source.size, Ordering::Relaxed);
        }
        enter(&mut batch, accounts);
        lock(accounts).diagnostics.merge(diagnostics);
    }
}

pub(crate) fn read(source: &Source, take: &mut dyn FnMut(Found)) -> Diagnostics {
    let mut sink = Sink::new(take);
    match Provider::read(source, &mut sink) {
        Ok(()) => sink.diagnostics.files += 1,
        // A file that was removed meanwhile is not an error.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(_) => sink.diagnostics.unreadable(&source.path),
    }
    sink.diagnostics
}

fn enter(batch: &mut Vec<Found>, accounts: &Mutex<Accounts>) {
    let mut accounts = lock(accounts);
    for found in batch.drain(..) {
        accounts.take(found);
    }
}

#[cfg(test)]
#[cfg(repository)] // recordings
mod tests;
