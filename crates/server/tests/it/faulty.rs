//! Runs of a service in memory, with one fault.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_core::stream::BoxStream;
use teamster_api::history::{ForgetRuns, Forgotten};
use teamster_api::{
    Accepted, Change, Command, LiveState, LiveStatus, LogLine, ProblemCode, Reply, RunInfo,
    RunList, RunQuery, RunService, RunView, ServiceError, Spec,
};
use teamster_testkit::run_service::MemoryService;
use tokio::sync::Semaphore;

use super::served::Served;

/// What fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    /// The state of a run is never known.
    NoState,
    /// The live status is never known, as that of a runner that hangs.
    NoLive,
    /// The runner does not answer, and the service reports that.
    NotAnswering,
    /// The log cannot be read.
    NoLog,
    /// No run can be looked for.
    NoFind,
    /// Starts wait until they are released.
    HeldStarts,
    /// A run is deleted as soon as it was found.
    FoundLast,
}

/// Starts that wait.
#[derive(Clone)]
pub(crate) struct HeldStarts {
    begun: Arc<AtomicUsize>,
    gate: Arc<Semaphore>,
}

impl Default for HeldStarts {
    fn default() -> Self {
        Self {
            begun: Arc::default(),
            gate: Arc::new(Semaphore::new(0)),
        }
    }
}

impl HeldStarts {
    /// The number of starts that the service has got.
    pub(crate) fn begun(&self) -> usize {
        self.begun.load(Ordering::Relaxed)
    }

    /// Lets all starts go on.
    pub(crate) fn release(&self) {
        self.gate.close();
    }
}

pub(crate) struct Faulty {
    runs: MemoryService,
    fault: Fault,
    /// The numbers of calls.
    pub(crate) shows: Arc<AtomicUsize>,
    pub(crate) outlines: Arc<AtomicUsize>,
    starts: HeldStarts,
}

impl Faulty {
    pub(crate) fn new(runs: MemoryService, fault: Fault) -> Self {
        Self {
            runs,
            fault,
            shows: Arc::default(),
            outlines: Arc::default(),
            starts: HeldStarts::default(),
        }
    }
}

impl Served {
    /// The same runs with a fault.
    pub(crate) fn with_fault(self, fault: Fault) -> Self {
        let faulty = Faulty::new(self.runs.clone(), fault);
        self.over(Arc::new(faulty))
    }

    /// The same runs, whose starts wait.
    pub(crate) fn with_held_starts(self) -> (Self, HeldStarts) {
        let faulty = Faulty::new(self.runs.clone(), Fault::HeldStarts);
        let held = faulty.starts.clone();
        (self.over(Arc::new(faulty)), held)
    }
}

fn unreadable() -> ServiceError {
    ServiceError::new(ProblemCode::Internal, "the disk cannot be read")
}

#[async_trait::async_trait]
impl RunService for Faulty {
    async fn start(&self, id: &str, spec: Spec) -> Result<Accepted, ServiceError> {
        if self.fault == Fault::HeldStarts {
            self.starts.begun.fetch_add(1, Ordering::Relaxed);
            // It is closed at the end.
            let _ = self.starts.gate.acquire().await;
        }
        self.runs.start(id, spec).await
    }

    async fn started(&self, id: &str, spec: Spec) -> Result<Accepted, ServiceError> {
        self.runs.started(id, spec).await
    }

    async fn resolve(&self, prefix: &str) -> Result<RunInfo, ServiceError> {
        if self.fault == Fault::FoundLast {
            let found = self.runs.resolve(prefix).await?;
            let mut request = ForgetRuns::default();
            request.ids = vec![found.run_id.clone()];
            self.runs.forget(request).await?;
            return Ok(found);
        }
        if self.fault == Fault::NoFind {
            return Err(unreadable());
        }
        self.runs.resolve(prefix).await
    }

    async fn show(&self, id: &str) -> Result<RunView, ServiceError> {
        self.shows.fetch_add(1, Ordering::Relaxed);
        if matches!(self.fault, Fault::NoState | Fault::NoLive) {
            return std::future::pending().await;
        }
        self.runs.show(id).await
    }

    async fn outline(&self, id: &str) -> Result<RunView, ServiceError> {
        self.outlines.fetch_add(1, Ordering::Relaxed);
        if self.fault == Fault::NoState {
            return std::future::pending().await;
        }
        self.runs.outline(id).await
    }

    async fn list(&self, query: RunQuery) -> Result<RunList, ServiceError> {
        self.runs.list(query).await
    }

    fn follow(&self, id: &str, after: u64) -> BoxStream<'static, Result<LogLine, ServiceError>> {
        if self.fault == Fault::NoLog {
            return Box::pin(async_stream::stream! { yield Err(unreadable()); });
        }
        self.runs.follow(id, after)
    }

    fn changes(&self) -> BoxStream<'static, Result<Change, ServiceError>> {
        self.runs.changes()
    }

    async fn send(&self, id: &str, command: Command) -> Result<Reply, ServiceError> {
        if self.fault == Fault::NotAnswering && command == Command::Status {
            let status = Box::new(LiveStatus::new(LiveState::NotAnswering, 0));
            return Ok(Reply::Status { status });
        }
        self.runs.send(id, command).await
    }

    async fn forget(&self, request: ForgetRuns) -> Result<Forgotten, ServiceError> {
        self.runs.forget(request).await
    }
}
