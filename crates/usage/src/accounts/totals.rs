//! Totals that a session's processes report, in addition to the requests in its files.
//!
//! Claude writes such a sum at the end of each process. It has all usage of the session, including that without a line,
//! such as a summary (`/compact`) or a web search. A sum includes the earlier ones of the session, and a fork's sum
//! includes its parent's. So the difference between two sums counts, minus the requests in the time between them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use jiff::Timestamp;
use teamster_core::Usage;

use super::Accounts;
use crate::estimates::Estimates;
use crate::money::Money;
use crate::prices::plain_name;
use crate::{Key, Provider, Record};

/// Allowed running time of a process before the mark of a meter, in milliseconds. The process is started after the
/// mark, and takes some time to end after its last line.
const SLACK: i64 = 5_000;

/// Sums that a process reports of its session.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Totals {
    pub(crate) session: Arc<str>,
    /// Working directory of the session.
    pub(crate) directory: Option<Arc<str>>,
    /// Time of the last line before the sums in the file.
    pub(crate) at: Timestamp,
    /// Time of the first line after the sums.
    pub(crate) until: Option<Timestamp>,
    /// Start of the sums, in milliseconds since 1970-01-01 UTC. It is the same for all processes of a session and for
    /// its forks.
    pub(crate) start: i64,
    /// Total running time of those processes, in milliseconds.
    pub(crate) duration: i64,
    /// Time of the first line of the file, if it was read from its start.
    pub(crate) began: Option<Timestamp>,
    /// True if the file begins with copies of another session's lines.
    pub(crate) forked: bool,
    /// The last request of which the file has such a copy.
    pub(crate) copied: Option<Key>,
    /// The sums of each model.
    pub(crate) models: BTreeMap<Arc<str>, ModelTotals>,
}

/// The sums of a model.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct ModelTotals {
    /// Input, output, cache reads, cache writes, cache writes for an hour, and web searches.
    pub(crate) figures: [u64; 6],
    /// Cost in USD.
    pub(crate) cost: Option<f64>,
}

impl ModelTotals {
    fn of(record: &Record) -> Self {
        let usage = &record.usage;
        let figures = [
            usage.input_tokens,
            usage.output_tokens,
            usage.cache_read_tokens,
            usage.cache_write_tokens,
            record.cache_write_1h_tokens,
            record.web_searches,
        ];
        Self {
            figures: figures.map(Option::unwrap_or_default),
            cost: None,
        }
    }

    fn plus(mut self, other: &Self) -> Self {
        for (mine, theirs) in self.figures.iter_mut().zip(other.figures) {
            *mine = mine.saturating_add(theirs);
        }
        self.cost = match (self.cost, other.cost) {
            (Some(a), Some(b)) => Some(a + b),
            (one, None) | (None, one) => one,
        };
        self
    }

    /// Returns the difference to another sum. No figure is negative.
    fn minus(mut self, other: &Self) -> Self {
        for (mine, theirs) in self.figures.iter_mut().zip(other.figures) {
            *mine = mine.saturating_sub(theirs);
        }
        self.cost = self
            .cost
            .map(|cost| (cost - other.cost.unwrap_or(0.0)).max(0.0));
        self
    }

    /// Returns whether no figure is larger than that of another sum. Web searches are not compared, because those of an
    /// answer may be reported twice.
    fn fits(&self, other: &Self) -> bool {
        let mut pairs = self.figures.iter().zip(other.figures).take(5);
        pairs.all(|(mine, theirs)| *mine <= theirs)
    }

    fn is_zero(&self) -> bool {
        self.figures.iter().all(|figure| *figure == 0)
    }
}

/// The known requests of a period.
#[derive(Debug, Clone, Default)]
struct Known {
    figures: ModelTotals,
    estimated: Money,
    names: BTreeSet<Arc<str>>,
}

impl Known {
    fn add(&mut self, record: &Record, estimate: Money) {
        self.figures = self.figures.plus(&ModelTotals::of(record));
        self.estimated = self.estimated.plus(estimate);
        self.names.extend(record.model.clone());
    }

