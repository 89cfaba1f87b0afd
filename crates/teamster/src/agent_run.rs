//! A run with fallbacks in one call.

use teamster_core::{AgentError, ExecuteParams, SharedRuntime};
use teamster_orchestrator::{Candidate, Orchestrator, OrchestratorConfig, Run, RunRequest};

/// Starts a run with this runtime. If it fails in a way that another agent may not, the fallbacks continue in their
/// order.
///
/// It is [`Orchestrator::run`] on an orchestrator of its own, with the default settings. [`Run::id`] and
/// [`Run::abort_handle`] belong to it; a program with several runs makes one [`Orchestrator`], which shares limits
/// among them and finds them by their ids.
///
/// # Errors
///
/// As [`Orchestrator::new`]. A failure of the run is an event.
///
/// # Panics
///
/// Panics outside of a Tokio runtime.
///
/// ```no_run
/// use teamster::orchestrator::Candidate;
/// use teamster::{AgentConfig, ExecuteParams, get_runtime};
///
/// # async fn example() -> Result<(), teamster::AgentError> {
/// let params = ExecuteParams::new("Fix the failing test");
/// let codex = Candidate::for_other_provider(get_runtime(&AgentConfig::cli("codex"))?, &params)?;
/// let claude = get_runtime(&AgentConfig::cli("claude"))?;
/// let mut run = teamster::execute_agent_run(claude, params, [codex])?;
/// while let Some(event) = run.next().await {
///     println!("{event:?}");
/// }
/// # Ok(())
/// # }
/// ```
pub fn execute_agent_run(
    runtime: SharedRuntime,
    params: ExecuteParams,
    fallbacks: impl IntoIterator<Item = Candidate>,
) -> Result<Run, AgentError> {
    let orchestrator = Orchestrator::new(OrchestratorConfig::default())?;
    let request = RunRequest::new(runtime, params);
    Ok(orchestrator.run(fallbacks.into_iter().fold(request, RunRequest::fallback)))
}
