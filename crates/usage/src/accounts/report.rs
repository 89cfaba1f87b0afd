//! Figures by day, model, agent, session or provider.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::SystemTime;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use teamster_api::usage::{Dimension, Figures};

use super::Accounts;
use super::entry::Entry;
use crate::estimates::Estimates;
use crate::money::Money;
use crate::{Key, Provider, Record};

/// Name of a group, if the files have it.
type Name = Option<Arc<str>>;

/// The figures of one day, model, agent, session or provider.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Group {
    /// Name of the group, or `None` if the files do not have it.
    pub name: Option<Arc<str>>,
    /// Figures of the group.
    pub figures: Figures,
    /// The CLIs with figures in the group.
    pub providers: BTreeSet<Provider>,
    /// The models with figures in the group.
    pub models: BTreeSet<Arc<str>>,
    /// The first directory of a session. Absent for other groups.
    pub directory: Option<Arc<str>>,
    /// Time of the first request.
    pub first: SystemTime,
    /// Time of the last request.
    pub last: SystemTime,
}

impl Group {
    /// Creates a group with these figures and times, and without a name.
    pub fn new(figures: Figures, first: SystemTime, last: SystemTime) -> Self {
        Self {
            name: None,
            figures,
            providers: BTreeSet::new(),
            models: BTreeSet::new(),
            directory: None,
            first,
            last,
        }
    }
}

impl Accounts {
    /// Returns the figures by a dimension, in the order of names. The group without a name comes first.
    pub fn by(&self, dimension: Dimension) -> Vec<Group> {
        let groups = self.groups(dimension, false).into_iter();
        groups
            .map(|((name, _), sums)| sums.group(name, dimension))
            .collect()
    }

    /// Returns the figures of each model within the groups of a dimension. The groups have the order of
    /// [`by`](Self::by), each with its name and models.
    pub fn models_by(&self, dimension: Dimension) -> Vec<(Option<Arc<str>>, Vec<Group>)> {
        let mut groups = Vec::<(Option<Arc<str>>, Vec<Group>)>::new();
        for ((name, model), sums) in self.groups(dimension, true) {
            let model = sums.group(model, Dimension::Model);
            match groups.last_mut() {
                Some((last, models)) if *last == name => models.push(model),
                _ => groups.push((name, vec![model])),
            }
        }
        groups
    }

    /// Returns the sums of each group and, with `models`, of each model in it.
    fn groups(&self, dimension: Dimension, models: bool) -> BTreeMap<(Name, Name), Sums> {
        let zone = self.zone.clone().unwrap_or(TimeZone::UTC);
        let mut groups = BTreeMap::<_, Sums>::new();
        let mut estimates = Estimates::new(self.prices.clone());
        self.each(&mut |record, began| {
            let name = match dimension {
                Dimension::Day => {
                    let day = record.at.to_zoned(zone.clone()).date();
                    Some(day.to_string().into())
                }
                Dimension::Week => {
                    let day = record.at.to_zoned(zone.clone()).date();
                    let days = day.weekday().to_monday_zero_offset();
                    let monday = day.checked_sub(jiff::Span::new().days(days));
                    monday.ok().map(|monday| monday.to_string().into())
                }
                Dimension::Month => {
                    let day = record.at.to_zoned(zone.clone()).date();
                    Some(day.strftime("%Y-%m").to_string().into())
                }
                Dimension::Project => record.directory.clone().or_else(|| began.cloned()),
                Dimension::Model => record.model.clone(),
                Dimension::Agent => began.cloned(),
                Dimension::Session => Some(record.session.clone()),
                Dimension::Provider => Some(record.provider.id().into()),
                Dimension::Key => {
                    let session = self.names.get(&record.session);
                    session.and_then(|session| self.keys.get(&session).cloned())
                }
                Dimension::Account => self.account_at(&record.session, record.at),
            };
            let model = models.then(|| record.model.clone()).flatten();
            let sums = groups.entry((name, model)).or_default();
            sums.add(record, began, &mut estimates);
        });
        groups
    }

    /// Returns the figures of all requests together.
    pub fn total(&self) -> Figures {
        let mut sums = Sums::default();
        let mut estimates = Estimates::new(self.prices.clone());
        self.each(&mut |record, began| sums.add(record, began, &mut estimates));
        sums.figures()
    }

    /// Returns whether there is no request in the requested period.
    pub fn is_empty(&self) -> bool {
        let mut empty = true;
        self.each(&mut |_, _| empty = false);
        empty
    }

