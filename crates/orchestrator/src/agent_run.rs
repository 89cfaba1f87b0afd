//! A run with fallbacks in one call.

use teamster_core::{AgentError, ExecuteParams, SharedRuntime};

use crate::{Candidate, Orchestrator, OrchestratorConfig, Run, RunRequest};

/// Starts a run with this runtime. If it fails in a way that another agent may not, the fallbacks continue in their
/// order.
///
/// It is [`Orchestrator::start`] on an orchestrator of its own, with the default settings. [`Run::id`] and
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
/// use teamster_core::ExecuteParams;
/// use teamster_orchestrator::{Candidate, execute_agent_run};
///
/// # use teamster_core::SharedRuntime;
/// # async fn example(claude: SharedRuntime, codex: SharedRuntime) -> Result<(), teamster_core::AgentError> {
/// let params = ExecuteParams::new("Fix the failing test");
/// let codex = Candidate::for_other_provider(codex, &params)?;
/// let mut run = execute_agent_run(claude, params, [codex])?;
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
    Ok(orchestrator.start(fallbacks.into_iter().fold(request, RunRequest::fallback)))
}
