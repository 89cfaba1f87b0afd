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

/// File of a loop with the usage of its ticks, in the agent's directory.
const TICKS: &str = ".orchestrator/usage.jsonl";

/// Source of a recorded run. If a session has several sources, the first in this order counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Witness {
    /// The history of runs.
    History,
    /// The loop of an agent.
    Loop,
}

/// A run, or a tick of an agent, that is recorded elsewhere than in its CLI's files.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct PastRun {
    /// Id of the run, or the name of its session if that is unknown. Parts of a run have the same id.
    pub id: String,
    /// Source of the record.
    pub witness: Witness,
    /// The CLI.
    pub provider: Provider,
    /// Session of the run.
    pub session: Option<String>,
    /// Conversation key of the run.
    pub key: Option<String>,
    /// Named account of the run (`--account`).
    pub account: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// Working directory of the run.
    pub directory: Option<String>,
    /// Start of the run, or of this part of it.
    pub at: Timestamp,
    /// End of the run. Requests of its session in between are part of its cost. Without it, no requests are.
    pub until: Option<Timestamp>,
    /// Usage of the run.
    pub usage: Option<Usage>,
    /// Cost in USD, as reported by the CLI.
    pub cost_usd: Option<f64>,
    /// Number of requests to models, if known.
    pub requests: Option<u64>,
}

impl PastRun {
    /// Creates a run without the optional fields.
    pub fn new(id: impl Into<String>, witness: Witness, provider: Provider, at: Timestamp) -> Self {
        Self {
            id: id.into(),
            witness,
            provider,
            session: None,
            key: None,
            account: None,
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
    /// Runs that are not in the CLIs' files. They count as recorded.
    pub only_there: u64,
    /// Runs whose tokens come from the CLIs' files and whose cost comes from the record.
    pub with_cost: u64,
}

impl Accounts {
    /// Adds recorded runs, so that no usage counts twice.
    ///
    /// For a session in the CLIs' files, the tokens come from the files. The cost of its runs is added only if the
    /// files have none. For any other session both come from the record, and for a run of a named account that began after the
    /// last record of its session: the account continues the session in files of its own.
    pub fn join(&mut self, runs: impl IntoIterator<Item = PastRun>) -> Joined {
        let (mut keys, mut logins) = (Vec::new(), Vec::new());
        let (known, unknown): (Vec<_>, Vec<_>) = runs
            .into_iter()
            .inspect(|run| {
                let session = run.session.as_ref().unwrap_or(&run.id);
                if let Some(key) = &run.key {
                    keys.push((session.clone(), key.clone()));
                }
                if let Some(account) = &run.account {
                    logins.push((session.clone(), (run.at, Arc::from(account.as_str()))));
                }
            })
            .partition(|run| self.has(run));
        let with_cost = self.costs(known);
        let joined = Joined {
            with_cost: self.add_runs(with_cost),
            only_there: self.add_runs(first_witness(unknown)),
        };
        // Done last, because a session is known only once it has a record.
        for (session, key) in keys {
            if let Some(session) = self.names.get(&session) {
                self.keys.insert(session, key.into());
            }
        }
        for (session, account) in logins {
            if let Some(session) = self.names.get(&session) {
                self.logins.entry(session).or_default().push(account);
            }
        }
        self.logins.values_mut().for_each(|of| of.sort());
        joined
    }

    /// Returns whether the CLIs' files have the tokens of a run.
    fn has(&self, run: &PastRun) -> bool {
        let Some(session) = run.session.as_deref().and_then(|it| self.names.get(it)) else {
            return false;
        };
        // Of these, an account in another home continues a copy of the session.
        let may_be_elsewhere =
            run.account.is_some() && matches!(run.provider, Provider::Claude | Provider::Codex);
        let ended = self.ended.get(&session).filter(|_| may_be_elsewhere);
        ended.is_none_or(|ended| *ended >= run.at)
    }

    /// Returns the named account with which a session was used at this time.
    pub(super) fn account_at(&self, session: &str, at: Timestamp) -> Option<Arc<str>> {
        let accounts = self.logins.get(&self.names.get(session)?)?;
        let later = accounts.partition_point(|(from, _)| *from <= at);
        let (_, name) = accounts.get(later.saturating_sub(1))?;
        Some(name.clone())
    }

    /// Adds records of runs. Returns the number of runs.
    fn add_runs(&mut self, records: Vec<(String, Record)>) -> u64 {
        let mut runs = HashSet::new();
        for (run, record) in records {
            runs.insert(run);
            self.add(record);
        }
        runs.len() as u64
    }

    /// Returns cost records of runs with a known session, together with the runs' ids.
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
        // A loop records the end of a tick. The tick's requests are those since the end of the previous one.
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

    /// Returns the costs of ticks that the loops of known agents have recorded in the directories where their sessions
    /// began.
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

/// The used fields of a line of `usage.jsonl`.
#[derive(Deserialize)]
struct Tick {
    ts: String,
    session_id: String,
    model: Option<String>,
    cost_usd: Option<f64>,
    cost_source: Option<CostSource>,
}

/// Calls `each` with all ticks that an agent's loop has recorded. An unreadable file has none.
fn ticks_of(directory: &str, each: &mut dyn FnMut(Tick) -> Option<()>) {
    let path = Path::new(directory).join(TICKS);
    // The path may lead to another kind of file, such as a pipe.
    if !fs::metadata(&path).is_ok_and(|metadata| metadata.is_file()) {
        return;
    }
    let mut nothing = |_| {};
    let mut line = |line: lines::Line<'_>, _: &mut Sink<'_>| {
        // Lines of other programs have no cost, and possibly no session.
        if let Ok(tick) = serde_json::from_slice(line.bytes) {
            each(tick);
        }
    };
    // An unreadable file only loses costs: the tokens are counted anyway.
    let _ = lines::read(&path, 0, &mut line, &mut Sink::new(&mut nothing));
}

/// Returns the records of runs that are not in the CLIs' files, together with the runs' ids.
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

/// Keeps only the runs of each session's first source.
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

/// Returns a model's name as in a session's files. The name in a run may include the size of the context window.
fn as_the_files_write(name: Option<&str>, models: &BTreeSet<Arc<str>>) -> Option<Arc<str>> {
    let plain = |name: &str| name.split('[').next().unwrap_or_default().to_owned();
    let same = |model: &&Arc<str>| name.is_some_and(|name| plain(name) == plain(model));
    let only = (models.len() == 1).then(|| models.first()).flatten();
    models.iter().find(same).or(only).cloned()
}

#[cfg(test)]
mod tests;
