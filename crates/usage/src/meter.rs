//! Usage of a session since a mark.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use jiff::Timestamp;
use teamster_api::usage::{Diagnostics, Dimension};
use teamster_core::Usage;

use crate::scan;
use crate::source::{Found, Sources};
use crate::{Accounts, Locations, Provider};
use teamster_prices::PriceList;

/// Usage of one model since a mark.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ModelTick {
    /// Name of the model as written by the CLI.
    pub model: Option<Arc<str>>,
    /// Tokens.
    pub usage: Usage,
    /// Number of requests.
    pub requests: u64,
    /// Cost in USD, as reported in the CLI's file.
    pub reported_cost_usd: Option<f64>,
    /// Cost in USD by the price table. Absent if a request has no price.
    pub estimated_cost_usd: Option<f64>,
    /// Premium requests as counted by Copilot.
    pub premium_requests: Option<f64>,
}

impl ModelTick {
    /// Creates the usage of an unnamed model, without costs.
    pub fn new(usage: Usage, requests: u64) -> Self {
        Self {
            model: None,
            usage,
            requests,
            reported_cost_usd: None,
            estimated_cost_usd: None,
            premium_requests: None,
        }
    }
}

/// Measures the usage of a session since a mark, such as the start of an agent's tick.
///
/// It reads only files of that session and its sub-agents that have changed since the mark. For Claude and Codex it
/// reads only the part after the mark, for others the whole file.
#[derive(Debug, Clone)]
pub struct TickMeter {
    provider: Provider,
    locations: Locations,
    prices: PriceList,
    at: Timestamp,
    /// Sizes of the files at the mark, in bytes.
    lengths: HashMap<PathBuf, u64>,
}

impl TickMeter {
    /// Creates a meter for sessions of a CLI, with the mark set to now.
    pub fn new(provider: Provider, locations: Locations) -> Self {
        Self {
            provider,
            locations,
            prices: PriceList::default(),
            at: Timestamp::now(),
            lengths: HashMap::new(),
        }
    }

    /// Sets the prices for estimates.
    #[must_use]
    pub fn prices(mut self, prices: PriceList) -> Self {
        self.prices = prices;
        self
    }

    /// Sets the mark to now. `session` is the session that will be resumed, if any. Only its files are checked.
    pub fn mark(&mut self, session: Option<&str>) {
        self.mark_at(session, Timestamp::now());
    }

    /// Sets the mark to a time in the past, such as the start of a turn that another process has executed.
    #[must_use]
    pub fn since(mut self, at: impl Into<SystemTime>) -> Self {
        self.at = scan::timestamp(at.into());
        self.lengths = HashMap::new();
        self
    }

    fn mark_at(&mut self, session: Option<&str>, at: Timestamp) {
        self.at = at;
        self.lengths = match session {
            Some(session) if self.provider.traits().reads_on => {
                let mut sources = Sources::new(None);
                self.provider
                    .of_session(&self.locations, session, &mut sources);
                let length = |source: crate::source::Source| (source.path, source.size);
                sources.found.into_iter().map(length).collect()
            }
            _ => HashMap::new(),
        };
    }

    /// Returns the usage since the mark by model, in the order of names.
    ///
    /// `session` is the session of the turn. After a `/clear` it differs from that at the mark. Without one, all
    /// sessions of the CLI are read, including those of other agents.
    pub fn read(&self, session: Option<&str>) -> Vec<ModelTick> {
        self.read_with_diagnostics(session).0
    }

    /// Reads the usage as [`read`](Self::read) does, and returns the problems of reading too.
    pub fn read_with_diagnostics(&self, session: Option<&str>) -> (Vec<ModelTick>, Diagnostics) {
        let mut sources = Sources::new(Some(SystemTime::from(self.at)));
        match session {
            Some(session) => self
                .provider
                .of_session(&self.locations, session, &mut sources),
            None => self.provider.sources(&self.locations, &mut sources),
        }
        let mut diagnostics = sources.diagnostics;
        // Times in the files are in milliseconds.
        let at = Timestamp::from_millisecond(self.at.as_millisecond()).unwrap_or(self.at);
        let mut accounts = Accounts::new(Some(at), None, jiff::tz::TimeZone::UTC);
        accounts.prices = self.prices.clone();
        accounts.set_mark(at);
        for mut source in sources.found {
            source.start = self.lengths.get(&source.path).copied().unwrap_or(0);
            diagnostics.merge(scan::read(&source, &mut |found: Found| match found {
                // A file may have several sessions.
                Found::Record(record) if session.is_some_and(|id| *record.session != *id) => {}
                Found::Totals(totals) if session.is_some_and(|id| *totals.session != *id) => {}
                found => accounts.take(found),
            }));
        }
        let mut models = BTreeMap::new();
        diagnostics.merge(std::mem::take(&mut accounts.diagnostics));
        for group in accounts.by(Dimension::Model) {
            let figures = group.figures;
            models.insert(
                group.name.clone(),
                ModelTick {
                    model: group.name,
                    usage: figures.usage,
                    requests: figures.requests,
                    reported_cost_usd: figures.reported_cost_usd,
                    estimated_cost_usd: figures
                        .estimated_cost_usd
                        .filter(|_| figures.unpriced_requests == 0),
                    premium_requests: figures.premium_requests,
                },
            );
        }
        (models.into_values().collect(), diagnostics)
    }
}

#[cfg(test)]
#[cfg(repository)] // recordings
mod tests;
