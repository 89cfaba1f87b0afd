//! The request to the orchestrator, from the description of a run.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, anyhow, bail};
use teamster::orchestrator::{Budget, Candidate, RunRequest};
use teamster::store::{Conversation, SessionRecord};
use teamster::{AgentConfig, AgentError, CliInfo, ExecuteParams, Runtimes, SharedRuntime};

use teamster_runner::OneWriter;

use super::request_policy::RequestPolicy;
use teamster_api::RunSpec;

use crate::args::Fallback;
use crate::detached::session_locks;
use crate::{hints, params, turns};

/// Builds the request, and warnings about it. Every error is a usage error.
pub(super) fn new(
    spec: &RunSpec,
    info: &CliInfo,
    mut params: ExecuteParams,
    policy: Option<&RequestPolicy>,
    detached: Option<&str>,
) -> anyhow::Result<(RunRequest, Vec<String>)> {
    let mut budget = Budget::default();
    let provider = crate::providers().get(info.id);
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
    let runtimes = Runtimes::of(crate::providers().clone());
    let runtime = |config: &AgentConfig, params: &ExecuteParams| -> anyhow::Result<SharedRuntime> {
        let plain = runtimes.get(config)?;
        let runtime = match policy {
            Some(policy) => {
                // The orchestrator passes it to each attempt.
                let mut of_attempt = params.clone();
                let own = budget.usd.filter(|_| plain.capabilities().max_budget_usd);
                of_attempt.max_budget_usd = params.max_budget_usd.or(own);
                policy.runtime(plain, config, &of_attempt)?
            }
            None => plain,
        };
        Ok(match session_locks(detached) {
            Some(locks) => Arc::new(OneWriter::new(runtime, locks)),
            None => runtime,
        })
    };
    let mut config = AgentConfig::cli(info.id);
    config.cli = params::runtime_config(&spec.trusted, info);
    let mut fallbacks = Vec::new();
    let mut notices = Vec::new();
    for other in &spec.fallback {
        let other = Fallback::named(other)?;
        let info = crate::providers()
            .get(&other.provider)
            .context("this provider is not built in")?
            .info();
        let mut candidate = if info.id == config.agent {
            Candidate::new(runtime(&config, &params)?, params.clone())
        } else {
            let mut config = AgentConfig::cli(info.id);
            config.cli = params::agent_config(&spec.trusted, info);
            let refused =
                |error: AgentError| anyhow!("--fallback {}: {}", info.id, hints::message(&error));
            let plain = runtimes.get(&config)?;
            let mut other = Candidate::for_other_provider(plain, &params).map_err(refused)?;
            other.runtime = runtime(&config, &other.params)?;
            other
        };
        candidate.params.model.clone_from(&other.model);
        notices.extend(fallback_warning(&candidate, &params));
        fallbacks.push(candidate);
    }
    let mut request = RunRequest::new(runtime(&config, &params)?, params);
    request.candidates.extend(fallbacks);
    request.budget = budget;
    request.retry.retries = spec.retries;
    turns::wait(&mut request.retry, spec.max_wait_ms);
    Ok((request, notices))
}

/// Returns a warning that lists the options a fallback does not support, other than `--model`.
fn fallback_warning(candidate: &Candidate, params: &ExecuteParams) -> Option<String> {
    let names = candidate.goes_without(params).into_iter();
    let names = names.filter(|name| *name != "model");
    let flags: Vec<_> = names.filter_map(hints::flag).collect();
    let provider = candidate.provider();
    (!flags.is_empty()).then(|| format!("--fallback {provider} ignores {}", flags.join(", ")))
}

/// Checks that the session began in the candidate's working directory.
///
/// Most CLIs do not find a session from another directory, or the agent would work in the wrong one.
pub(super) fn same_directory(
    session: &SessionRecord,
    candidate: &Candidate,
    conversation: &Conversation,
) -> anyhow::Result<()> {
    let here = match &candidate.params.working_directory {
        Some(directory) => std::path::absolute(directory)?,
        None => std::env::current_dir()?,
    };
    match &session.working_directory {
        Some(began) if !same(began, &here) && !began.exists() => bail!(
            "the folder of the session of `{conversation}` is gone ({}): start the conversation over with \
             --new, or use another key",
            began.display()
        ),
        Some(began) if !same(began, &here) => bail!(
            "the session of `{conversation}` belongs to {}: run there, as with `--cwd`, start the \
             conversation over with --new, or use another key",
            began.display()
        ),
        _ => Ok(()),
    }
}

fn same(a: &PathBuf, b: &PathBuf) -> bool {
    let real = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
    real(a) == real(b)
}