    fn merge(&mut self, other: &Self) {
        self.figures = self.figures.plus(&other.figures);
        self.estimated = self.estimated.plus(other.estimated);
        self.names.extend(other.names.iter().cloned());
    }
}

/// The period between two sums of a session, in milliseconds since 1970-01-01 UTC.
#[derive(Debug)]
struct Span {
    from: i64,
    until: i64,
    /// Earliest start of the process that reported the second sum.
    process: i64,
    /// Totals of this period, by the models' plain names.
    reported: BTreeMap<Arc<str>, ModelTotals>,
    /// The models' names as written in the sums.
    written: HashMap<Arc<str>, Arc<str>>,
    /// Requests of this period, and those since `process`.
    known: HashMap<Arc<str>, [Known; 2]>,
    /// Ratio of the reported cost to the estimates of the requests, with the time from which it applies.
    factors: HashMap<Arc<str>, (i64, f64)>,
    /// Session of the usage that has no request.
    session: Arc<str>,
    directory: Option<Arc<str>>,
    at: Timestamp,
}

/// Names of the requests' models, the model's name in the sums, and its sums.
type Reported = (Vec<Arc<str>>, Option<Arc<str>>, ModelTotals);

/// The sum that another one continues.
enum Base<'a> {
    /// The previous sum is unknown, and so is the difference to it.
    Unknown,
    /// There is no previous sum, because the session began.
    Nothing,
    /// The last sum of the session, or of a fork's parent.
    Sum(&'a Totals),
}

/// Callback for a request and the index of its session.
type Take<'a> = dyn FnMut(u32, &Record) + 'a;

/// Usage in sums that is not in requests.
#[derive(Debug, Default)]
pub(super) struct Settled {
    spans: HashMap<u32, Vec<Span>>,
    /// Usage that no request of the files has.
    pub(super) rest: Vec<Record>,
    plain: HashMap<Arc<str>, Arc<str>>,
    estimates: Estimates,
}

impl Accounts {
    /// Adds the totals that a process reports of its session.
    pub(super) fn add_totals(&mut self, totals: Totals) {
        let session = self.names.index(&totals.session);
        let known = self.totals.entry(session).or_default();
        let same =
            |other: &&mut Totals| (other.start, &other.models) == (totals.start, &totals.models);
        // A copy of the file has the same totals.
        let Some(same) = known.iter_mut().find(same) else {
            known.push(totals);
            return;
        };
        let first = |one: Option<Timestamp>, other| one.into_iter().chain(other).min();
        same.at = same.at.min(totals.at);
        same.until = first(same.until, totals.until);
        same.began = first(same.began, totals.began);
        same.forked |= totals.forked;
        same.copied = same.copied.max(totals.copied);
        same.duration = same.duration.min(totals.duration);
    }

    /// Sets the time before which the files are not read.
    pub(crate) fn set_mark(&mut self, mark: Timestamp) {
        self.mark = Some(mark);
    }

