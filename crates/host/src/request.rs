//! The agents of a run and the request to the orchestrator, from its description.

use std::path::PathBuf;
use std::sync::Arc;

use teamster_api::RunSpec;
use teamster_core::{AgentError, CliInfo, ExecuteParams};
use teamster_orchestrator::{Budget, Candidate, RunRequest};
use teamster_process::RuntimeConfig;
use teamster_providers::Fallback;
use teamster_runner::{OneWriter, SessionLocks};
use teamster_store::{Conversation, SessionRecord};

use crate::account_sessions::{AccountSessions, WithSession};
use crate::request_policy::RequestPolicy;
use crate::setup::Setup;
use crate::turns::{self, of_fallback};
use crate::{Account, Host, Warning, params};

/// An agent of a run, with the parameters that it is given.
pub(crate) struct RunAgent {
    pub(crate) candidate: Candidate,
    provider: &'static str,
    config: RuntimeConfig,
}

/// Returns the agent of a run and its fallbacks, and the budget of all of them. Warnings are added to `warnings`.
pub(crate) fn agents(
    host: &Host,
    spec: &RunSpec,
    info: &CliInfo,
    mut params: ExecuteParams,
    warnings: &mut Vec<Warning>,
) -> Result<(Vec<RunAgent>, Budget), AgentError> {
    let budget = budget(host, spec, info, &mut params);
    let runtime =
        |provider, config: &RuntimeConfig| host.providers().runtime(provider, config.clone());
    let first = info.id;
    let config = params::runtime_config(&spec.trusted, info)?;
    let mut fallbacks = Vec::new();
    for other in &spec.fallback {
        let other = Fallback::named(host.providers(), other)?;
        let info = host.agent(&other.provider)?;
        let (config, mut candidate) = if info.id == first {
            let candidate = Candidate::new(runtime(first, &config)?, params.clone());
            (config.clone(), candidate)
        } else {
            let config = params::agent_config(&spec.trusted, info)?;
            let candidate = Candidate::for_other_provider(runtime(info.id, &config)?, &params);
            let candidate = candidate.map_err(|error| of_fallback(info, &error))?;
            (config, candidate)
        };
        candidate.params.model.clone_from(&other.model);
        warnings.extend(fallback_warning(&candidate, &params));
        fallbacks.push(RunAgent {
            candidate,
            provider: info.id,
            config,
        });
    }
    let mut agents = vec![RunAgent {
        candidate: Candidate::new(runtime(first, &config)?, params),
        provider: first,
        config,
    }];
    agents.extend(fallbacks);
    let providers: Vec<_> = agents.iter().map(|agent| agent.provider).collect();
    let accounts = host.accounts_of(&spec.accounts, &providers)?;
    let agents = agents
        .into_iter()
        .flat_map(|agent| with_accounts(agent, &accounts, spec.trusted.clean_env));
    Ok((agents.collect(), budget))
}

/// Returns an agent once with each of its accounts, or as it is without any.
fn with_accounts(agent: RunAgent, accounts: &[Account], clean_env: bool) -> Vec<RunAgent> {
    let own = accounts.iter().filter(|it| it.agent == agent.provider);
    let with = own.map(|account| {
        let mut candidate = agent.candidate.clone().account(&*account.name);
        account.apply(&mut candidate.params);
        RunAgent {
            candidate,
            provider: agent.provider,
            config: agent.config.clone(),
        }
    });
    let mut with: Vec<_> = with.collect();
    if with.is_empty() {
        return vec![agent];
    }
    let places = with.iter().map(|it| {
        let Candidate {
            account, params, ..
        } = &it.candidate;
        (account.as_deref().unwrap_or_default(), params)
    });
    let sessions = AccountSessions::of(agent.provider, places, clean_env).map(Arc::new);
    if let Some(sessions) = sessions.filter(|_| with.len() > 1) {
        for (account, agent) in with.iter_mut().enumerate() {
            agent.candidate.shares_sessions = true;
            agent.candidate.runtime = Arc::new(WithSession {
                runtime: agent.candidate.runtime.clone(),
                sessions: sessions.clone(),
                account,
            });
        }
    }
    with
}

