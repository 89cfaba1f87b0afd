//! Permission requests of detached runs and sessions, which any client can answer.

use std::sync::Arc;
use std::time::Duration;

use teamster_acp::OneTurn;
use teamster_core::{
    AgentError, AgentRuntime, ExecuteParams, PermissionPolicy, SessionCapabilities, SharedRuntime,
};
use teamster_providers::{AgentConfig, Providers};
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

    /// Returns the policy of a session that can ask.
    pub(crate) fn policy(&self, can: &SessionCapabilities) -> PermissionPolicy {
        self.requests.policy(self.limit, can.denial_reason)
    }

    /// Returns a runtime that asks for permission; its runs are sessions of one turn.
    ///
    /// If the CLI or these parameters do not allow that, returns `plain`, which denies, or an error if `required`.
    pub(crate) fn runtime(
        &self,
        providers: &Providers,
        plain: SharedRuntime,
        config: &AgentConfig,
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
        let sessions = providers.session_runtime(&config.agent, config.cli.clone());
        let sessions = match sessions {
            Ok(sessions) if sessions.session_capabilities().permissions => sessions,
            Ok(_) => return cannot("its CLI does not support it".to_owned()),
            Err(error) => return cannot(error.message),
        };
        let policy = self.policy(sessions.session_capabilities());
        let runtime = OneTurn::new(sessions).permissions(policy);
        match runtime.check(params) {
            Ok(()) => Ok(Arc::new(runtime)),
            Err(error) => cannot(error.message),
        }
    }
}
