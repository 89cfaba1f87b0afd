//! Runs recorded elsewhere: the history of runs, and the ledgers of agents' loops.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs;
use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use serde::Deserialize;
use teamster_core::{CostSource, Usage};

use super::Accounts;
use crate::lines;
use crate::source::Sink;
use crate::{Provider, Record};

/// Where a loop writes down what its ticks used, in the agent's directory.
const TICKS: &str = ".orchestrator/usage.jsonl";

/// The source of an account of a run. Of two with the same session, the earlier one here counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Witness {
    /// The history of runs.
    History,
    /// The loop of an agent.
    Loop,
}

/// A run, or a tick of an agent, in an account that is not its CLI's.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct PastRun {
    /// Its id; the name of its session if that is unknown. Parts of a run have the same.
    pub id: String,
    /// Its source.
    pub witness: Witness,
    /// The CLI.
    pub provider: Provider,
    /// The session in which it was.
    pub session: Option<String>,
    /// The key of the conversation that it belongs to.
    pub key: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// The directory in which it was.
    pub directory: Option<String>,
    /// When it began.
    pub at: Timestamp,
    /// When it ended. Requests of its session until then are part of its cost; without it, none are.
    pub until: Option<Timestamp>,
    /// Its usage.
    pub usage: Option<Usage>,
    /// Its cost in USD, as reported by the CLI.
    pub cost_usd: Option<f64>,
    /// Requests to models, as far as they are known.
    pub requests: Option<u64>,
}

impl PastRun {
    /// A run of which nothing more is known.
    pub fn new(id: impl Into<String>, witness: Witness, provider: Provider, at: Timestamp) -> Self {
        Self {
            id: id.into(),
            witness,
            provider,
            session: None,
            key: None,
            model: None,
            directory: None,
            at,
            until: None,
            usage: None,
            cost_usd: None,
            requests: None,
        }
    }
}

/// Result of adding recorded runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Joined {
    /// Runs of which the CLIs' files know nothing: they count as in the witness's account.
    pub only_there: u64,
    /// Runs whose tokens are in the CLIs' files and whose cost is in the witness's account.
    pub with_cost: u64,
}

impl Accounts {
    /// Takes in what others have kept account of, so that nothing counts twice.
    ///
    /// Of a session that the CLIs' files know, the tokens are theirs; only the cost of the runs is taken,
    /// unless the files have one themselves. Of any other, both are the witness's.
    pub fn join(&mut self, runs: impl IntoIterator<Item = PastRun>) -> Joined {
        let mut keys = Vec::new();
        let (known, unknown): (Vec<_>, Vec<_>) = runs
            .into_iter()
            .inspect(|run| {
                if let Some(key) = &run.key {
                    let session = run.session.as_ref().unwrap_or(&run.id);
                    keys.push((session.clone(), key.clone()));
                }
            })
            .partition(|run| {
                let session = run.session.as_deref();
                session.is_some_and(|session| self.knows_session(session))
            });
        let with_cost = self.costs(known);
        let joined = Joined {
            with_cost: self.add_runs(with_cost),
            only_there: self.add_runs(first_witness(unknown)),
        };
        for (session, key) in keys {
            // Only now: a session is known once it has a record.
            if let Some(session) = self.names.get(&session) {
                self.keys.insert(session, key.into());
            }
        }
        joined
    }

    /// Adds records of runs; returns the number of runs.
    fn add_runs(&mut self, records: Vec<(String, Record)>) -> u64 {
        let mut runs = HashSet::new();
        for (run, record) in records {
            runs.insert(run);
            self.add(record);
        }
        runs.len() as u64
    }

    /// The costs of runs whose session is known, with the runs' ids.
    fn costs(&mut self, runs: Vec<PastRun>) -> Vec<(String, Record)> {
        let runs: Vec<_> = runs
            .into_iter()
            .filter(|run| run.cost_usd.is_some())
            .collect();
        let sessions: BTreeSet<&str> = runs.iter().filter_map(|r| r.session.as_deref()).collect();
        let mut models = HashMap::<Arc<str>, BTreeSet<Arc<str>>>::new();
        let mut counted = HashSet::<Arc<str>>::new();
        if !sessions.is_empty() {
            let mut look = |record: &Record| {
                if !sessions.contains(&*record.session) {
                    return;
                }
                if record.cost_usd.is_some() {
                    counted.insert(record.session.clone());
                }
                if let Some(model) = &record.model {
                    let models = models.entry(record.session.clone()).or_default();
                    models.insert(model.clone());
                }
            };
            self.keyed
                .values()
                .for_each(|entry| look(&entry.record(&self.names)));
            self.others().for_each(&mut look);
            for totals in self.totals.values().flatten() {
                if totals.models.values().any(|model| model.cost.is_some()) {
                    counted.insert(totals.session.clone());
                }
            }
        }
        // A loop writes when a tick ended: its requests are those since the previous one.
        let mut ends = HashMap::<Arc<str>, BTreeSet<Timestamp>>::new();
        for run in runs.iter().filter(|run| run.witness == Witness::Loop) {
            let session = run.session.as_deref().map(Arc::from);
            ends.entry(session.unwrap_or_default())
                .or_default()
                .insert(run.at);
        }
        let mut records = Vec::new();
        for run in first(runs) {
            let Some(session) = run.session.as_deref().map(Arc::<str>::from) else {
                continue;
            };
            if counted.contains(&session) {
                continue;
            }
            let span = match run.witness {
                Witness::History => run.until.map(|until| (run.at.as_millisecond(), until)),
                Witness::Loop => {
                    let mut before = ends
                        .get(&session)
                        .into_iter()
                        .flat_map(|e| e.range(..run.at));
                    let from = before
                        .next_back()
                        .map_or(i64::MIN, |end| end.as_millisecond() + 1);
                    Some((from, run.at))
                }
            };
            if let (Some((from, until)), Some(index)) = (span, self.names.get(&session)) {
                let spans = self.reported_spans.entry(index).or_default();
                spans.push((from, until.as_millisecond()));
            }
            let mut record = Record::new(run.provider, session, run.at);
            record.model = models
                .get(&record.session)
                .and_then(|models| as_the_files_write(run.model.as_deref(), models))
                .or_else(|| run.model.as_deref().map(Arc::from));
            record.cost_usd = run.cost_usd;
            record.requests = 0;
            record.sum = true;
            records.push((run.id, record));
        }
        records
    }

