//! A service that is not always reached.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_core::stream::BoxStream;
use serde_json::json;
use teamster_api::history::{ForgetRuns, Forgotten};
use teamster_api::{
    Accepted, Change, Command, LogLine, Reply, RunInfo, RunList, RunQuery, RunService, RunView,
    ServiceError, ServiceFuture, Spec,
};
use teamster_core::RunStatus;
use teamster_mcp_server::{AgentServer, Limits};
use teamster_testkit::run_service::MemoryService;

use crate::memory;
use crate::peer::{Machine, Peer};

/// A service whose answers to starts are lost, and which then is not reached while it is away.
struct Lossy {
    runs: MemoryService,
    is_away: Arc<AtomicBool>,
}

fn lost<T>() -> ServiceFuture<'static, T> {
    Box::pin(async { Err(ServiceError::unreachable("the connection broke")) })
}

impl RunService for Lossy {
    fn start<'a>(&'a self, id: &'a str, spec: Spec) -> ServiceFuture<'a, Accepted> {
        Box::pin(async move {
            self.runs.start(id, spec).await?;
            lost().await
        })
    }

    fn resolve<'a>(&'a self, prefix: &'a str) -> ServiceFuture<'a, RunInfo> {
        self.runs.resolve(prefix)
    }

    fn show<'a>(&'a self, id: &'a str) -> ServiceFuture<'a, RunView> {
        if self.is_away.load(Ordering::Relaxed) {
            return lost();
        }
        self.runs.show(id)
    }

    fn list(&self, query: RunQuery) -> ServiceFuture<'_, RunList> {
        self.runs.list(query)
    }

    fn follow(&self, id: &str, after: u64) -> BoxStream<'static, Result<LogLine, ServiceError>> {
        self.runs.follow(id, after)
    }

    fn changes(&self) -> BoxStream<'static, Result<Change, ServiceError>> {
        self.runs.changes()
    }

    fn send<'a>(&'a self, id: &'a str, command: Command) -> ServiceFuture<'a, Reply> {
        self.runs.send(id, command)
    }

    fn forget(&self, request: ForgetRuns) -> ServiceFuture<'_, Forgotten> {
        self.runs.forget(request)
    }
}

#[tokio::test]
async fn a_run_whose_start_was_not_confirmed_counts_and_is_stopped() {
    let runs = memory();
    let is_away = Arc::new(AtomicBool::new(false));
    let lossy = Lossy {
        runs: runs.clone(),
        is_away: is_away.clone(),
    };
    let mut limits = Limits::default();
    limits.max_runs = 1;
    let mut peer = Peer::start(AgentServer::new(Arc::new(lossy), Arc::new(Machine), limits));
    peer.begin().await;
    let hang = json!({"agent": "mock", "prompt": "hang"});
    let problem = peer.problem("start", hang.clone()).await;
    assert_eq!(problem, "the connection broke");
    let full = peer.problem("start", hang.clone()).await;
    assert!(full.starts_with("1 runs are live"), "{full}");
    // What was spent is not known, so nothing is started.
    is_away.store(true, Ordering::Relaxed);
    assert_eq!(peer.problem("start", hang).await, "the connection broke");
    is_away.store(false, Ordering::Relaxed);
    peer.end().await;
    let all = runs.list(RunQuery::default()).await.unwrap().runs;
    let statuses: Vec<_> = all.iter().map(|run| run.status).collect();
    assert_eq!(statuses, [Some(RunStatus::Aborted)]);
}
