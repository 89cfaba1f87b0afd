//! Usage of a session since a mark.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use jiff::Timestamp;
use teamster_core::Usage;

use crate::prices::PriceList;
use crate::scan;
use crate::source::{Found, Sources};
use crate::{Accounts, Diagnostics, Dimension, Places, Provider};

/// Usage of one model since a mark.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ModelTick {
    /// The model as the CLI writes it.
    pub model: Option<Arc<str>>,
    /// Tokens.
    pub usage: Usage,
    /// Requests to it.
    pub requests: u64,
    /// Cost reported in the CLI's file, in USD.
    pub reported_cost_usd: Option<f64>,
    /// Cost by the price table in USD; absent if it lacks the model of a request.
    pub estimated_cost_usd: Option<f64>,
    /// Premium requests that Copilot counts.
    pub premium_requests: Option<f64>,
}

impl ModelTick {
    /// These tokens of an unnamed model, without costs.
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

/// Measures what a session has used since a mark, such as the start of an agent's tick.
///
/// Only the files of that session and of its sub-agents are read that have changed since the mark: of Claude
/// and Codex what was written after it, of the others the whole file.
#[derive(Debug, Clone)]
pub struct TickMeter {
    provider: Provider,
    places: Places,
    prices: PriceList,
    at: Timestamp,
    /// How long the files were at the mark.
    lengths: HashMap<PathBuf, u64>,
}

impl TickMeter {
    /// A meter for sessions of a CLI, with a mark at once.
    pub fn new(provider: Provider, places: Places) -> Self {
        Self {
            provider,
            places,
            prices: PriceList::default(),
            at: Timestamp::now(),
            lengths: HashMap::new(),
        }
    }

    /// Makes estimates with these prices.
    #[must_use]
    pub fn prices(mut self, prices: PriceList) -> Self {
        self.prices = prices;
        self
    }

    /// Sets the mark to now. `session` is the one to be resumed, if any; no other's files are
    /// looked at.
    pub fn mark(&mut self, session: Option<&str>) {
        self.mark_at(session, Timestamp::now());
    }

    /// Sets the mark to a moment of the past, such as the beginning of a turn that another process has
    /// played.
    #[must_use]
    pub fn since(mut self, at: Timestamp) -> Self {
        self.at = at;
        self.lengths = HashMap::new();
        self
    }

    fn mark_at(&mut self, session: Option<&str>, at: Timestamp) {
        self.at = at;
        self.lengths = match session {
            Some(session) if self.provider.traits().reads_on => {
                let mut sources = Sources::new(None);
                self.provider
                    .of_session(&self.places, session, &mut sources);
                let length = |source: crate::source::Source| (source.path, source.size);
                sources.found.into_iter().map(length).collect()
            }
            _ => HashMap::new(),
        };
    }

    /// Usage since the mark by model, in the order of their names. `session` is the one that
    /// the turn was in: after a `/clear` it differs from that at the mark. Without one, all sessions
    /// of the CLI are looked at, other agents' too.
    pub fn read(&self, session: Option<&str>) -> Vec<ModelTick> {
        self.read_with_diagnostics(session).0
    }

    /// The same, and what was wrong with the files.
    pub fn read_with_diagnostics(&self, session: Option<&str>) -> (Vec<ModelTick>, Diagnostics) {
        let mut sources = Sources::new(Some(SystemTime::from(self.at)));
        match session {
            Some(session) => self
                .provider
                .of_session(&self.places, session, &mut sources),
            None => self.provider.sources(&self.places, &mut sources),
        }
        let mut diagnostics = sources.diagnostics;
        // The files' times are in milliseconds.
        let at = Timestamp::from_millisecond(self.at.as_millisecond()).unwrap_or(self.at);
        let mut accounts = Accounts::new(Some(at), None, jiff::tz::TimeZone::UTC);
        accounts.prices = self.prices.clone();
        accounts.set_mark(at);
        for mut source in sources.found {
            source.start = self.lengths.get(&source.path).copied().unwrap_or(0);
            diagnostics.merge(scan::read(&source, &mut |found: Found| match found {
                // A file may be of several sessions.
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
#[cfg(test)]
#[cfg(repository)] // recordings
mod whole_files;