    /// Calls `each` once with every request in the requested period, in no particular order, and with the first
    /// directory of its session.
    pub fn each(&self, each: &mut dyn FnMut(&Record, Option<&Arc<str>>)) {
        let mut one = |session: Option<u32>, record: &Record| {
            let early = self.since.is_some_and(|since| record.at < since);
            let late = self.until.is_some_and(|until| record.at >= until);
            if !early && !late {
                let began = session.and_then(|session| self.began.get(&session));
                each(record, began.map(|(_, directory)| directory));
            }
        };
        let amended: HashMap<_, _> = self
            .amendments
            .iter()
            .filter_map(|(alias, output)| Some((*self.aliases.get(alias)?, *output)))
            .collect();
        let copied = |(key, alias): &(Key, Key)| self.aliases.contains_key(alias).then_some(*key);
        let copies: HashSet<Key> = self.copies.iter().filter_map(copied).collect();
        let request = |key: &Key, entry: &Entry| {
            let mut record = entry.record(&self.names);
            if let Some(output) = amended.get(key) {
                let output_tokens = &mut record.usage.output_tokens;
                *output_tokens = (*output_tokens).max(Some(*output));
            }
            record
        };
        let mut settled = self.settle(&|take| {
            for (key, entry) in self.keyed.iter() {
                if self.totals.contains_key(&entry.session) && !copies.contains(key) {
                    take(entry.session, &request(key, entry));
                }
            }
        });
        for (key, entry) in self.keyed.iter() {
            if copies.contains(key) {
                continue;
            }
            let mut record = request(key, entry);
            settled.cost(entry.session, &mut record);
            record.cost_elsewhere |= self.is_in_reported_sum(entry.session, record.at);
            one(Some(entry.session), &record);
        }
        for record in settled.rest.iter().chain(self.others()) {
            one(self.names.get(&record.session), record);
        }
    }

    /// Returns whether the cost of a session's request at this time is in a sum that others report.
    fn is_in_reported_sum(&self, session: u32, at: Timestamp) -> bool {
        let at = at.as_millisecond();
        let spans = self.reported_spans.get(&session).into_iter().flatten();
        spans
            .into_iter()
            .any(|(from, until)| (*from..=*until).contains(&at))
    }
}

/// Partial sums, which do not depend on the order of addition.
#[derive(Debug, Default)]
struct Sums {
    figures: Figures,
    reported: Option<Money>,
    estimated: Option<Money>,
    spent: Option<Money>,
    premium: Option<Money>,
    providers: BTreeSet<Provider>,
    models: BTreeSet<Arc<str>>,
    directory: Option<Arc<str>>,
    first: Option<Timestamp>,
    last: Option<Timestamp>,
}

impl Sums {
    fn add(&mut self, record: &Record, began: Option<&Arc<str>>, estimates: &mut Estimates) {
        let figures = &mut self.figures;
        let requests = record.requests;
        figures.requests = figures.requests.saturating_add(requests);
        if record.subagent {
            figures.subagent_requests = figures.subagent_requests.saturating_add(requests);
        }
        figures.usage = figures.usage.plus(record.usage);
        figures.cache_write_1h_tokens =
            plus(figures.cache_write_1h_tokens, record.cache_write_1h_tokens);
        figures.web_searches = plus(figures.web_searches, record.web_searches);
        add(&mut self.reported, record.cost_usd);
        add(&mut self.premium, record.premium_requests);
        let estimate = estimates.of(record);
        if estimate.is_none() {
            // A run with usage had at least one request.
            let used = record.usage.total_tokens().is_some_and(|tokens| tokens > 0);
            let requests = requests.max(u64::from(record.sum && used));
            figures.unpriced_requests = figures.unpriced_requests.saturating_add(requests);
        }
        add(&mut self.estimated, estimate);
        let estimate = estimate.filter(|_| !record.cost_elsewhere);
        add(&mut self.spent, record.cost_usd.or(estimate));
        self.providers.insert(record.provider);
        if let Some(model) = &record.model
            && !self.models.contains(model)
        {
            self.models.insert(model.clone());
        }
        if self.directory.is_none() {
            self.directory = began.cloned();
        }
        self.first = Some(self.first.map_or(record.at, |first| first.min(record.at)));
        self.last = Some(self.last.map_or(record.at, |last| last.max(record.at)));
    }

    fn figures(&self) -> Figures {
        let mut figures = self.figures;
        figures.reported_cost_usd = self.reported.map(Money::usd);
        figures.estimated_cost_usd = self.estimated.map(Money::usd);
        figures.spent_usd = self.spent.map(Money::usd);
        figures.premium_requests = self.premium.map(Money::usd);
        figures
    }

    fn group(self, name: Option<Arc<str>>, dimension: Dimension) -> Group {
        Group {
            name,
            figures: self.figures(),
            providers: self.providers,
            models: self.models,
            directory: match dimension {
                Dimension::Session => self.directory,
                _ => None,
            },
            first: self.first.unwrap_or_default().into(),
            last: self.last.unwrap_or_default().into(),
        }
    }
}

fn plus(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    match (one, other) {
        (Some(a), Some(b)) => Some(a.saturating_add(b)),
        (one, None) | (None, one) => one,
    }
}

fn add(sum: &mut Option<Money>, usd: Option<f64>) {
    if let Some(more) = usd.and_then(Money::of_usd) {
        *sum = Some(sum.unwrap_or_default().plus(more));
    }
}