    /// Returns the usage in sums that is not in requests. `requests` calls its argument with each request.
    pub(super) fn settle(&self, requests: &dyn Fn(&mut Take<'_>)) -> Settled {
        let mut settled = Settled {
            estimates: Estimates::new(self.prices.clone()),
            ..Settled::default()
        };
        if self.totals.is_empty() {
            return settled;
        }
        for session in self.totals.keys() {
            let spans = self.spans(*session);
            settled.spans.insert(*session, spans);
        }
        requests(&mut |session, record| settled.know(session, record));
        let mut spans = std::mem::take(&mut settled.spans);
        for span in spans.values_mut().flatten() {
            settled.close(span);
        }
        settled.spans = spans;
        settled
    }

    /// Returns the periods between the sums of a session.
    fn spans(&self, session: u32) -> Vec<Span> {
        let mut all: Vec<&Totals> = self.totals.get(&session).into_iter().flatten().collect();
        let size = |totals: &Totals| -> u64 {
            let models = totals.models.values();
            models.fold(0, |sum, model| {
                model.figures.iter().fold(sum, |a, b| a.saturating_add(*b))
            })
        };
        all.sort_by_key(|totals| (totals.at, size(totals), totals.start));
        let mut spans: Vec<Span> = Vec::new();
        let mut before = HashMap::<i64, &Totals>::new();
        for (index, totals) in all.iter().enumerate() {
            let next = all.get(index + 1).map(|next| next.at.as_millisecond());
            let after = totals.until.map(Timestamp::as_millisecond);
            let until = after.into_iter().chain(next).min().unwrap_or(i64::MAX);
            let from = spans.last().map_or(i64::MIN, |span| span.until);
            let base = match before.insert(totals.start, totals) {
                Some(base) => Base::Sum(base),
                None => self.base(session, totals),
            };
            let at = totals.at.as_millisecond();
            let (base, known) = match base {
                Base::Unknown => (None, false),
                Base::Nothing => (None, true),
                Base::Sum(base) => (Some(base), true),
            };
            let earlier = base.map_or(0, |base| base.duration);
            let process = at.saturating_sub(totals.duration.saturating_sub(earlier).max(0));
            let outside = self
                .mark
                .is_some_and(|mark| process < mark.as_millisecond() - SLACK);
            let mut reported = BTreeMap::<Arc<str>, ModelTotals>::new();
            let mut written = HashMap::<Arc<str>, Arc<str>>::new();
            if known && !outside {
                for (name, sums) in &totals.models {
                    let earlier = base.and_then(|base| base.models.get(name));
                    let more = sums.minus(&earlier.copied().unwrap_or_default());
                    let plain = Arc::<str>::from(plain_name(name));
                    written.entry(plain.clone()).or_insert_with(|| name.clone());
                    let sums = reported.entry(plain).or_default();
                    *sums = sums.plus(&more);
                }
            }
            spans.push(Span {
                // Usage before the first process began is in no sum.
                from: from.max(totals.start),
                until: until.max(from),
                process,
                reported,
                written,
                known: HashMap::new(),
                factors: HashMap::new(),
                session: totals.session.clone(),
                directory: totals.directory.clone(),
                at: totals.at,
            });
        }
        spans
    }

    /// Returns the sum that the first sum of a session continues.
    fn base(&self, session: u32, totals: &Totals) -> Base<'_> {
        let Some(began) = totals.began else {
            return Base::Unknown;
        };
        let parent = totals.copied.and_then(|key| {
            let entry = self.keyed.get(key)?;
            (!entry.copied() && entry.session != session).then_some(entry.session)
        });
        if totals.copied.is_some() && parent.is_none() {
            return Base::Unknown;
        }
        let others = self.totals.iter().filter(|(other, _)| match parent {
            Some(parent) => **other == parent,
            None => **other != session,
        });
        let all = others.flat_map(|(_, all)| all);
        let earlier = all.filter(|other| {
            let within = |(name, sums): (&Arc<str>, &ModelTotals)| {
                totals.models.get(name).is_some_and(|more| sums.fits(more))
            };
            other.start == totals.start && other.at <= began && other.models.iter().all(within)
        });
        let last = earlier.max_by_key(|other| (other.at, other.session.clone()));
        if last.is_none() && totals.forked {
            return Base::Unknown;
        }
        last.map_or(Base::Nothing, Base::Sum)
    }
}

impl Settled {
    /// Returns the plain name of a model.
    fn plain(&mut self, model: Option<&Arc<str>>) -> Arc<str> {
        let Some(model) = model else {
            return "".into();
        };
        if let Some(plain) = self.plain.get(model) {
            return plain.clone();
        }
        let plain = Arc::<str>::from(plain_name(model));
        self.plain.insert(model.clone(), plain.clone());
        plain
    }

    fn estimate(&mut self, record: &Record) -> Money {
        let estimate = self.estimates.of(record);
        estimate.and_then(Money::of_usd).unwrap_or_default()
    }

    /// Adds a request to its period.
    fn know(&mut self, session: u32, record: &Record) {
        let at = record.at.as_millisecond();
        if !self.spans.contains_key(&session) || record.cost_usd.is_some() {
            return;
        }
        let (plain, estimate) = (self.plain(record.model.as_ref()), self.estimate(record));
        let Some(span) = find(self.spans.get_mut(&session), at) else {
            return;
        };
        let [all, late] = span.known.entry(plain).or_default();
        all.add(record, estimate);
        if at >= span.process {
            late.add(record, estimate);
        }
    }

