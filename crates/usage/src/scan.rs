//! Reading all that the CLIs have left, on all processors.

use std::num::NonZero;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::SystemTime;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use teamster_core::sync::lock;

use crate::prices::PriceList;
use crate::source::{Found, Sink, Source, Sources};
use crate::{Accounts, Diagnostics, Places, Provider};

/// How many records a thread collects before it enters them in the accounts.
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

/// A scan of all that the CLIs have left.
#[derive(Debug, Clone)]
pub struct Scan {
    places: Places,
    providers: Vec<Provider>,
    since: Option<Timestamp>,
    until: Option<Timestamp>,
    zone: TimeZone,
    prices: PriceList,
    threads: Option<NonZero<usize>>,
    progress: Arc<Progress>,
}

impl Scan {
    /// A scan of these places, of all CLIs, of all times, with the days of this machine's time zone.
    pub fn new(places: Places) -> Self {
        Self {
            places,
            providers: Provider::ALL.to_vec(),
            since: None,
            until: None,
            zone: TimeZone::system(),
            prices: PriceList::default(),
            threads: None,
            progress: Arc::default(),
        }
    }

    /// Only these CLIs.
    #[must_use]
    pub fn providers(mut self, providers: impl IntoIterator<Item = Provider>) -> Self {
        self.providers = providers.into_iter().collect();
        self.providers.sort_unstable();
        self.providers.dedup();
        self
    }

    /// Only requests from this time on. Files that were last changed before are not read.
    #[must_use]
    pub fn since(mut self, since: Timestamp) -> Self {
        self.since = Some(since);
        self
    }

    /// Only requests before this time.
    #[must_use]
    pub fn until(mut self, until: Timestamp) -> Self {
        self.until = Some(until);
        self
    }

    /// The zone whose days are meant.
    #[must_use]
    pub fn zone(mut self, zone: TimeZone) -> Self {
        self.zone = zone;
        self
    }

    /// The prices that estimates are made with; those of the table if this is not called.
    #[must_use]
    pub fn prices(mut self, prices: PriceList) -> Self {
        self.prices = prices;
        self
    }

    /// Number of reading threads; default: one for each processor.
    #[must_use]
    pub fn threads(mut self, threads: NonZero<usize>) -> Self {
        self.threads = Some(threads);
        self
    }

    /// How far the scan is, for another thread to look at.
    pub fn progress(&self) -> Arc<Progress> {
        self.progress.clone()
    }

    /// Reads. It blocks until all is read; nothing in the files ends it.
    pub fn run(&self) -> Accounts {
        let mut sources = Sources::new(self.since.map(SystemTime::from));
        for provider in &self.providers {
            provider.sources(&self.places, &mut sources);
        }
        let Sources {
            mut found,
            diagnostics,
            ..
        } = sources;
        // The large ones first, so that none is left for one thread at the end.
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
            for _ in 0..threads {
                scope.spawn(|| self.work(&found, &next, &shared));
            }
        });
        shared.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads one source after the other until none is left.
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

/// Reads a source.
pub(crate) fn read(source: &Source, take: &mut dyn FnMut(Found)) -> Diagnostics {
    let mut sink = Sink::new(take);
    match Provider::read(source, &mut sink) {
        Ok(()) => sink.diagnostics.files += 1,
        // What was removed meanwhile is not there, which is no fault.
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
