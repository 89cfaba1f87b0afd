//! The figures for Prometheus.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use teamster_api::{MachineService, RunService};
use teamster_metrics::Metrics;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

/// Time for which the first request waits for the runs that there are. With the next one, less than the 10 s for which
/// Prometheus waits.
const LOAD_LIMIT: Duration = Duration::from_secs(4);
/// Time for which a request waits for the state of the fleet.
const FLEET_LIMIT: Duration = Duration::from_secs(4);
/// Time for which the state of the fleet is kept.
const FRESH: Duration = Duration::from_secs(2);

/// Interval at which figures that are also used elsewhere have the state of the fleet.
const REFRESH: Duration = Duration::from_secs(15);

/// The figures of a server's runs, followed from the first request on: without one, nothing is watched, unless the figures
/// are also used elsewhere.
pub(crate) struct Figures {
    metrics: Metrics,
    is_shared: bool,
    runs: Arc<dyn RunService>,
    machine: Arc<dyn MachineService>,
    /// Cancelled when the server ends.
    ending: CancellationToken,
    is_followed: AtomicBool,
    is_kept_up: AtomicBool,
    /// The last request for the state of the fleet.
    asked: tokio::sync::Mutex<Option<Instant>>,
}

impl Figures {
    pub(crate) fn new(
        shared: Option<Metrics>,
        runs: Arc<dyn RunService>,
        machine: Arc<dyn MachineService>,
        ending: CancellationToken,
    ) -> Self {
        Self {
            is_shared: shared.is_some(),
            metrics: shared.unwrap_or_else(|| Metrics::new(env!("CARGO_PKG_VERSION"))),
            runs,
            machine,
            ending,
            is_followed: AtomicBool::new(false),
            is_kept_up: AtomicBool::new(false),
            asked: tokio::sync::Mutex::default(),
        }
    }

    /// Keeps the figures up until the server ends, if they are also used elsewhere.
    pub(crate) async fn keep_up(&self) {
        if !self.is_shared || self.is_kept_up.swap(true, Ordering::Relaxed) {
            return;
        }
        self.follow();
        let mut has_ended = false;
        while !has_ended {
            self.ask_fleet().await;
            has_ended = timeout(REFRESH, self.ending.cancelled()).await.is_ok();
        }
    }

    /// Follows the runs, from the first call on.
    fn follow(&self) {
        if !self.is_followed.swap(true, Ordering::Relaxed) {
            let (metrics, runs) = (self.metrics.clone(), self.runs.clone());
            let ending = self.ending.clone();
            tokio::spawn(async move {
                tokio::select! {
                    () = metrics.follow(&*runs) => {}
                    () = ending.cancelled() => {}
                }
            });
        }
    }

    /// Returns the figures in the text format of Prometheus.
    pub(crate) async fn text(&self) -> String {
        self.follow();
        // Without them, the figures say that they are old.
        let _ = timeout(LOAD_LIMIT, self.metrics.loaded()).await;
        self.ask_fleet().await;
        self.metrics.text()
    }

    async fn ask_fleet(&self) {
        let mut asked = self.asked.lock().await;
        if asked.is_some_and(|at| at.elapsed() < FRESH) {
            return;
        }
        let status = timeout(FLEET_LIMIT, self.machine.fleet()).await;
        let status = status.ok().and_then(Result::ok).flatten();
        self.metrics.set_fleet(status.as_ref());
        *asked = Some(Instant::now());
    }
}
