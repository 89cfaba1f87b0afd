//! Hot sessions with a provider by name.

use std::sync::Arc;

use crate::{
    AgentError, CliProvider, RuntimeConfig, SessionProvider, SessionRuntime, known_id, no_provider,
    process,
};

/// Every provider of this build that has sessions, by name.
pub fn session_providers() -> Vec<Arc<dyn SessionProvider>> {
    vec![
        #[cfg(feature = "claude")]
        Arc::new(crate::claude::Claude),
        #[cfg(feature = "codex")]
        Arc::new(crate::codex::Codex),
        #[cfg(feature = "copilot")]
        Arc::new(crate::copilot::Copilot),
        #[cfg(feature = "gemini")]
        Arc::new(crate::gemini::Gemini),
        #[cfg(feature = "opencode")]
        Arc::new(crate::opencode::OpenCode),
    ]
}

/// A runtime of sessions with the provider of this name ([`provider`](crate::provider) says which names
/// there are).
///
/// Nothing is started and nothing is looked for: a CLI that is missing is an event of the first turn.
///
/// ```no_run
/// use teamster::{RuntimeConfig, SessionOptions, SessionRuntime, Turn};
///
/// # async fn example() -> Result<(), teamster::AgentError> {
/// let runtime = teamster::create_session_runtime("claude", RuntimeConfig::default())?;
/// let session = runtime.open(SessionOptions::default())?;
/// let first = session.send(Turn::new("What does this repository do?")).result().await;
/// // The same process, which is there already.
/// let second = session.send(Turn::new("And how is it tested?")).result().await;
/// # drop((first, second));
/// session.close().await;
/// # Ok(())
/// # }
/// ```
pub fn create_session_runtime(
    name: &str,
    config: RuntimeConfig,
) -> Result<Arc<dyn SessionRuntime>, AgentError> {
    #[cfg(feature = "acp")]
    if let Some(agent) = crate::acp::AcpAgent::named(name) {
        return Ok(Arc::new(process::CliRuntime::with_config(agent?, config)));
    }
    let id = known_id(name);
    let provider = (session_providers().into_iter()).find(|it| Some(it.info().id) == id);
    match provider {
        Some(provider) => Ok(Arc::new(process::CliRuntime::with_config(provider, config))),
        None => Err(match crate::provider(name) {
            Some(provider) => {
                let name = provider.info().name;
                AgentError::invalid_params(format!(
                    "{name} cannot be kept for many turns: run it once for each, and resume its session"
                ))
            }
            None => no_provider(name),
        }),
    }
}
