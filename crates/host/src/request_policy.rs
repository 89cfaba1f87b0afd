//! Permission requests of detached runs and sessions, which any client can answer.

use std::sync::Arc;
use std::time::Duration;

use teamster_core::{
    AgentError, ExecuteParams, PermissionAnswer, PermissionPolicy, SessionCapabilities,
    SessionRuntime,
};
use teamster_orchestrator::Candidate;
use teamster_runner::Requests;

/// Default time that a request waits for an answer.
const DEFAULT_LIMIT: Duration = Duration::from_hours(1);

/// Permission requests of a detached run or session, with their time limit.
pub(crate) struct RequestPolicy {
    requests: Requests,
    limit: Option<Duration>,
    /// A time limit was given: an agent that cannot ask is an error.
    pub(crate) required: bool,
}

impl RequestPolicy {
    /// Creates the state from the time limit of requests, if one was given. Returns `None` if requests are denied at once.
    pub(crate) fn new(given: Option<Duration>, requests: Requests) -> Option<Self> {
        let limit = given.unwrap_or(DEFAULT_LIMIT);
        (!limit.is_zero()).then(|| Self {
            requests,
            limit: (limit != Duration::MAX).then_some(limit),
            required: given.is_some(),
        })
    }

    /// Returns the policy of a session of this provider, which can ask.
    pub(crate) fn policy(&self, provider: &str, can: &SessionCapabilities) -> PermissionPolicy {
        if can.denial_reason {
            self.requests.policy(provider, self.limit)
        } else {
            self.requests.policy_without_reasons(provider, self.limit)
        }
    }

    /// Lets the runs of a candidate with this runtime ask for permission. `sessions` is the same agent's runtime of
    /// sessions, and `of_attempt` are the parameters that the orchestrator passes to each attempt.
    ///
    /// If the CLI or these parameters do not allow that, the runs deny, or it is an error if `required`.
    pub(crate) fn ask(
        &self,
        candidate: &mut Candidate,
        sessions: Result<Arc<dyn SessionRuntime>, AgentError>,
        mut of_attempt: ExecuteParams,
    ) -> Result<(), AgentError> {
        let runtime = &candidate.runtime;
        // Checked before there is a policy: the requests of an agent that cannot ask are not ours.
        of_attempt.permissions = Some(PermissionPolicy::decide(|_| PermissionAnswer::Deny(None)));
        let can = sessions.and_then(|sessions| {
            runtime.check(&of_attempt)?;
            Ok(*sessions.session_capabilities())
        });
        match can {
            Ok(can) => candidate.params.permissions = Some(self.policy(runtime.id(), &can)),
            Err(error) if self.required => {
                let problem = match error.parameter() {
                    Some("permissions") => "its CLI does not support it".to_owned(),
                    _ => error.message,
                };
                return Err(AgentError::refused(
                    "ask_timeout_ms",
                    format!("{} cannot ask in this run: {problem}", runtime.id()),
                ));
            }
            Err(_) => {}
        }
        Ok(())
    }
}
