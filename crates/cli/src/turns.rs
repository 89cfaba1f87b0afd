//! Turns of a session as runs: their retries, their fallbacks and their budget, from the arguments.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow};
use teamster::orchestrator::{Action, Budget, Candidate, RetryPolicy};
use teamster::{
    CliInfo, ErrorKind, ExecuteParams, PermissionPolicy, SessionCapabilities, SessionOptions,
    SharedRuntime,
};
use teamster_runner::{SessionCandidate, SessionPlan};

use crate::args::{ChatArgs, TurnArgs};
use crate::{hints, params};

/// The session that the arguments ask for. `policy` answers the permission requests of a CLI that can ask.
///
/// Every error is one of usage.
pub(crate) fn plan(
    args: &ChatArgs,
    info: &CliInfo,
    params: &ExecuteParams,
    policy: impl Fn(&SessionCapabilities) -> anyhow::Result<PermissionPolicy>,
) -> anyhow::Result<SessionPlan> {
    let turns = &args.turns;
    let budget = budget(turns);
    let open = |info: &CliInfo, config, mut params: ExecuteParams| -> anyhow::Result<_> {
        let refused = |error| anyhow!("{}", hints::message(&error));
        let runtime = (crate::providers().session_runtime(info.id, config)).map_err(refused)?;
        let capabilities = runtime.capabilities();
        if budget.tokens.is_some() || budget.usd.is_some() {
            params.usage_updates |= budget.tokens.is_some();
            for tool in capabilities.uncounted_tools {
                if !params.allowed_tools.iter().any(|allowed| allowed == tool) {
                    params.denied_tools.push((*tool).to_owned());
                }
            }
        }
        let mut options = SessionOptions::new(params);
        options.idle = args.limits.idle_exit.filter(|time| *time != Duration::MAX);
        options.permissions = policy(runtime.session_capabilities())?;
        let candidate = SessionCandidate::open(&*runtime, options).map_err(refused)?;
        candidate.check(&budget).map_err(refused)?;
        Ok((candidate, runtime))
    };
    let config = params::place_config(&args.place, info);
    let (first, _) = open(info, config, params.clone())?;
    let mut plan = SessionPlan::new(first);
    for other in &turns.fallback {
        let info = (crate::providers().get(&other.provider))
            .context("this provider is not built in")?
            .info();
        let config = params::other_config(&args.place, info);
        let runtime: SharedRuntime = crate::providers()
            .session_runtime(info.id, config.clone())
            .map_err(|error| anyhow!("--fallback {}: {}", info.id, hints::message(&error)))?;
        let mut other_params = if other.provider == args.provider {
            params.clone()
        } else {
            Candidate::for_other_provider(Arc::clone(&runtime), params)
                .map_err(|error| anyhow!("--fallback {}: {}", info.id, hints::message(&error)))?
                .params
        };
        other_params.model.clone_from(&other.model);
        let (candidate, _) =
            open(info, config, other_params).with_context(|| format!("--fallback {}", info.id))?;
        plan.candidates.push(candidate);
    }
    plan.retry = retry(turns);
    plan.budget = budget;
    Ok(plan)
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

/// How long to wait for a limit to reset.
pub(crate) fn wait(retry: &mut RetryPolicy, max_wait: Option<Duration>) {
    match max_wait {
        Some(longest) => {
            retry.max_wait = longest;
            if retry.retries == 0 {
                // To wait for a limit is no retry; the other kinds of limits are waited for anyhow.
                retry.actions.extend([(ErrorKind::RateLimit, Action::Wait)]);
            }
        }
        // Who wants no retry wants no waiting for one either.
        None if retry.retries == 0 => retry.max_wait = Duration::ZERO,
        None => {}
    }
}
