//! The figures of a worker.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use teamster_api::{ProblemCode, ServiceError};
use teamster_core::sync::lock;
use teamster_metrics::{Metrics, WorkerFigures};
use tokio::net::TcpListener;
use tokio::time::{sleep, timeout};

use super::Shared;
use crate::names::RunKey;

/// Time for which a request waits for the runs that there are.
const LOAD_LIMIT: Duration = Duration::from_secs(10);
/// Interval at which figures that are also used elsewhere have those of the worker.
const REFRESH: Duration = Duration::from_secs(15);

/// Listens for requests, if the worker is to have figures.
pub(super) async fn listen(shared: &Shared) -> Result<Option<TcpListener>, ServiceError> {
    let Some(address) = shared.config.metrics else {
        return Ok(None);
    };
    match TcpListener::bind(address).await {
        Ok(listener) => Ok(Some(listener)),
        Err(error) => {
            let message = format!("cannot listen on {address} for metrics: {error}");
            Err(ServiceError::new(ProblemCode::InvalidParams, message))
        }
    }
}

/// Keeps the figures of this machine's runs and of the worker up: for requests at a listener, and for others that use them.
/// Returns at once without either.
pub(super) async fn keep_up(shared: Arc<Shared>, listener: Option<TcpListener>) {
    let given = shared.figures.clone();
    if given.is_none() && listener.is_none() {
        return;
    }
    let metrics = given.unwrap_or_else(|| Metrics::new(env!("CARGO_PKG_VERSION")));
    let serve = async {
        if let Some(listener) = listener {
            let (worker, figures) = (shared.clone(), metrics.clone());
            let text = move || text(worker.clone(), figures.clone());
            teamster_metrics::serve(listener, text).await;
        }
    };
    let refresh = async {
        if let Some(metrics) = &shared.figures {
            loop {
                set_worker(&shared, metrics).await;
                sleep(REFRESH).await;
            }
        }
    };
    tokio::join!(metrics.follow(&*shared.runs), serve, refresh);
}

async fn text(shared: Arc<Shared>, metrics: Metrics) -> String {
    // Without them, the figures say that they are old.
    let _ = timeout(LOAD_LIMIT, metrics.loaded()).await;
    set_worker(&shared, &metrics).await;
    metrics.text()
}

/// Sets the figures of the worker itself.
async fn set_worker(shared: &Shared, metrics: &Metrics) {
    let busy: Vec<RunKey> = lock(&shared.busy).iter().cloned().collect();
    let mut figures = WorkerFigures::default();
    figures.slots = shared.config.policy.slots as u64;
    figures.running = busy.len() as u64;
    figures.draining = shared.drains.load(Ordering::Relaxed);
    // As many as there are slots: each is a look at the end of a log.
    for key in &busy {
        // Before the log is read, so that none counts as copied that is not there.
        let copied = shared.copied(key);
        if let Ok(view) = shared.runs.outline(&key.local()).await {
            figures.uncopied_entries += view.summary.seq.saturating_sub(copied);
        }
    }
    metrics.set_worker(figures);
}
