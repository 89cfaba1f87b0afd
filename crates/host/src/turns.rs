//! Retries, fallbacks and budget of a session's turns, from its description.

use std::sync::Arc;
use std::time::Duration;

use teamster_api::{Grants, SessionSpec};
use teamster_core::{
    AgentError, Capabilities, CliInfo, ExecuteParams, PermissionPolicy, SessionCapabilities,
    SessionOptions, SessionRuntime, SharedRuntime,
};
use teamster_orchestrator::{Budget, Candidate, RetryPolicy};
use teamster_providers::Fallback;
use teamster_runner::{SessionAccount, SessionCandidate, SessionRuns};

use crate::account_sessions::AccountSessions;
use crate::setup::Setup;
use crate::{Account, Host, params};

/// The `fit` of [`plan`] where every parameter is one that the user has set: nothing is removed.
pub(crate) fn as_set(_: &CliInfo, _: &Capabilities, _: &mut ExecuteParams) -> bool {
    true
}

/// Returns the accounts with these names, each of the agent or of one of its fallbacks.
pub(crate) fn accounts(
    host: &Host,
    info: &CliInfo,
    fallback: &[String],
    names: &[String],
) -> Result<Vec<Account>, AgentError> {
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let mut agents = vec![info.id];
    for other in fallback {
        let other = Fallback::named(host.providers(), other)?;
        agents.push(host.agent(&other.provider)?.id);
    }
    host.accounts_of(names, &agents)
}

pub(crate) fn of_fallback(info: &CliInfo, error: &AgentError) -> AgentError {
    AgentError::refused_item("fallback", info.id, &*error.message)
}

/// Prepares the turns of a session with this id. `policy` creates the policy for permission requests from the
/// session's provider and capabilities. `fit` removes from an agent's parameters what it does not take and need not; it returns
/// `false` if such an agent must not be a fallback. The workspace is set up in the first turn.
#[expect(clippy::too_many_arguments, reason = "each is of another origin")]
pub(crate) fn plan(
    host: &Host,
    id: &str,
    spec: &SessionSpec,
    info: &CliInfo,
    params: &ExecuteParams,
    policy: impl Fn(&str, &SessionCapabilities) -> Result<PermissionPolicy, AgentError>,
    fit: impl Fn(&CliInfo, &Capabilities, &mut ExecuteParams) -> bool,
    setup: Option<&Arc<Setup>>,
) -> Result<SessionRuns, AgentError> {
    let budget = budget(spec);
    let runtime = |info: &CliInfo, config| -> Result<_, AgentError> {
        let runtime = host.providers().session_runtime(info.id, config)?;
        Ok(match setup {
            Some(setup) => setup.before_session(runtime),
            None => runtime,
        })
    };
    let options = |runtime: &dyn SessionRuntime, params: ExecuteParams| -> Result<_, AgentError> {
        let mut options = SessionOptions::new(params);
        options.idle = limited(spec.trusted.idle_exit_ms);
        options.permissions = policy(runtime.id(), runtime.session_capabilities())?;
        Ok(options)
    };
    let first_id = info.id;
    let accounts = accounts(host, info, &spec.fallback, &spec.accounts)?;
    let open_with = |runtime: Arc<dyn SessionRuntime>,
                     params: ExecuteParams|
     -> Result<SessionCandidate, AgentError> {
        let own = accounts.iter().filter(|it| it.agent == runtime.id());
        let with = own.map(|account| -> Result<_, AgentError> {
            let mut params = params.clone();
            account.apply(&mut params);
            let options = options(&*runtime, params)?;
            Ok(SessionAccount::new(&*account.name, options))
        });
        let mut with = with.collect::<Result<Vec<_>, _>>()?;
        if with.len() < 2 {
            return match with.pop() {
                None => {
                    SessionCandidate::open(&*runtime, options(&*runtime, params)?, budget.clone())
                }
                Some(SessionAccount { name, options, .. }) => {
                    let candidate = SessionCandidate::open(&*runtime, options, budget.clone())?;
                    Ok(candidate.account(name))
                }
            };
        }
        let places = with.iter().map(|it| (&*it.name, &it.options.params));
        let sessions = AccountSessions::of(runtime.id(), places, spec.trusted.clean_env);
        let Some(sessions) = sessions else {
            let problem = format!(
                "a session of {} has one account: another one with a home of its own cannot continue it",
                runtime.id()
            );
            return Err(AgentError::refused_item(
                "accounts",
                &*with[1].name,
                problem,
            ));
        };
        let bring = Arc::new(move |id: &str, account: usize| sessions.bring(id, account));
        SessionCandidate::open_with_accounts(runtime, with, budget.clone(), bring)
    };
    let first = runtime(info, params::runtime_config(&spec.trusted, info)?)?;
    let mut own = params.clone();
    // What the agent must have, it refuses.
    fit(info, first.capabilities(), &mut own);
    let mut runs = SessionRuns::new(id, open_with(first, own)?);
    for other in &spec.fallback {
        let other = Fallback::named(host.providers(), other)?;
        let info = host.agent(&other.provider)?;
        let fallback = || -> Result<Option<SessionCandidate>, AgentError> {
            let second = runtime(info, params::agent_config(&spec.trusted, info)?)?;
            let mut own = if info.id == first_id {
                params.clone()
            } else {
                let runtime: SharedRuntime = second.clone();
                Candidate::for_other_provider(runtime, params)?.params
            };
            own.model.clone_from(&other.model);
            own.title.clone_from(&params.title);
            if !fit(info, second.capabilities(), &mut own) {
                return Ok(None);
            }
            open_with(second, own).map(Some)
        };
        let fallback = fallback().map_err(|error| of_fallback(info, &error))?;
        if let Some(fallback) = fallback {
            runs.add_fallback(fallback)?;
        }
    }
    runs.retry = RetryPolicy::default().chosen(spec.retries, spec.max_wait_ms.map(params::limit));
    Ok(runs)
}

fn budget(spec: &SessionSpec) -> Budget {
    let mut budget = Budget::default();
    budget.usd = spec.max_budget_usd;
    budget.tokens = spec.max_tokens;
    budget.time = limited(spec.max_time_ms);
    budget
}

/// Returns what the agent of a session may do without a request, for the session's folder.
pub(crate) fn grants(host: &Host, spec: &SessionSpec) -> Result<Grants, AgentError> {
    let mut grants = Grants::default();
    grants.permission = spec.permission;
    grants.allowed_tools.clone_from(&spec.allowed_tools);
    for fallback in &spec.fallback {
        let fallback = Fallback::named(host.providers(), fallback)?;
        grants.fallback.push(fallback.provider);
    }
    grants.cli_arguments = !spec.trusted.extra_args.is_empty();
    Ok(grants)
}

/// Returns a limit of time, if there is one.
pub(crate) fn limited(ms: Option<u64>) -> Option<Duration> {
    let limit = ms.map(params::limit);
    limit.filter(|time| *time != Duration::MAX)
}