    /// Computes the usage of a period that is in no request, and the cost factors of its requests.
    fn close(&mut self, span: &mut Span) {
        let mut reported = std::mem::take(&mut span.reported);
        let known = &span.known;
        // A service may report a model under another name than the requested one.
        let strange: Vec<Arc<str>> = known
            .keys()
            .filter(|name| !reported.contains_key(*name))
            .cloned()
            .collect();
        let unused: Vec<Arc<str>> = reported
            .iter()
            .filter(|(name, sums)| !known.contains_key(*name) && !sums.is_zero())
            .map(|(name, _)| name.clone())
            .collect();
        let mut groups: Vec<Reported> = Vec::new();
        if !strange.is_empty() && !unused.is_empty() {
            let mut pool = ModelTotals::default();
            for name in &unused {
                pool = pool.plus(&reported.remove(name).unwrap_or_default());
            }
            groups.push((strange, None, pool));
        }
        groups.extend(reported.into_iter().map(|(name, sums)| {
            let written = span.written.get(&name).cloned();
            (vec![name], written, sums)
        }));
        for (names, written, sums) in groups {
            let mut of = [Known::default(), Known::default()];
            for name in &names {
                for (sum, known) in of.iter_mut().zip(known.get(name).into_iter().flatten()) {
                    sum.merge(known);
                }
            }
            let [all, late] = of;
            // The usage of a killed process is in no sum.
            let killed = !all.figures.fits(&sums) && late.figures.fits(&sums);
            let (from, known) = if killed {
                (span.process, late)
            } else {
                (i64::MIN, all)
            };
            let mut rest = Record::new(Provider::Claude, span.session.clone(), span.at);
            rest.model = known.names.first().cloned().or(written);
            rest.directory.clone_from(&span.directory);
            (rest.requests, rest.sum) = (0, true);
            let more = sums.minus(&known.figures);
            if !more.is_zero() {
                let figure = |index: usize| (more.figures[index] > 0).then(|| more.figures[index]);
                rest.usage = Usage::default()
                    .input_tokens(figure(0))
                    .output_tokens(figure(1))
                    .cache_read_tokens(figure(2))
                    .cache_write_tokens(figure(3));
                rest.cache_write_1h_tokens = figure(4);
                rest.web_searches = figure(5);
            }
            if let Some(cost) = sums.cost {
                rest.cost_elsewhere = true;
                let estimate = self.estimate(&rest);
                let all = known.estimated.plus(estimate).usd();
                if all > 0.0 {
                    let factor = cost / all;
                    for name in names {
                        span.factors.insert(name, (from, factor));
                    }
                    rest.cost_usd = (estimate != Money::default()).then(|| estimate.usd() * factor);
                } else {
                    rest.cost_usd = (cost > 0.0).then_some(cost);
                    for name in names {
                        span.factors.insert(name, (from, 0.0));
                    }
                }
            }
            if !more.is_zero() || rest.cost_usd.is_some() {
                self.rest.push(rest);
            }
        }
        span.known.clear();
    }

    /// Sets the cost of a request according to the sums.
    pub(super) fn cost(&mut self, session: u32, record: &mut Record) {
        if !self.spans.contains_key(&session) || record.cost_usd.is_some() {
            return;
        }
        let plain = self.plain(record.model.as_ref());
        let at = record.at.as_millisecond();
        let Some(span) = find(self.spans.get_mut(&session), at) else {
            return;
        };
        let Some((from, factor)) = span.factors.get(&plain).copied() else {
            return;
        };
        if at < from {
            return;
        }
        match self.estimates.of(record) {
            Some(estimate) if factor > 0.0 => record.cost_usd = Some(estimate * factor),
            _ => record.cost_elsewhere = true,
        }
    }
}

/// Returns the period of a time.
fn find(spans: Option<&mut Vec<Span>>, at: i64) -> Option<&mut Span> {
    let spans = spans?;
    let index = spans.partition_point(|span| span.until <= at);
    let span = spans.get_mut(index)?;
    (at >= span.from).then_some(span)
}
