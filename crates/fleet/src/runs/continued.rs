//! The machine of a session that continues in the worktree of an earlier one.

use teamster_api::{ProblemCode, ServiceError, Spec, Workspace};
use teamster_core::AgentError;
use teamster_core::text::one_line;

use crate::Fleet;
use crate::names::RunKey;
use crate::presence::Reports;

impl Fleet {
    /// Returns the worker for which a new run waits, of which `named` is wished: that of the worktree in which a session
    /// continues. One that resumes a conversation has the worker of that.
    pub(super) async fn place_with_worktree(
        &self,
        spec: &Spec,
        named: Option<String>,
    ) -> Result<Option<String>, ServiceError> {
        let first = match spec {
            Spec::Session(spec)
                if spec.session_id.is_none() && spec.workspace == Some(Workspace::Continued {}) =>
            {
                spec.continues.as_deref()
            }
            _ => None,
        };
        let Some(first) = first else {
            return Ok(named);
        };
        let shown = one_line(first);
        let refused =
            |problem: String| -> ServiceError { AgentError::refused("continues", problem).into() };
        let record = self.read(&RunKey::new(&self.owner, first)).await?.record;
        let Some(record) = record else {
            return Err(refused(format!(
                "the fleet has no run \"{shown}\" any more, so the machine of its worktree is not known: begin a new session"
            )));
        };
        let Some(worker) = record.worker else {
            let next = if record.state.is_final() {
                "begin a new session"
            } else {
                "wait until it is, or begin a new session"
            };
            return Err(refused(format!(
                "run \"{shown}\" was not started, so it has no worktree: {next}"
            )));
        };
        if named.is_some_and(|named| named != worker) {
            let problem =
                format!("the worktree of run \"{shown}\" is on worker {worker}: omit the machine");
            return Err(AgentError::refused("placement", problem).into());
        }
        if self.reports(&worker, record.worker_machine).await? != Reports::Yes {
            let message = format!(
                "worker {worker}, which has the worktree of run \"{shown}\", does not report, or is another machine now: \
                 try again when it is back, or begin a new session"
            );
            return Err(ServiceError::new(ProblemCode::RunnerNotResponding, message));
        }
        Ok(Some(worker))
    }
}
