//! A service in memory whose commands are seen before it gets them.

use futures_core::stream::BoxStream;
use teamster_api::history::{ForgetRuns, Forgotten};
use teamster_api::{
    Accepted, Change, Command, LogLine, Reply, RunInfo, RunList, RunQuery, RunService, RunView,
    ServiceError, ServiceFuture, Spec,
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

impl<F: Fn(&Command) -> Course + Send + Sync> RunService for Watched<F> {
    fn start<'a>(&'a self, id: &'a str, spec: Spec) -> ServiceFuture<'a, Accepted> {
        self.runs.start(id, spec)
    }

    fn resolve<'a>(&'a self, prefix: &'a str) -> ServiceFuture<'a, RunInfo> {
        self.runs.resolve(prefix)
    }

    fn show<'a>(&'a self, id: &'a str) -> ServiceFuture<'a, RunView> {
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
        Box::pin(async move {
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
        })
    }

    fn forget(&self, request: ForgetRuns) -> ServiceFuture<'_, Forgotten> {
        self.runs.forget(request)
    }
}