/// Returns the budget of a run, and takes what it holds out of the parameters.
fn budget(host: &Host, spec: &RunSpec, info: &CliInfo, params: &mut ExecuteParams) -> Budget {
    let mut budget = Budget::default();
    let provider = host.providers().get(info.id);
    let own_budget = (provider.as_ref()).is_some_and(|it| it.capabilities().max_budget_usd);
    if spec.allows_several_attempts() {
        // A CLI's own limit applies to one attempt; the run's limit applies to all of them.
        budget.turns = params.max_turns.take();
    }
    if spec.allows_several_attempts() || !own_budget {
        budget.usd = params.max_budget_usd.take();
    }
    budget.time = turns::limited(spec.max_time_ms);
    budget.tokens = spec.max_tokens;
    budget
}

/// Returns the request of a run with these agents, which ask for permission by the policy and lock their sessions. The
/// workspace is set up before the first of them.
pub(crate) fn plan(
    host: &Host,
    spec: &RunSpec,
    agents: Vec<RunAgent>,
    budget: Budget,
    policy: Option<&RequestPolicy>,
    locks: Option<&SessionLocks>,
    setup: Option<&Arc<Setup>>,
) -> Result<RunRequest, AgentError> {
    let mut candidates = Vec::new();
    for RunAgent {
        mut candidate,
        provider,
        config,
    } in agents
    {
        if let Some(policy) = policy {
            // The orchestrator passes it to each attempt.
            let mut of_attempt = candidate.params.clone();
            let capabilities = candidate.runtime.capabilities();
            if !capabilities.title {
                of_attempt.title = None;
            }
            let own = budget.usd.filter(|_| capabilities.max_budget_usd);
            of_attempt.max_budget_usd = of_attempt.max_budget_usd.or(own);
            let sessions = host.providers().session_runtime(provider, config);
            policy.ask(&mut candidate, sessions, of_attempt)?;
        }
        if let Some(locks) = locks {
            candidate.runtime = Arc::new(OneWriter::new(candidate.runtime, locks.clone()));
        }
        if let Some(setup) = setup {
            candidate.runtime = setup.before(candidate.runtime);
        }
        candidates.push(candidate);
    }
    let first = candidates
        .first()
        .ok_or_else(|| AgentError::refused("provider", "no agent is left for the run"))?;
    let mut request = RunRequest::new(first.runtime.clone(), first.params.clone());
    request.candidates = candidates;
    request.budget = budget;
    request.retry = (request.retry).chosen(spec.retries, spec.max_wait_ms.map(params::limit));
    Ok(request)
}

/// Returns a warning that lists the parameters a fallback does not support, other than the model and the title.
fn fallback_warning(candidate: &Candidate, params: &ExecuteParams) -> Option<Warning> {
    let names = candidate.params.lacks(params).into_iter();
    let names = names.filter(|name| !matches!(*name, "model" | "title"));
    let names: Vec<_> = names.map(|name| format!("`{name}`")).collect();
    let provider = candidate.provider();
    (!names.is_empty()).then(|| {
        Warning::new(format!(
            "`fallback` {provider} ignores {}",
            names.join(", ")
        ))
    })
}

/// Checks that the session began in the candidate's working directory.
///
/// Most CLIs do not find a session from another directory, or the agent would work in the wrong one.
pub(crate) fn same_directory(
    session: &SessionRecord,
    candidate: &Candidate,
    conversation: &Conversation,
) -> Result<(), AgentError> {
    let refused = |problem: String| AgentError::invalid_params(problem).about("session_key");
    let here = params::absolute(candidate.params.working_directory.as_deref())
        .ok_or_else(|| refused("set a working directory: this process has none".to_owned()))?;
    match &session.working_directory {
        Some(began) if !same(began, &here) && !began.exists() => Err(refused(format!(
            "the folder of the session of \"{conversation}\" is gone ({}): start the conversation over with \
             new_session, or use another key",
            began.display()
        ))),
        Some(began) if !same(began, &here) => Err(refused(format!(
            "the session of \"{conversation}\" belongs to {}: run there, as with `working_directory`, start the \
             conversation over with new_session, or use another key",
            began.display()
        ))),
        _ => Ok(()),
    }
}

fn same(a: &PathBuf, b: &PathBuf) -> bool {
    let real = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
    real(a) == real(b)
}
