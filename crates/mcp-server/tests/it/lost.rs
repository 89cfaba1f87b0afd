//! A service that fails, or is not always reached.

use std::sync::{Arc, Mutex};

use futures_core::stream::BoxStream;
use serde_json::{Value, json};
use teamster_api::history::{ForgetRuns, Forgotten};
use teamster_api::{
    Accepted, Change, Command, LogLine, ProblemCode, Reply, RunInfo, RunList, RunQuery, RunService,
    RunView, ServiceError, Spec,
};
use teamster_core::RunStatus;
use teamster_mcp_server::{AgentServer, Limits};
use teamster_testkit::run_service::MemoryService;
use tokio::sync::Notify;

use crate::memory;
use crate::peer::{Machine, Peer};

/// What fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    /// The answer to a start is lost.
    Start,
    /// A start fails after the run has started.
    StartedThenFails,
    /// A start waits until it is let go.
    SlowStart,
    /// No run can be shown.
    Away,
    /// The result of an ended run cannot be read.
    NoResult,
}

/// A service with a fault. Its changes are never known.
#[derive(Clone)]
struct Lossy {
    runs: MemoryService,
    fault: Arc<Mutex<Fault>>,
    /// A start waits.
    is_starting: Arc<Notify>,
    /// It need not wait any longer.
    go: Arc<Notify>,
}

impl Lossy {
    fn new(fault: Fault) -> Self {
        Self {
            runs: memory(),
            fault: Arc::new(Mutex::new(fault)),
            is_starting: Arc::default(),
            go: Arc::default(),
        }
    }

    fn set(&self, fault: Fault) {
        *self.fault.lock().unwrap() = fault;
    }

    fn has(&self, fault: Fault) -> bool {
        *self.fault.lock().unwrap() == fault
    }

    /// Starts a client of a server of this service.
    async fn client(&self, limits: Limits) -> Peer {
        let runs = Arc::new(self.clone());
        let mut peer = Peer::start(AgentServer::new(runs, Arc::new(Machine), limits));
        peer.begin().await;
        peer
    }

    async fn statuses(&self) -> Vec<Option<RunStatus>> {
        let all = self.runs.list(RunQuery::default()).await.unwrap().runs;
        all.iter().map(|run| run.status).collect()
    }
}

fn lost() -> ServiceError {
    ServiceError::unreachable("the connection broke")
}

#[async_trait::async_trait]
impl RunService for Lossy {
    async fn start(&self, id: &str, spec: Spec) -> Result<Accepted, ServiceError> {
        if self.has(Fault::SlowStart) {
            self.is_starting.notify_one();
            self.go.notified().await;
        }
        let accepted = self.runs.start(id, spec).await?;
        if self.has(Fault::Start) {
            return Err(lost());
        }
        if self.has(Fault::StartedThenFails) {
            return Err(ServiceError::new(ProblemCode::Internal, "the disk is full"));
        }
        Ok(accepted)
    }

    async fn resolve(&self, prefix: &str) -> Result<RunInfo, ServiceError> {
        self.runs.resolve(prefix).await
    }

    async fn show(&self, id: &str) -> Result<RunView, ServiceError> {
        if self.has(Fault::Away) {
            return Err(lost());
        }
        let mut view = self.runs.show(id).await?;
        if self.has(Fault::NoResult) {
            view.result = None;
        }
        Ok(view)
    }

    async fn list(&self, query: RunQuery) -> Result<RunList, ServiceError> {
        self.runs.list(query).await
    }

    fn follow(&self, id: &str, after: u64) -> BoxStream<'static, Result<LogLine, ServiceError>> {
        self.runs.follow(id, after)
    }

    fn changes(&self) -> BoxStream<'static, Result<Change, ServiceError>> {
        Box::pin(async_stream::stream! {
            std::future::pending::<()>().await;
            yield Err(lost());
        })
    }

    async fn send(&self, id: &str, command: Command) -> Result<Reply, ServiceError> {
        self.runs.send(id, command).await
    }

    async fn forget(&self, request: ForgetRuns) -> Result<Forgotten, ServiceError> {
        self.runs.forget(request).await
    }
}

fn one_run() -> Limits {
    let mut limits = Limits::default();
    limits.max_runs = 1;
    limits
}

fn prompt(prompt: &str) -> Value {
    json!({"agent": "mock", "prompt": prompt})
}

