//! Hot sessions with a provider by name.

use std::sync::Arc;

use crate::{AgentError, Providers, RuntimeConfig, SessionProvider, SessionRuntime};

/// Every provider of this build that has sessions, by name.
pub fn session_providers() -> Vec<Arc<dyn SessionProvider>> {
    Providers::builtin().all_with_sessions()
}

/// A runtime of sessions with the provider of this name ([`provider`](crate::provider) lists
/// the names).
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
    Providers::builtin().session_runtime(name, config)
}
