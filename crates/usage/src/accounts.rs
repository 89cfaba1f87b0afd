//! Usage by request. Each request is counted once.

mod entry;
mod history;
mod report;
mod requests;
mod totals;

use std::collections::{HashMap, hash_map};
use std::sync::Arc;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::source::Found;
use crate::{Key, Record};
use entry::{Entry, Names};
use requests::{ByKey, Requests};
use teamster_api::usage::Diagnostics;
use teamster_prices::PriceList;

pub use history::{Joined, PastRun, Witness};
pub use report::Group;
pub(crate) use totals::{ModelTotals, Totals};

/// Usage by request. Each request is counted once, independent of the order of its records.
///
/// A request with a [`Key`] takes 65 bytes of memory, and 75 to 150 with the free space of hash tables. So a million
/// requests take 75 to 150 MB.
#[derive(Debug, Clone, Default)]
pub struct Accounts {
    names: Names,
    keyed: Requests,
    sums: ByKey<Record>,
    loose: Vec<Record>,
    /// Keys of requests by alias.
    aliases: ByKey<Key>,
    /// Output tokens of requests by alias.
    amendments: ByKey<u64>,
    /// Copies of requests, with the alias that a line of the original has.
    copies: Vec<(Key, Key)>,
    /// Totals that the processes of each session report.
    totals: HashMap<u32, Vec<Totals>>,
    /// Periods of each session, in milliseconds since 1970-01-01 UTC, whose requests have their cost in a sum that
    /// others report.
    reported_spans: HashMap<u32, Vec<(i64, i64)>>,
    /// Time before which sessions are read only in part.
    mark: Option<Timestamp>,
    /// The first directory of each session, with its time.
    began: HashMap<u32, (Timestamp, Arc<str>)>,
    /// The time of the last record of each session.
    ended: HashMap<u32, Timestamp>,
    /// Conversation key of each session.
    keys: HashMap<u32, Arc<str>>,
    /// Named accounts of each session, with the times from which on they were used, in their order.
    logins: HashMap<u32, Vec<(Timestamp, Arc<str>)>>,
    pub(crate) since: Option<Timestamp>,
    pub(crate) until: Option<Timestamp>,
    pub(crate) zone: Option<TimeZone>,
    pub(crate) prices: PriceList,
    pub(crate) diagnostics: Diagnostics,
}

impl Accounts {
    /// Creates empty accounts for requests from `since` on and before `until`. Days are those of `zone`.
    #[doc(hidden)]
    pub fn new(since: Option<Timestamp>, until: Option<Timestamp>, zone: TimeZone) -> Self {
        Self {
            since,
            until,
            zone: Some(zone),
            ..Self::default()
        }
    }

    /// Adds an item that a reader found.
    pub(crate) fn take(&mut self, found: Found) {
        match found {
            Found::Record(record) => self.add(record),
            Found::Amendment(alias, output_tokens) => self.amend(alias, output_tokens),
            Found::Copy(key, alias) => self.copies.push((key, alias)),
            Found::Totals(totals) => self.add_totals(*totals),
        }
    }

    /// Adds a record.
    pub fn add(&mut self, record: Record) {
        let session = self.names.index(&record.session);
        let ended = self.ended.entry(session).or_insert(record.at);
        *ended = (*ended).max(record.at);
        if let Some(directory) = &record.directory {
            let found = (record.at, directory.clone());
            self.began
                .entry(session)
                .and_modify(|first| {
                    if found < *first {
                        *first = found.clone();
                    }
                })
                .or_insert(found);
        }
        let Some(key) = record.key else {
            self.loose.push(record);
            return;
        };
        if record.sum {
            match self.sums.entry(key) {
                hash_map::Entry::Vacant(vacant) => drop(vacant.insert(record)),
                // Select the same one of two in any order.
                hash_map::Entry::Occupied(mut known) => {
                    let order = |sum: &Record| (sum.session.clone(), sum.requests);
                    if order(&record) < order(known.get()) {
                        known.insert(record);
                    }
                }
            }
            return;
        }
        let Some(entry) = Entry::of(&record, session, &mut self.names) else {
            self.diagnostics.malformed_lines += 1;
            return;
        };
        if let Some(alias) = record.alias {
            // Select the same key in any order.
            let means = self.aliases.entry(alias).or_insert(key);
            *means = (*means).min(key);
        }
        self.keyed.add(key, entry, &self.names);
    }

    /// Returns the records that are not entries: sums, and records without a key.
    fn others(&self) -> impl Iterator<Item = &Record> {
        self.sums.values().chain(&self.loose)
    }

    /// Records that the request with this alias had at least this many output tokens. It has no effect without such a
    /// request.
    pub(crate) fn amend(&mut self, alias: Key, output_tokens: u64) {
        let most = self.amendments.entry(alias).or_default();
        *most = (*most).max(output_tokens);
    }

    /// Returns the prices for estimates.
    pub fn prices(&self) -> &PriceList {
        &self.prices
    }

    /// Returns statistics and problems of reading.
    pub fn diagnostics(&self) -> &Diagnostics {
        &self.diagnostics
    }
}
