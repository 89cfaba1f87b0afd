//! What changes in the runs of an owner.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use async_nats::jetstream::Message;
use async_nats::jetstream::consumer::DeliverPolicy;
use async_stream::try_stream;
use futures_core::stream::BoxStream;
use teamster_api::{Change, RunSummary, ServiceError, ViewState};

use super::FleetRuns;
use crate::frame::Frame;
use crate::names::{LOG, RUNS, RunKey, logs_of, records_of};
use crate::record::Record;
use crate::records::record_of;

/// The number of ended runs in a snapshot.
const NEWEST: usize = 50;

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
            let mut all = Vec::new();
            while records.pending > 0 {
                let Some(message) = records.next().await? else { break };
                if let Some((key, found)) = record_of(&message)
                    && let Some(record) = found.record
                {
                    all.push((key, found.seen, record));
                }
            }
            all.sort_by_key(|(key, _, record)| std::cmp::Reverse((record.times.queued, key.run.clone())));
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
            loop {
                let news = tokio::select! {
                    message = records.next() => message.map(News::Record),
                    message = logs.next() => message.map(News::Log),
                };
                let changed = match news? {
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
                    News::Record(None) | News::Log(None) => break,
                };
                let Some(record) = known.records.get(&changed.run).cloned() else { continue };
                let mut now = self.summary_of(&changed, record).await;
                if now.live.is_some() {
                    Arc::make_mut(&mut now).live = None;
                }
                if known.shown.get(&changed.run) != Some(&now) {
                    known.shown.insert(changed.run, now.clone());
                    yield Change::Run { run: now };
                }
            }
            Err(ServiceError::unreachable("the fleet's server has ended the stream of changes"))?;
        })
    }
}

/// A message about a run.
enum News {
    Record(Option<Message>),
    Log(Option<Message>),
}

/// What a reader of changes knows.
#[derive(Default)]
struct Known {
    records: HashMap<String, Record>,
    shown: BTreeMap<String, Arc<RunSummary>>,
    /// States in the logs of live runs.
    states: HashMap<String, String>,
}

impl Known {
    /// Returns whether the state of a run is not the one that was seen last.
    fn has_other_state(&mut self, key: &RunKey, state: String) -> bool {
        let before = self.states.insert(key.run.clone(), state.clone());
        let has_ended = (self.shown.get(&key.run)).is_some_and(|run| run.state == ViewState::Ended);
        !has_ended && before != Some(state)
    }

    fn forget(&mut self, key: &RunKey) -> bool {
        self.states.remove(&key.run);
        self.records.remove(&key.run);
        self.shown.remove(&key.run).is_some()
    }
}
