//! Permissions in a run that no terminal watches: they wait as requests that any client can answer.

use std::sync::Arc;
use std::time::Duration;

use anyhow::anyhow;
use teamster::acp::OneTurn;
use teamster::{AgentConfig, AgentRuntime, ExecuteParams, SharedRuntime};
use teamster_runner::Requests;

use crate::args::RunArgs;
use crate::hints;

/// How long a request waits for an answer, unless the user says otherwise.
const PATIENCE: Duration = Duration::from_hours(1);

/// How the requests of a detached run are answered, and when they time out.
pub(super) struct Asking {
    requests: Requests,
    limit: Option<Duration>,
    /// The user counts on it.
    required: bool,
}

impl Asking {
    /// What the arguments say; `None` if everything is denied at once.
    pub(super) fn new(args: &RunArgs, requests: Requests) -> Option<Self> {
        let limit = args.ask_timeout.unwrap_or(PATIENCE);
        (!limit.is_zero()).then(|| Self {
            requests,
            limit: (limit != Duration::MAX).then_some(limit),
            required: args.ask_timeout.is_some(),
        })
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
        let takes_reason = sessions.session_capabilities().denial_reason;
        let policy = self.requests.policy(self.limit, takes_reason);
        let asking = OneTurn::new(sessions).permissions(policy);
        match asking.check(params) {
            Ok(()) => Ok(Arc::new(asking)),
            Err(error) => cannot(hints::message(&error).into_owned()),
        }
    }
}
