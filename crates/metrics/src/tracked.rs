//! Known runs, each of which is counted once.

use std::collections::{HashMap, HashSet, VecDeque};

use serde::Serialize;
use teamster_api::{Change, RunSummary, ViewState};
use teamster_core::time::epoch_ms;
use teamster_core::{CostSource, Usage};

use crate::families::{Families, Values};

/// The number of ended runs that are remembered, so that a late change of one counts nothing. More than a service reports
/// changes of.
const REMEMBERED: usize = 4096;

/// The live runs, and what was counted of them.
#[derive(Debug, Default)]
pub(crate) struct Tracked {
    /// Time of the first snapshot, in milliseconds since the Unix epoch.
    since: Option<u64>,
    live: HashMap<String, Counted>,
    ended: HashSet<String>,
    /// The ids of `ended`, oldest first.
    order: VecDeque<String>,
    agents: Values,
}

/// Figures that were counted of a run.
#[derive(Debug, Default)]
struct Counted {
    agent: String,
    state: String,
    requests: i64,
    usage: Usage,
    cost_usd: f64,
}

impl Tracked {
    /// Counts a change. Returns the runs whose state must be looked up: they are live no longer, and their end was not
    /// reported.
    pub(crate) fn change(&mut self, change: &Change, families: &Families) -> Vec<String> {
        match change {
            Change::Snapshot { runs, .. } => {
                let is_first = self.since.is_none();
                let since = *self.since.get_or_insert_with(epoch_ms);
                for run in runs {
                    // What was before is not counted.
                    if is_first && run.state != ViewState::Ended {
                        self.adopt(run, families);
                    } else if !is_first {
                        self.run(run, since, families);
                    }
                }
                let ids: HashSet<_> = runs.iter().map(|run| &run.info.run_id).collect();
                let missing = self.live.keys().filter(|id| !ids.contains(id));
                missing.cloned().collect()
            }
            Change::Run { run } => {
                let since = self.since.unwrap_or_default();
                self.run(run, since, families);
                Vec::new()
            }
            // One that ended while there are many newer ones goes without a report of its end.
            Change::Gone { run_id } if self.live.contains_key(run_id) => vec![run_id.clone()],
            _ => Vec::new(),
        }
    }

    /// Counts the state of a run.
    pub(crate) fn run(&mut self, run: &RunSummary, since: u64, families: &Families) {
        let id = &run.info.run_id;
        let has_ended = run.state == ViewState::Ended;
        if !self.live.contains_key(id) {
            // A live one is new, however old it is by its machine's clock.
            if self.ended.contains(id) || has_ended && run.info.accepted_at_ms < since {
                return;
            }
            let agent = self.agents.value(&run.info.provider);
            let labels = vec![("agent", agent.clone())];
            families.started.get_or_create(&labels).inc();
            let counted = Counted {
                agent,
                ..Counted::default()
            };
            self.live.insert(id.clone(), counted);
        }
        let Some(counted) = self.live.get_mut(id) else {
            return;
        };
        counted.count(run, families);
        if has_ended {
            counted.leave(families);
            counted.count_end(run, families);
            self.live.remove(id);
            self.remember(id);
        }
    }

    /// Removes a live run that was deleted.
    pub(crate) fn remove(&mut self, id: &str, families: &Families) {
        if let Some(mut counted) = self.live.remove(id) {
            counted.leave(families);
        }
    }

    /// Tracks a run that was live before, of which nothing is counted.
    fn adopt(&mut self, run: &RunSummary, families: &Families) {
        let mut counted = Counted {
            agent: self.agents.value(&run.info.provider),
            usage: run.usage.unwrap_or_default(),
            cost_usd: run.cost_usd.unwrap_or_default(),
            ..Counted::default()
        };
        counted.count(run, families);
        self.live.insert(run.info.run_id.clone(), counted);
    }

    fn remember(&mut self, id: &str) {
        if self.ended.insert(id.to_owned()) {
            self.order.push_back(id.to_owned());
        }
        if self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.ended.remove(&oldest);
        }
    }
}

impl Counted {
    /// Counts what is new in this state of the run.
    fn count(&mut self, run: &RunSummary, families: &Families) {
        let state = name_of(&run.state);
        if state != self.state {
            self.leave_state(families);
            families
                .runs
                .get_or_create(&self.labels("state", &state))
                .inc();
            self.state = state;
        }
        let requests = i64::try_from(run.requests.len()).unwrap_or(i64::MAX);
        if requests != self.requests {
            let labels = vec![("agent", self.agent.clone())];
            let gauge = families.requests.get_or_create(&labels);
            gauge.inc_by(requests - self.requests);
            self.requests = requests;
        }
        let usage = run.usage.unwrap_or_default();
        let known = &mut self.usage;
        for (kind, now, before) in [
            ("input", usage.input_tokens, &mut known.input_tokens),
            ("output", usage.output_tokens, &mut known.output_tokens),
            (
                "cache_read",
                usage.cache_read_tokens,
                &mut known.cache_read_tokens,
            ),
            (
                "cache_write",
                usage.cache_write_tokens,
                &mut known.cache_write_tokens,
            ),
        ] {
            // A figure that was corrected downwards counts again once it is higher than ever.
            let new = now
                .unwrap_or_default()
                .saturating_sub(before.unwrap_or_default());
            if new > 0 {
                let labels = vec![("agent", self.agent.clone()), ("kind", kind.to_owned())];
                families.tokens.get_or_create(&labels).inc_by(new);
                *before = now;
            }
        }
        let cost = run.cost_usd.unwrap_or_default();
        if cost.is_finite() && cost > self.cost_usd {
            let source = name_of(&run.cost_source.unwrap_or(CostSource::Reported));
            let counter = families.cost.get_or_create(&self.labels("source", &source));
            counter.inc_by(cost - self.cost_usd);
            self.cost_usd = cost;
        }
    }

    fn count_end(&self, run: &RunSummary, families: &Families) {
        let status = run
            .status
            .as_ref()
            .map_or_else(|| "unknown".to_owned(), name_of);
        families
            .ended
            .get_or_create(&self.labels("status", &status))
            .inc();
        let labels = vec![("agent", self.agent.clone())];
        if let Some(duration) = run.duration_ms {
            let seconds = std::time::Duration::from_millis(duration).as_secs_f64();
            families.seconds.get_or_create(&labels).inc_by(seconds);
        }
        let retries = run.attempts.unwrap_or(1).saturating_sub(1);
        if retries > 0 {
            families
                .retries
                .get_or_create(&labels)
                .inc_by(retries.into());
        }
    }

    /// Takes the run out of the gauges.
    fn leave(&mut self, families: &Families) {
        self.leave_state(families);
        let labels = vec![("agent", self.agent.clone())];
        if self.requests != 0 {
            families
                .requests
                .get_or_create(&labels)
                .dec_by(self.requests);
            self.requests = 0;
        }
    }

    fn leave_state(&mut self, families: &Families) {
        if !self.state.is_empty() {
            families
                .runs
                .get_or_create(&self.labels("state", &self.state))
                .dec();
            self.state.clear();
        }
    }

    fn labels(&self, name: &'static str, value: &str) -> Vec<(&'static str, String)> {
        vec![("agent", self.agent.clone()), (name, value.to_owned())]
    }
}

/// Returns the name of a value on the wire.
fn name_of(value: &impl Serialize) -> String {
    let json = serde_json::to_value(value).ok();
    let name = json.as_ref().and_then(|json| json.as_str());
    name.unwrap_or("unknown").to_owned()
}
