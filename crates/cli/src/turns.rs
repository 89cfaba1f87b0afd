//! Retries, fallbacks and budget of a session's turns, from the arguments.

use std::time::Duration;

use anyhow::{Context, anyhow};
use teamster::orchestrator::{Action, Budget, Candidate, RetryPolicy};
use teamster::{
    AgentError, Capabilities, CliInfo, ErrorKind, ExecuteParams, PermissionPolicy,
    SessionCapabilities, SessionOptions, SessionRuntime, SharedRuntime,
};
use teamster_runner::{SessionCandidate, SessionRuns};

use crate::args::{ChatArgs, TurnArgs};
use crate::{hints, params};

/// The `fit` of [`plan`] where every parameter is one that the user has set: nothing is removed.
pub(crate) fn as_set(_: &CliInfo, _: &Capabilities, _: &mut ExecuteParams) -> bool {
    true
}

/// An error of [`plan`].
pub(crate) enum PlanError {
    /// The agent does not support the parameters.
    Agent(AgentError),
    /// The arguments are not valid.
    Usage(anyhow::Error),
}

impl From<AgentError> for PlanError {
    fn from(error: AgentError) -> Self {
        Self::Agent(error)
    }
}

impl From<anyhow::Error> for PlanError {
    fn from(error: anyhow::Error) -> Self {
        Self::Usage(error)
    }
}

impl From<PlanError> for anyhow::Error {
    fn from(error: PlanError) -> Self {
        match error {
            PlanError::Agent(error) => anyhow!("{}", hints::message(&error)),
            PlanError::Usage(error) => error,
        }
    }
}

/// Prepares the turns of a session with this id. `policy` creates the policy for permission requests from the
/// session's capabilities. `fit` removes from an agent's parameters what it does not take and need not; it returns
/// `false` if such an agent must not be a fallback.
///
/// Every error is a usage error.
pub(crate) fn plan(
    id: &str,
    args: &ChatArgs,
    info: &CliInfo,
    params: &ExecuteParams,
    policy: impl Fn(&SessionCapabilities) -> anyhow::Result<PermissionPolicy>,
    fit: impl Fn(&CliInfo, &Capabilities, &mut ExecuteParams) -> bool,
) -> Result<SessionRuns, PlanError> {
    let turns = &args.turns;
    let budget = budget(turns);
    let runtime = |info: &CliInfo, config| crate::providers().session_runtime(info.id, config);
    let open = |runtime: &dyn SessionRuntime, mut params: ExecuteParams| -> Result<_, PlanError> {
        let capabilities = runtime.capabilities();
        if budget.tokens.is_some() || budget.usd.is_some() {
            let estimates = !capabilities.cost && capabilities.live_usage;
            params.usage_updates |= budget.tokens.is_some() || estimates;
            for tool in capabilities.uncounted_tools {
                if !params.allowed_tools.iter().any(|allowed| allowed == tool) {
                    params.denied_tools.push((*tool).to_owned());
                }
            }
        }
        let mut options = SessionOptions::new(params);
        options.idle = args.limits.idle_exit.filter(|time| *time != Duration::MAX);
        options.permissions = policy(runtime.session_capabilities())?;
        let candidate = SessionCandidate::open(runtime, options)?;
        candidate.check(&budget)?;
        Ok(candidate)
    };
    let first = runtime(info, params::chat_config(args, info))?;
    let mut own = params.clone();
    // What the agent must have, it refuses.
    fit(info, first.capabilities(), &mut own);
    let mut runs = SessionRuns::new(id, open(&*first, own)?);
    for other in &turns.fallback {
        let info = (crate::providers().get(&other.provider))
            .context("this provider is not built in")?
            .info();
        let fallback = || -> Result<Option<SessionCandidate>, PlanError> {
            let second = runtime(info, params::agent_config(&args.process, info))?;
            let mut own = if other.provider == args.provider {
                params.clone()
            } else {
                let runtime: SharedRuntime = second.clone();
                Candidate::for_other_provider(runtime, params)?.params
            };
            own.model.clone_from(&other.model);
            if !fit(info, second.capabilities(), &mut own) {
                return Ok(None);
            }
            open(&*second, own).map(Some)
        };
        let fallback = fallback().map_err(|error| {
            anyhow::Error::from(error).context(format!("--fallback {}", info.id))
        })?;
        if let Some(fallback) = fallback {
            runs.add_fallback(fallback);
        }
    }
    runs.retry = retry(turns);
    runs.budget = budget;
    Ok(runs)
}

fn budget(args: &TurnArgs) -> Budget {
    let mut budget = Budget::default();
    budget.usd = args.max_budget_usd;
    budget.tokens = args.max_tokens;
    budget.time = args.max_time.filter(|time| *time != Duration::MAX);
    budget
}

fn retry(args: &TurnArgs) -> RetryPolicy {
    let mut retry = RetryPolicy::default().retries(args.retries);
    wait(&mut retry, args.max_wait);
    retry
}

/// Sets the maximum wait for a limit to reset.
pub(crate) fn wait(retry: &mut RetryPolicy, max_wait: Option<Duration>) {
    match max_wait {
        Some(longest) => {
            retry.max_wait = longest;
            if retry.retries == 0 {
                // Waiting for a limit is not a retry. The policy already waits for other kinds of limits.
                retry.actions.extend([(ErrorKind::RateLimit, Action::Wait)]);
            }
        }
        // No retries means no waits either.
        None if retry.retries == 0 => retry.max_wait = Duration::ZERO,
        None => {}
    }
}
