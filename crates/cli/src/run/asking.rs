//! Permissions in a run that no terminal watches: they wait as requests that any client can answer.

use std::sync::Arc;
use std::time::Duration;

use anyhow::anyhow;
use teamster::acp::OneTurn;
use teamster::{
    AgentConfig, AgentRuntime, ExecuteParams, PermissionPolicy, SessionCapabilities, SharedRuntime,
};
use teamster_runner::Requests;

use crate::hints;

/// How long a request waits for an answer by default.
const PATIENCE: Duration = Duration::from_hours(1);

/// How the requests of a detached run or session are answered, and when they time out.
pub(crate) struct Asking {
    requests: Requests,
    limit: Option<Duration>,
    /// The user counts on it.
    pub(crate) required: bool,
}

impl Asking {
    /// The value of `--ask-timeout`; `None` if everything is denied at once.
    pub(crate) fn new(given: Option<Duration>, requests: Requests) -> Option<Self> {
        let limit = given.unwrap_or(PATIENCE);
        (!limit.is_zero()).then(|| Self {
            requests,
            limit: (limit != Duration::MAX).then_some(limit),
            required: given.is_some(),
        })
    }

    /// The policy of a session that can ask.
    pub(crate) fn policy(&self, can: &SessionCapabilities) -> PermissionPolicy {
        self.requests.policy(self.limit, can.denial_reason)
    }

    /// A runtime that asks, where the CLI can: its runs are sessions of one turn. `plain` is the one that
    /// denies, which takes its place where the CLI or these parameters leave no other way.
    pub(super) fn runtime(
        &self,
        plain: SharedRuntime,
        config: &AgentConfig,
        params: &ExecuteParams,
    ) -> anyhow::Result<SharedRuntime> {
        let agent = plain.id().to_owned();
        let cannot = |why: String| {
            if self.required {
                return Err(anyhow!(
                    "--ask-timeout: {agent} cannot ask in this run: {why}"
                ));
            }
            Ok(plain)
        };
        let sessions = crate::providers().session_runtime(&config.agent, config.cli.clone());
        let sessions = match sessions {
            Ok(sessions) if sessions.session_capabilities().permissions => sessions,
            Ok(_) => return cannot("its CLI has no way to".to_owned()),
            Err(error) => return cannot(hints::message(&error).into_owned()),
        };
        let policy = self.policy(sessions.session_capabilities());
        let asking = OneTurn::new(sessions).permissions(policy);
        match asking.check(params) {
            Ok(()) => Ok(Arc::new(asking)),
            Err(error) => cannot(hints::message(&error).into_owned()),
        }
    }
}