#[tokio::test]
async fn a_run_whose_start_was_not_confirmed_counts_and_is_stopped() {
    for (fault, message) in [
        (Fault::Start, "the connection broke"),
        (Fault::StartedThenFails, "the disk is full"),
    ] {
        let service = Lossy::new(fault);
        let mut peer = service.client(one_run()).await;
        assert_eq!(peer.problem("start", prompt("hang")).await, message);
        let full = peer.problem("start", prompt("hang")).await;
        assert!(full.starts_with("1 runs are live"), "{full}");
        peer.end().await;
        assert_eq!(service.statuses().await, [Some(RunStatus::Aborted)]);
    }
}

#[tokio::test]
async fn run_without_a_status_counts_as_live_and_as_its_budget() {
    let service = Lossy::new(Fault::None);
    let mut limits = Limits::default();
    limits.max_runs = 2;
    let mut peer = service.client(limits.clone()).await;
    let id = peer.start_run("hang").await;
    service.set(Fault::Away);
    let usage = peer.tool("usage", json!({})).await;
    assert_eq!(usage["server"]["running"], 1, "{usage}");
    let unknown = format!("run {id}: the connection broke");
    assert_eq!(usage["server"]["incomplete"], unknown, "{usage}");
    // Without a budget, the number is what counts.
    let started = peer.problem("start", prompt("hang")).await;
    assert_eq!(started, "the connection broke", "only the report fails");
    let full = peer.problem("start", prompt("hang")).await;
    assert!(full.starts_with("2 runs are live"), "{full}");
    service.set(Fault::None);
    peer.end().await;

    limits.max_tokens = Some(100);
    let mut peer = service.client(limits).await;
    let id = peer.start_run("hang").await;
    service.set(Fault::Away);
    let refused = peer.problem("start", prompt("hang")).await;
    let unknown = format!("run {id}: the connection broke");
    assert_eq!(
        refused,
        format!("the remaining budget is unknown: {unknown}")
    );
    service.set(Fault::None);
    peer.end().await;
}

#[tokio::test]
async fn a_start_in_progress_is_stopped_too_when_the_client_leaves() {
    let service = Lossy::new(Fault::SlowStart);
    let mut peer = service.client(Limits::default()).await;
    let call = super::call("start", &prompt("hang"));
    peer.send("tools/call", &call).await;
    service.is_starting.notified().await;
    let server = peer.server.clone();
    tokio::join!(server.end(), async { service.go.notify_one() });
    assert_eq!(service.statuses().await, [Some(RunStatus::Aborted)]);
    // Nothing starts after that.
    let late = peer.problem("start", prompt("hang")).await;
    assert_eq!(late, "the client has disconnected: nothing is started");
    peer.end().await;
}

#[tokio::test]
async fn waiting_follows_the_logs_of_the_runs_alone() {
    let service = Lossy::new(Fault::None);
    let mut peer = service.client(Limits::default()).await;
    let hanging = peer.start_run("hang").await;
    let asking = peer.start_run("ask").await;
    let both = json!({"runIds": [hanging, asking]});
    let waited = peer.tool("wait", both.clone()).await;
    let asked = &waited["runs"][1];
    assert_eq!(asked["state"], "waiting", "{waited}");
    let answer = json!({"requestId": asked["requests"][0]["requestId"], "decision": "deny"});
    peer.tool("answer", answer).await;
    let waited = peer.tool("wait", both).await;
    assert_eq!(waited["runs"][0]["state"], "running", "{waited}");
    assert_eq!(waited["runs"][1]["state"], "ended", "{waited}");
    peer.end().await;
}

#[tokio::test]
async fn an_ended_run_without_a_result_is_not_live() {
    let service = Lossy::new(Fault::NoResult);
    let mut peer = service.client(one_run()).await;
    let id = peer.start_run("x").await;
    let waited = peer.tool("wait", json!({"runIds": [id]})).await;
    let report = &waited["runs"][0];
    assert_eq!(report["state"], "ended", "{waited}");
    assert_eq!(report["status"], "completed", "{waited}");
    assert!(report["error"]["message"].is_string(), "{waited}");
    let usage = peer.tool("usage", json!({})).await;
    assert_eq!(usage["server"]["running"], 0, "{usage}");
    peer.start_run("x").await;
    peer.end().await;
}
