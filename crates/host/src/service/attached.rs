//! The session of a client in this process, as a service.

use std::sync::{Arc, Mutex};

use async_stream::try_stream;
use futures_core::stream::BoxStream;
use teamster_api::history::{ForgetRuns, Forgotten};
use teamster_api::{
    Accepted, Change, Command, LogLine, ProblemCode, Reply, RunInfo, RunList, RunQuery, RunService,
    RunSummary, RunView, ServiceError, Spec, ViewState,
};
use teamster_core::AgentSession;
use teamster_core::sync::lock;
use teamster_orchestrator::Orchestrator;
use teamster_runner::server::Control;
use teamster_runner::{
    AttachedClient, AttachedSession, EntryReader, RequestChannel, SessionControl, SessionPlan,
};
use tokio::sync::watch;

use super::tasks::replied;
use crate::prepare::PreparedSession;

/// A session of this process as a service of this one run, for the client that has started it.
///
/// It has no folder: its one reader gets every entry at once and as it is, no other process finds it, and it ends with
/// this process.
pub struct AttachedRun {
    info: RunInfo,
    control: Control,
    session: SessionControl,
    entries: Mutex<Option<EntryReader>>,
    at_rest: watch::Receiver<Option<u64>>,
}

teamster_core::debug_fields!(AttachedRun { info });

impl PreparedSession {
    /// Returns the session as a service of this one run, and its work: it ends with the session, and MUST be awaited for
    /// no process to be left.
    pub fn attached(self) -> (AttachedRun, impl Future<Output = ()> + Send + use<>) {
        let info = self.about.clone();
        let (orchestrator, plan, channel) = self.into_plan(None, None);
        AttachedRun::new(info, orchestrator, plan, channel)
    }
}

impl AttachedRun {
    /// Creates the session of this plan and its work, as [`PreparedSession::attached`] does. The policies of the plan use
    /// `channel`.
    pub fn new(
        info: RunInfo,
        orchestrator: Orchestrator,
        plan: SessionPlan,
        channel: RequestChannel,
    ) -> (Self, impl Future<Output = ()> + Send + use<>) {
        let (work, client) = AttachedSession::new(orchestrator, plan, channel);
        let (control, session) = work.control();
        let AttachedClient {
            entries, at_rest, ..
        } = client;
        let run = Self {
            info,
            control,
            session,
            entries: Mutex::new(Some(entries)),
            at_rest,
        };
        // The reader got the result.
        (run, async { drop(work.work().await) })
    }

    /// Returns the description of the session.
    pub fn info(&self) -> &RunInfo {
        &self.info
    }

    /// Returns the session of the agent in use.
    pub fn agent(&self) -> Arc<dyn AgentSession> {
        self.session.session()
    }

    /// Returns the number of the newest entry while the agent waits for a prompt and has begun no turn by itself; else
    /// `None`.
    pub fn at_rest(&self) -> watch::Receiver<Option<u64>> {
        self.at_rest.clone()
    }

    async fn carry_out(&self, command: Command) -> Result<Reply, ServiceError> {
        replied(match command {
            Command::Clear | Command::SetModel { .. } | Command::SetPermission { .. } => {
                self.session.try_carry_out(command).await?
            }
            command => self.control.carry_out(command).await,
        })
    }

    async fn summary(&self) -> Result<RunSummary, ServiceError> {
        let mut summary = RunSummary::new(self.info.clone(), ViewState::Running);
        if let Reply::Status { status } = self.carry_out(Command::Status).await? {
            summary.live = Some(*status);
        }
        if let Reply::Requests { requests } = self.carry_out(Command::Requests).await? {
            summary.requests = requests;
        }
        Ok(summary)
    }

    /// Checks that this prefix of an id is one of the session's.
    fn check(&self, id: &str) -> Result<(), ServiceError> {
        if self.info.run_id.starts_with(id) {
            return Ok(());
        }
        let message = format!("no run \"{id}\"");
        Err(ServiceError::new(ProblemCode::RunNotFound, message))
    }
}

fn only_one<T>() -> Result<T, ServiceError> {
    let message = "this service has one session, whose client has started it";
    Err(ServiceError::new(ProblemCode::Unsupported, message))
}

#[async_trait::async_trait]
impl RunService for AttachedRun {
    async fn start(&self, _: &str, _: Spec) -> Result<Accepted, ServiceError> {
        only_one()
    }

    async fn resolve(&self, prefix: &str) -> Result<RunInfo, ServiceError> {
        self.check(prefix)?;
        Ok(self.info.clone())
    }

    async fn show(&self, id: &str) -> Result<RunView, ServiceError> {
        self.check(id)?;
        Ok(RunView::new(Arc::new(self.summary().await?), None))
    }

