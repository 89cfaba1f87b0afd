//! The stream of changes of an owner's runs.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::Message;
use async_nats::jetstream::consumer::DeliverPolicy;
use async_stream::try_stream;
use futures_core::stream::BoxStream;
use teamster_api::{Change, RunSummary, ServiceError, ViewState};
use tokio::time::{MissedTickBehavior, interval};

use super::FleetRuns;
use super::list::newest_first;
use crate::frame::Frame;
use crate::names::{LOG, PRESENCES, RUNS, RunKey, WORKERS, logs_of, records_of};
use crate::protocol::{Seen, State};
use crate::record::Record;
use crate::records::{is_marker, record_of};

/// The number of ended runs in a snapshot.
const NEWEST: usize = 50;
/// Time after which it is looked again why runs wait: workers, limits and refusals change that, and no record.
const REASONS: Duration = Duration::from_secs(5);

impl FleetRuns {
    pub(super) fn all_changes(self) -> BoxStream<'static, Result<Change, ServiceError>> {
        Box::pin(try_stream! {
            let owner = self.fleet.owner.clone();
            // Before the records are read, so that nothing is missed.
            let mut logs = self.fleet.messages(LOG, &logs_of(&owner), DeliverPolicy::New, true).await?;
            let mut records = self
                .fleet
                .messages(RUNS, &records_of(&owner), DeliverPolicy::LastPerSubject, false)
                .await?;
            let mut workers = self
                .fleet
                .messages(WORKERS, &format!("{PRESENCES}*"), DeliverPolicy::New, true)
                .await?;
            let mut absent: HashSet<String> = HashSet::new();
            let mut all = newest_first(records.last_of_each(record_of).await?);
            let mut ended = 0;
            all.retain(|(_, _, record)| {
                ended += usize::from(record.state.is_final());
                !record.state.is_final() || ended <= NEWEST
            });
            let runs = self.summaries(&all).await;
            let mut known = Known::default();
            for (run, (key, _, record)) in runs.iter().zip(all) {
                known.shown.insert(key.run.clone(), run.clone());
                known.records.insert(key.run, record);
            }
            yield Change::Snapshot { runs, agents: None };
            let mut reasons = interval(REASONS);
            reasons.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                let news = tokio::select! {
                    message = records.next() => message.map(News::Record),
                    message = logs.next() => message.map(News::Log),
                    message = workers.next() => message.map(News::Worker),
                    _ = reasons.tick() => Ok(News::Time),
                };
                let changed = match news? {
                    News::Time => {
                        for run in self.other_reasons(&mut known).await {
                            yield Change::Run { run };
                        }
                        continue;
                    }
                    News::Worker(Some(message)) => {
                        let Some(worker) = message.subject.strip_prefix(PRESENCES) else {
                            continue;
                        };
                        // Not each report, but only that there are none any more, and the first one after that.
                        let is_other = if is_marker(message.headers.as_ref()) {
                            absent.insert(worker.to_owned())
                        } else {
                            absent.remove(worker)
                        };
                        if is_other {
                            for run in self.of_worker(&mut known, worker).await {
                                yield Change::Run { run };
                            }
                        }
                        continue;
                    }
                    News::Record(Some(message)) => {
                        let Some((key, found)) = record_of(&message) else { continue };
                        let Some(record) = found.record else {
                            if known.forget(&key) {
                                yield Change::Gone { run_id: key.run };
                            }
                            continue;
                        };
                        known.records.insert(key.run.clone(), record);
                        key
                    }
                    News::Log(Some(message)) => {
                        let headers = message.headers.clone().unwrap_or_default();
                        let (Some(key), Some(frame)) = (
                            RunKey::of_log(&message.subject),
                            Frame::read(&headers, &message.payload),
                        ) else {
                            continue;
                        };
                        if !known.has_other_state(&key, frame.state) {
                            continue;
                        }
                        key
                    }
                    News::Record(None) | News::Log(None) | News::Worker(None) => break,
                };
                let Some(record) = known.records.get(&changed.run).cloned() else { continue };
                let now = self.summaries(&[(changed.clone(), Seen::NOTHING, record)]).await;
                let Some(now) = now.into_iter().next() else { continue };
                if let Some(now) = known.show(now) {
                    let has_ended = now.state == ViewState::Ended;
                    yield Change::Run { run: now };
                    if has_ended {
                        for run_id in known.forget_oldest() {
                            yield Change::Gone { run_id };
                        }
                    }
                }
            }
            Err(ServiceError::unreachable("the fleet's server has ended the stream of changes"))?;
        })
    }
}

