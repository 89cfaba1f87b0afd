//! Permission requests of detached runs and sessions, which any client can answer.

use std::sync::Arc;
use std::time::Duration;

use teamster_acp::OneTurn;
use teamster_core::{
    AgentError, AgentRuntime, ExecuteParams, PermissionAnswer, PermissionPolicy,
    SessionCapabilities, SessionRuntime, SharedRuntime,
};
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
        self.requests
            .policy(provider, self.limit, can.denial_reason)
    }

    /// Returns a runtime that asks for permission; its runs are sessions of one turn, with this runtime if there is one.
    ///
    /// If the CLI or these parameters do not allow that, returns `plain`, which denies, or an error if `required`.
    pub(crate) fn runtime(
        &self,
        plain: SharedRuntime,
        sessions: Result<Arc<dyn SessionRuntime>, AgentError>,
        params: &ExecuteParams,
    ) -> Result<SharedRuntime, AgentError> {
        let agent = plain.id().to_owned();
        let cannot = |why: String| {
            if self.required {
                return Err(AgentError::refused(
                    "ask_timeout_ms",
                    format!("{agent} cannot ask in this run: {why}"),
                ));
            }
            Ok(plain)
        };
        let sessions = match sessions {
            Ok(sessions) if sessions.session_capabilities().permissions => sessions,
            Ok(_) => return cannot("its CLI does not support it".to_owned()),
            Err(error) => return cannot(error.message),
        };
        // Checked before there is a policy: the requests of an agent that cannot ask are not ours.
        let asks = PermissionPolicy::decide(|_| PermissionAnswer::Deny(None));
        let runtime = OneTurn::new(sessions).permissions(asks);
        if let Err(error) = runtime.check(params) {
            return cannot(error.message);
        }
        let policy = self.policy(runtime.id(), runtime.session_capabilities());
        Ok(Arc::new(runtime.permissions(policy)))
    }
}
