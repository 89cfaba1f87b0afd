//! The figures, and what keeps them up.

use std::collections::{BTreeMap, BTreeSet};
use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use prometheus_client::encoding::prometheus_text;
use teamster_api::{Change, FleetStatus, ProblemCode, RunService};
use teamster_core::sync::lock;
use teamster_core::time::epoch_ms;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval, sleep};

use crate::families::{Families, Values};
use crate::figures::{Figure, Figures};
use crate::tracked::Tracked;

/// The media type of [`Metrics::text`].
pub const CONTENT_TYPE: &str = prometheus_text::CONTENT_TYPE;

/// Pause before the changes are followed again after an error.
const RETRY: Duration = Duration::from_secs(1);
/// Interval at which the ends of runs that could not be looked up are looked up again.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Figures of runs, as text for Prometheus and as data. Clones share them.
#[derive(Debug, Clone)]
pub struct Metrics(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    figures: Figures,
    families: Families,
    tracked: Mutex<Tracked>,
    names: Mutex<Names>,
    loaded: watch::Sender<bool>,
}

/// Values of labels of a fleet.
#[derive(Debug, Default)]
struct Names {
    pools: Values,
    agents: Values,
}

/// The figures of a worker.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkerFigures {
    /// Number of runs at once.
    pub slots: u64,
    /// Number of runs that it carries out.
    pub running: u64,
    /// It takes no new runs.
    pub draining: bool,
    /// Number of log entries of its runs that are not in the fleet yet.
    pub uncopied_entries: u64,
}

/// The figures of one pool.
#[derive(Default)]
struct Pool {
    workers: u64,
    draining: u64,
    slots: u64,
    used: u64,
    queued: u64,
    oldest_at: Option<u64>,
}

impl Metrics {
    /// Creates figures of a program of this version, without runs.
    pub fn new(version: &str) -> Self {
        let families = Families::default();
        let mut figures = Figures::default();
        families.add_to(&mut figures, version);
        Self(Arc::new(Inner {
            figures,
            families,
            tracked: Mutex::default(),
            names: Mutex::default(),
            loaded: watch::Sender::new(false),
        }))
    }

    /// Counts the runs of a service and their changes, until the future is dropped. What was before the first call is not
    /// counted; after an error, it continues with what has changed meanwhile.
    pub async fn follow(&self, runs: &dyn RunService) {
        let mut missing = BTreeSet::new();
        loop {
            let mut changes = runs.changes();
            let mut looks = interval(LOOK_EVERY);
            looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                tokio::select! {
                    change = poll_fn(|context| changes.as_mut().poll_next(context)) => {
                        let Some(Ok(change)) = change else { break };
                        let gone = lock(&self.0.tracked).change(&change, &self.0.families);
                        if matches!(change, Change::Snapshot { .. }) {
                            self.0.families.is_current.set(1);
                            self.0.loaded.send_replace(true);
                        }
                        if gone.is_empty() {
                            continue;
                        }
                        missing.extend(gone);
                    }
                    _ = looks.tick(), if !missing.is_empty() => {}
                }
                self.look_up(runs, &mut missing).await;
            }
            self.0.families.is_current.set(0);
            sleep(RETRY).await;
        }
    }

    /// Looks up runs whose end was not reported. Those of which nothing can be learned stay.
    async fn look_up(&self, runs: &dyn RunService, missing: &mut BTreeSet<String>) {
        for id in std::mem::take(missing) {
            match runs.outline(&id).await {
                Ok(view) => {
                    let mut tracked = lock(&self.0.tracked);
                    tracked.run(&view.summary, 0, &self.0.families);
                }
                Err(error) if error.code == Some(ProblemCode::RunNotFound) => {
                    lock(&self.0.tracked).remove(&id, &self.0.families);
                }
                Err(_) => {
                    missing.insert(id);
                }
            }
        }
    }

    /// Waits until [`follow`](Self::follow) has the runs that there are.
    pub async fn loaded(&self) {
        // The sender is in `self`.
        let _ = self.0.loaded.subscribe().wait_for(|loaded| *loaded).await;
    }

    /// Sets the figures of the fleet; `None` removes them.
    pub fn set_fleet(&self, status: Option<&FleetStatus>) {
        let families = &self.0.families.fleet;
        let mut names = lock(&self.0.names);
        families.clear();
        let Some(status) = status else {
            return;
        };
        let mut pools: BTreeMap<String, Pool> = BTreeMap::new();
        for worker in &status.workers {
            for pool in &worker.pools {
                let pool = pools.entry(names.pools.value(pool)).or_default();
                if worker.draining {
                    pool.draining += 1;
                } else {
                    pool.workers += 1;
                    pool.slots += worker.slots;
                    pool.used += worker.running.min(worker.slots);
                }
            }
        }
        let for_machines = status.queues.iter().filter(|queue| queue.machine.is_some());
        let for_machines: u64 = for_machines.map(|queue| queue.waiting).sum();
        families
            .queued_for_machines
            .get_or_create(&Vec::new())
            .set(gauge(for_machines));
        for queue in &status.queues {
            let Some(pool) = &queue.pool else { continue };
            let pool = pools.entry(names.pools.value(pool)).or_default();
            pool.queued += queue.waiting;
            pool.oldest_at = pool.oldest_at.into_iter().chain(queue.oldest_at).min();
        }
        for (name, pool) in pools {
            let waits = pool
                .oldest_at
                .map_or(0, |at| epoch_ms().saturating_sub(at) / 1000);
            for (family, value) in [
                (&families.workers, pool.workers),
                (&families.draining, pool.draining),
                (&families.slots, pool.slots),
                (&families.used, pool.used),
                (&families.queued, pool.queued),
                (&families.oldest, waits),
            ] {
                let labels = vec![("pool", name.clone())];
                family.get_or_create(&labels).set(gauge(value));
            }
        }
        for hold in &status.holds {
            let labels = vec![("agent", names.agents.value(&hold.agent))];
            families.holds.get_or_create(&labels).inc();
        }
    }

    /// Sets the figures of this worker.
    pub fn set_worker(&self, figures: WorkerFigures) {
        let families = &self.0.families.worker;
        for (family, value) in [
            (&families.slots, figures.slots),
            (&families.used, figures.running),
            (&families.draining, figures.draining.into()),
            (&families.uncopied, figures.uncopied_entries),
        ] {
            family.get_or_create(&Vec::new()).set(gauge(value));
        }
    }

    /// Returns all figures, in the text format of Prometheus.
    pub fn text(&self) -> String {
        // While a fleet is set, its figures are incomplete.
        let _complete = lock(&self.0.names);
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = prometheus_text::encode(&mut text, self.0.figures.registry());
        text
    }

    /// Returns all figures as data.
    pub fn figures(&self) -> Vec<Figure> {
        // As for the text.
        let _complete = lock(&self.0.names);
        self.0.figures.current()
    }
}

fn gauge(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