impl FleetRuns {
    /// Returns those claimed and started runs of a worker that are shown otherwise now.
    async fn of_worker(&self, known: &mut Known, worker: &str) -> Vec<Arc<RunSummary>> {
        let taken: Vec<_> = (known.records.iter())
            .filter(|(_, record)| {
                matches!(record.state, State::Claimed | State::Started)
                    && record.worker.as_deref() == Some(worker)
            })
            .map(|(run, record)| (self.key(run), Seen::NOTHING, record.clone()))
            .collect();
        let now = self.summaries(&taken).await.into_iter();
        now.filter_map(|now| known.show(now)).collect()
    }

    /// Returns those queued runs that wait for another reason now.
    async fn other_reasons(&self, known: &mut Known) -> Vec<Arc<RunSummary>> {
        // Among them are claimed ones whose worker does not report.
        let shown = known.shown.values();
        let shown = shown.filter(|run| run.state == ViewState::Queued);
        let mut queued: Vec<_> = shown.cloned().collect();
        if queued.is_empty() {
            return queued;
        }
        // Without an answer, the next time shows it.
        let Ok(workers) = self.fleet.known().await else {
            return Vec::new();
        };
        for run in &mut queued {
            let key = self.key(&run.info.run_id);
            if let Some(record) = known.records.get(&key.run) {
                Arc::make_mut(run).queue = Some(workers.why(&key, record));
            }
        }
        queued
            .into_iter()
            .filter_map(|run| known.show(run))
            .collect()
    }
}

/// A message about a run or a worker.
enum News {
    Record(Option<Message>),
    Log(Option<Message>),
    Worker(Option<Message>),
    /// It is time to look why runs wait.
    Time,
}

/// State of a reader of changes.
#[derive(Default)]
struct Known {
    records: HashMap<String, Record>,
    shown: BTreeMap<String, Arc<RunSummary>>,
    /// States in the logs of live runs.
    states: HashMap<String, String>,
}

impl Known {
    /// Keeps how a run is shown: without its live status. Returns it if that is new.
    fn show(&mut self, mut now: Arc<RunSummary>) -> Option<Arc<RunSummary>> {
        if now.live.is_some() {
            Arc::make_mut(&mut now).live = None;
        }
        let run = &now.info.run_id;
        if self.shown.get(run) == Some(&now) {
            return None;
        }
        self.shown.insert(run.clone(), now.clone());
        Some(now)
    }

    /// Returns whether the state of a run is not the one that was seen last.
    fn has_other_state(&mut self, key: &RunKey, state: String) -> bool {
        // Of one that is not among the newest.
        if !self.records.contains_key(&key.run) {
            return false;
        }
        let before = self.states.insert(key.run.clone(), state.clone());
        let has_ended = (self.shown.get(&key.run)).is_some_and(|run| run.state == ViewState::Ended);
        !has_ended && before != Some(state)
    }

    fn forget(&mut self, key: &RunKey) -> bool {
        self.states.remove(&key.run);
        self.records.remove(&key.run);
        self.shown.remove(&key.run).is_some()
    }

    /// Forgets the ended runs that are no longer among the newest. Returns their ids.
    fn forget_oldest(&mut self) -> Vec<String> {
        let mut ended: Vec<_> = (self.shown.iter())
            .filter(|(_, run)| run.state == ViewState::Ended)
            .map(|(id, run)| (run.info.accepted_at_ms, id.clone()))
            .collect();
        ended.sort_unstable();
        ended.truncate(ended.len().saturating_sub(NEWEST));
        for (_, id) in &ended {
            self.states.remove(id);
            self.records.remove(id);
            self.shown.remove(id);
        }
        ended.into_iter().map(|(_, id)| id).collect()
    }
}

#[cfg(test)]
mod tests {
    use teamster_api::{RunInfo, RunSpec, Spec};

    use super::*;

    #[test]
    fn a_reader_keeps_live_runs_and_the_newest_ended_ones() {
        let mut known = Known::default();
        let spec = Spec::from(RunSpec::new("claude", "x"));
        let mut gone = Vec::new();
        for number in 0..60_u64 {
            let id = format!("r{number:02}");
            let mut run = RunSummary::new(RunInfo::new(&*id, "claude"), ViewState::Ended);
            run.info.accepted_at_ms = number;
            if number == 0 {
                run.state = ViewState::Running;
            }
            known.shown.insert(id.clone(), Arc::new(run));
            known.records.insert(id, Record::new("default", &spec));
            gone.extend(known.forget_oldest());
        }
        let expected: Vec<_> = (1..10).map(|number| format!("r{number:02}")).collect();
        assert_eq!(gone, expected);
        assert_eq!((known.shown.len(), known.records.len()), (51, 51));
        assert!(known.records.contains_key("r00"));
        // A late message about its log keeps nothing of it.
        assert!(!known.has_other_state(&RunKey::new("ann", "r01"), "ended".to_owned()));
        assert!(known.states.is_empty());
    }
}