    async fn list(&self, _: RunQuery) -> Result<RunList, ServiceError> {
        Ok(RunList::new(vec![Arc::new(self.summary().await?)]))
    }

    /// Follows the log. There is one reader, and what it has read is gone.
    fn follow(&self, id: &str, after: u64) -> BoxStream<'static, Result<LogLine, ServiceError>> {
        let entries = self
            .check(id)
            .and_then(|()| lock(&self.entries).take().map_or_else(only_one, Ok));
        let id = self.info.run_id.clone();
        Box::pin(try_stream! {
            let mut entries = entries?;
            while let Some(entry) = entries.recv().await {
                if entry.seq() > after {
                    yield LogLine::of_entry(entry, &id);
                }
            }
        })
    }

    fn changes(&self) -> BoxStream<'static, Result<Change, ServiceError>> {
        Box::pin(try_stream! {
            let change: Change = only_one()?;
            yield change;
        })
    }

    async fn send(&self, id: &str, command: Command) -> Result<Reply, ServiceError> {
        self.check(id)?;
        self.carry_out(command).await
    }

    async fn forget(&self, _: ForgetRuns) -> Result<Forgotten, ServiceError> {
        only_one()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use teamster_api::{Answer, RunHandle, RunKind};
    use teamster_core::{SessionOptions, ToolKind};
    use teamster_orchestrator::{Budget, OrchestratorConfig};
    use teamster_runner::{SessionCandidate, SessionRuns};
    use teamster_testkit::mock_runtime::{MockSessions, Script};

    use super::*;

    /// Reads the log until an entry of this type, and returns it.
    async fn until(log: &mut teamster_api::LogStream, name: &str) -> LogLine {
        loop {
            let line = log.next().await.unwrap().unwrap();
            if line.type_name() == name {
                return line;
            }
        }
    }

    #[tokio::test]
    async fn its_client_speaks_answers_and_ends_it() {
        let script = Script::new()
            .ask_tool("Bash", "t1", ToolKind::Execute, json!({}), "done")
            .text("not allowed");
        let mock = MockSessions::new("claude").turn(script);
        let channel = RequestChannel::new("session");
        let policy = channel.requests().policy("claude", None);
        let options = SessionOptions::default().permissions(policy);
        let candidate = SessionCandidate::open(&mock, options, Budget::default()).unwrap();
        let mut info = RunInfo::new("session", "claude");
        info.kind = RunKind::Session;
        let orchestrator = Orchestrator::new(OrchestratorConfig::default()).unwrap();
        let plan = SessionPlan::new(SessionRuns::new("session", candidate));
        let (run, work) = AttachedRun::new(info, orchestrator, plan, channel);
        let work = tokio::spawn(work);
        let run: Arc<dyn RunService> = Arc::new(run);
        let session = RunHandle::find(run.clone(), "sess").await.unwrap();
        assert_eq!(session.id(), "session");
        let missing = run.show("other").await.unwrap_err();
        assert_eq!(missing.code, Some(ProblemCode::RunNotFound));

        let mut other = RunHandle::new(run.clone(), "other").follow(0);
        let missing = other.next().await.unwrap().unwrap_err();
        assert_eq!(missing.code, Some(ProblemCode::RunNotFound));
        // The log knows its end also by a prefix of the id.
        let mut log = RunHandle::new(run.clone(), "sess").follow(0);
        let second = session.follow(0).next().await.unwrap().unwrap_err();
        assert_eq!(second.code, Some(ProblemCode::Unsupported));
        let begun = session.say("Clean up").await.unwrap();
        assert_eq!(begun, ("session.1".to_owned(), 1));
        until(&mut log, "permission").await;
        let waiting = session.view().await.unwrap().summary.requests.clone();
        assert_eq!(waiting.len(), 1);
        let reason = Some("not here".to_owned());
        let answer = Answer::Deny { reason };
        session
            .answer(&*waiting[0].request_id, answer)
            .await
            .unwrap();
        assert!(!until(&mut log, "done").await.is_end());
        let denied = teamster_core::PermissionAnswer::Deny(Some("not here".to_owned()));
        assert_eq!(mock.answers()[0].1, denied);

        let steered = session.steer("faster").await.unwrap_err();
        assert_eq!(steered.code, Some(ProblemCode::NoTurn));
        session
            .cancel(teamster_core::Stopping::Graceful)
            .await
            .unwrap();
        assert!(until(&mut log, "done").await.is_end());
        assert!(log.next().await.is_none());
        work.await.unwrap();
        let late = session.say("More").await.unwrap_err();
        assert_eq!(late.code, Some(ProblemCode::SessionEnding));
    }
}