    /// Costs of ticks as recorded by the loops of the known agents, in
    /// the directories in which their sessions began.
    pub fn ticks(&self) -> Vec<PastRun> {
        let directories: BTreeSet<_> = self.began.values().map(|(_, d)| d.clone()).collect();
        let keyed = self
            .keyed
            .values()
            .map(|entry| (entry.session, entry.provider));
        let others = self.others().filter_map(|record| {
            let session = self.names.get(&record.session)?;
            Some((session, record.provider))
        });
        let providers: HashMap<u32, Provider> = keyed.chain(others).collect();
        let mut runs = Vec::new();
        for directory in directories {
            ticks_of(&directory, &mut |tick: Tick| {
                let session = self.names.get(&tick.session_id)?;
                let id = format!("{directory}/{TICKS} {}", runs.len());
                let at = tick.ts.parse().ok()?;
                let mut run = PastRun::new(id, Witness::Loop, *providers.get(&session)?, at);
                run.cost_usd = Some(tick.cost_usd?);
                run.session = Some(tick.session_id);
                run.model = tick.model;
                (tick.cost_source == Some(CostSource::Reported)).then(|| runs.push(run))
            });
        }
        runs
    }
}

/// A line of `usage.jsonl`, as far as it is used here.
#[derive(Deserialize)]
struct Tick {
    ts: String,
    session_id: String,
    model: Option<String>,
    cost_usd: Option<f64>,
    cost_source: Option<CostSource>,
}

/// Calls `each` with all ticks that an agent's loop has written down. A file that cannot be read has none.
fn ticks_of(directory: &str, each: &mut dyn FnMut(Tick) -> Option<()>) {
    let path = Path::new(directory).join(TICKS);
    // There may be anything at that path, such as a pipe.
    if !fs::metadata(&path).is_ok_and(|metadata| metadata.is_file()) {
        return;
    }
    let mut nothing = |_| {};
    let mut line = |line: lines::Line<'_>, _: &mut Sink<'_>| {
        // What other programs write there has no cost, and no session where that is not known.
        if let Ok(tick) = serde_json::from_slice(line.bytes) {
            each(tick);
        }
    };
    // An unreadable cost is none: the tokens are counted all the same.
    let _ = lines::read(&path, 0, &mut line, &mut Sink::new(&mut nothing));
}

/// The runs of which only a witness knows, with their ids.
fn first_witness(runs: Vec<PastRun>) -> Vec<(String, Record)> {
    let records = first(runs).into_iter().filter_map(|run| {
        let usage = run.usage.unwrap_or_default();
        if usage.is_empty() && run.cost_usd.is_none() {
            return None;
        }
        let session = run.session.as_ref().unwrap_or(&run.id);
        let mut record = Record::new(run.provider, session.as_str().into(), run.at);
        record.model = run.model.map(Into::into);
        record.directory = run.directory.map(Into::into);
        record.usage = usage;
        record.cost_usd = run.cost_usd;
        record.requests = run.requests.unwrap_or(0);
        record.sum = true;
        Some((run.id, record))
    });
    records.collect()
}

/// Of the runs of each session those of its first witness.
fn first(mut runs: Vec<PastRun>) -> Vec<PastRun> {
    let mut witness = HashMap::<String, Witness>::new();
    for run in &runs {
        if let Some(session) = &run.session {
            let first = witness.entry(session.clone()).or_insert(run.witness);
            *first = (*first).min(run.witness);
        }
    }
    runs.retain(|run| match &run.session {
        Some(session) => witness.get(session) == Some(&run.witness),
        None => true,
    });
    runs
}

/// A model's name as a session's files have it: a run may know it with the size of its window.
fn as_the_files_write(name: Option<&str>, models: &BTreeSet<Arc<str>>) -> Option<Arc<str>> {
    let plain = |name: &str| name.split('[').next().unwrap_or_default().to_owned();
    let same = |model: &&Arc<str>| name.is_some_and(|name| plain(name) == plain(model));
    let only = (models.len() == 1).then(|| models.first()).flatten();
    models.iter().find(same).or(only).cloned()
}

#[cfg(test)]
mod tests;
