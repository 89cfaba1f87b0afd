//! Usage by request, each counted once.

mod entry;
mod history;
mod report;
mod requests;
mod totals;

use std::collections::{HashMap, hash_map};
use std::sync::Arc;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::prices::PriceList;
use crate::source::Found;
use crate::{Diagnostics, Key, Record};
use entry::{Entry, Names};
use requests::{ByKey, Requests};

pub use history::{Joined, PastRun, Witness};
pub use report::{Dimension, Figures, Group};
pub(crate) use totals::{ModelTotals, Totals};

/// Usage by request, each counted once, independent of the order of its records.
///
/// A request that has a [`Key`] takes 65 bytes here, and with what hash tables keep free 75 to 150: 75 to
/// 150 MB for a million requests.
#[derive(Debug, Clone, Default)]
pub struct Accounts {
    names: Names,
    keyed: Requests,
    sums: ByKey<Record>,
    loose: Vec<Record>,
    /// Which request an alias means.
    aliases: ByKey<Key>,
    /// The output tokens of requests that are known by an alias.
    amendments: ByKey<u64>,
    /// Requests of which only copies were found, and the alias that a line of the original has.
    copies: Vec<(Key, Key)>,
    /// Totals reported by the processes of each session.
    totals: HashMap<u32, Vec<Totals>>,
    /// Of each session, in milliseconds since 1970-01-01 UTC, when requests were made whose cost is part of
    /// a sum that others report.
    reported_spans: HashMap<u32, Vec<(i64, i64)>>,
    /// Sessions that began earlier are only read in part.
    mark: Option<Timestamp>,
    /// The directory in which each session began, and when that was recorded.
    began: HashMap<u32, (Timestamp, Arc<str>)>,
    /// The key of the conversation that each session belongs to.
    keys: HashMap<u32, Arc<str>>,
    pub(crate) since: Option<Timestamp>,
    pub(crate) until: Option<Timestamp>,
    pub(crate) zone: Option<TimeZone>,
    pub(crate) prices: PriceList,
    pub(crate) diagnostics: Diagnostics,
}

impl Accounts {
    /// Accounts without a record, of requests from `since` on and before `until`; days are those of `zone`.
    pub fn new(since: Option<Timestamp>, until: Option<Timestamp>, zone: TimeZone) -> Self {
        Self {
            since,
            until,
            zone: Some(zone),
            ..Self::default()
        }
    }

    /// Takes what a reader found.
    pub(crate) fn take(&mut self, found: Found) {
        match found {
            Found::Record(record) => self.add(record),
            Found::Amendment(alias, output_tokens) => self.amend(alias, output_tokens),
            Found::Copy(key, alias) => self.copies.push((key, alias)),
            Found::Totals(totals) => self.add_totals(*totals),
        }
    }

    /// Takes a record.
    pub fn add(&mut self, record: Record) {
        let session = self.names.index(&record.session);
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
                hash_map::Entry::Vacant(place) => drop(place.insert(record)),
                // Of two the same one, whichever came first.
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
            // As above.
            let means = self.aliases.entry(alias).or_insert(key);
            *means = (*means).min(key);
        }
        self.keyed.add(key, entry, &self.names);
    }

    /// The records that are no entries: sums, and what counts each time.
    fn others(&self) -> impl Iterator<Item = &Record> {
        self.sums.values().chain(&self.loose)
    }

    /// Records that a request known by an alias had at least this many output tokens. It creates no
    /// request: without one of this alias it has no effect.
    pub fn amend(&mut self, alias: Key, output_tokens: u64) {
        let most = self.amendments.entry(alias).or_default();
        *most = (*most).max(output_tokens);
    }

    /// Whether a session has a record here, of any time.
    pub fn knows_session(&self, session: &str) -> bool {
        self.names.get(session).is_some()
    }

    /// The prices that estimates are made with.
    pub fn prices(&self) -> &PriceList {
        &self.prices
    }

    /// Statistics and problems of reading.
    pub fn diagnostics(&self) -> &Diagnostics {
        &self.diagnostics
    }
}
