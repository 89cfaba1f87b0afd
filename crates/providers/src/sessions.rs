//! Live sessions, by the name of a provider.

use std::sync::Arc;

use teamster_core::{AgentError, SessionProvider, SessionRuntime};
use teamster_process::RuntimeConfig;

use crate::Providers;

/// Returns the providers of this build that have sessions, by name.
pub fn session_providers() -> Vec<Arc<dyn SessionProvider>> {
    Providers::builtin().all_with_sessions()
}

/// Creates a session runtime for the provider with this name. [`provider`](crate::provider) lists the names.
///
/// No process is started and no program is searched: a missing CLI is an event of the first turn.
///
/// # Errors
///
/// Fails with [`InvalidParams`](teamster_core::ErrorCode::InvalidParams) if the name is unknown, or if the provider has
/// no sessions.
///
/// ```no_run
/// use teamster_core::{SessionOptions, SessionRuntime, Turn};
/// use teamster_process::RuntimeConfig;
///
/// # async fn example() -> Result<(), teamster_core::AgentError> {
/// let runtime = teamster_providers::create_session_runtime("claude", RuntimeConfig::default())?;
/// let session = runtime.open(SessionOptions::default())?;
/// let first = session.send(Turn::new("What does this repository do?")).result().await;
/// // The same process answers.
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
