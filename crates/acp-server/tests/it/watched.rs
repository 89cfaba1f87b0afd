//! A service in memory whose commands are seen before it gets them.

use futures_core::stream::BoxStream;
use teamster_api::history::{ForgetRuns, Forgotten};
use teamster_api::{
    Accepted, Change, Command, LogLine, Reply, RunInfo, RunList, RunQuery, RunService, RunView,
    ServiceError, Spec,
};
use teamster_testkit::run_service::MemoryService;

/// What becomes of a command.
pub(crate) enum Course {
    /// The service gets it.
    Arrives,
    /// The session ends before it arrives.
    ComesLate,
    /// The connection breaks before it arrives, or before the answer has come back.
    Breaks { after: bool },
}

/// A service whose commands take a course of the test's choice.
pub(crate) struct Watched<F> {
    pub(crate) runs: MemoryService,
    pub(crate) course: F,
}

#[async_trait::async_trait]
impl<F: Fn(&Command) -> Course + Send + Sync> RunService for Watched<F> {
    async fn start(&self, id: &str, spec: Spec) -> Result<Accepted, ServiceError> {
        self.runs.start(id, spec).await
    }

    async fn resolve(&self, prefix: &str) -> Result<RunInfo, ServiceError> {
        self.runs.resolve(prefix).await
    }

    async fn show(&self, id: &str) -> Result<RunView, ServiceError> {
        self.runs.show(id).await
    }

    async fn list(&self, query: RunQuery) -> Result<RunList, ServiceError> {
        self.runs.list(query).await
    }

    fn follow(&self, id: &str, after: u64) -> BoxStream<'static, Result<LogLine, ServiceError>> {
        self.runs.follow(id, after)
    }

    fn changes(&self) -> BoxStream<'static, Result<Change, ServiceError>> {
        self.runs.changes()
    }

    async fn send(&self, id: &str, command: Command) -> Result<Reply, ServiceError> {
        let lost = || ServiceError::unreachable("the connection is broken");
        match (self.course)(&command) {
            Course::Arrives => self.runs.send(id, command).await,
            Course::ComesLate => {
                self.runs.send(id, Command::Cancel { kill: false }).await?;
                self.runs.send(id, command).await
            }
            Course::Breaks { after } => {
                if after {
                    self.runs.send(id, command).await?;
                }
                Err(lost())
            }
        }
    }

    async fn forget(&self, request: ForgetRuns) -> Result<Forgotten, ServiceError> {
        self.runs.forget(request).await
    }
}
