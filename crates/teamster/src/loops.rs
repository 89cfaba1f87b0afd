//! An agent for a loop, with a provider by name.

use teamster_core::{AgentError, ExecuteParams, PermissionPolicy, SessionOptions};
use teamster_loop::{Adapter, AdapterKind, ColdAdapter, HotAdapter, Settings};
use teamster_process::RuntimeConfig;

use crate::Providers;

/// The agent of a loop with these settings, whose process stays or is started for each tick.
///
/// `params` are those of [`agent_loop::params`](crate::agent_loop::params). Nothing is started.
///
/// ```
/// use teamster::agent_loop::Settings;
/// use teamster::{ExecuteParams, RuntimeConfig};
///
/// let agent = teamster::provider("claude").expect("is in this build");
/// let settings = Settings::new(agent.info());
/// let params = ExecuteParams::new("");
/// let agent = teamster::create_loop_adapter(&settings, params, RuntimeConfig::default())?;
/// assert!(agent.keeps_context());
/// # Ok::<(), teamster::AgentError>(())
/// ```
pub fn create_loop_adapter(
    settings: &Settings,
    params: ExecuteParams,
    config: RuntimeConfig,
) -> Result<Box<dyn Adapter>, AgentError> {
    Providers::builtin().loop_adapter(settings, params, config)
}

impl Providers {
    /// The agent of a loop with one of these providers. See [`create_loop_adapter`].
    pub fn loop_adapter(
        &self,
        settings: &Settings,
        params: ExecuteParams,
        config: RuntimeConfig,
    ) -> Result<Box<dyn Adapter>, AgentError> {
        let runtime = settings.agent.id;
        Ok(match settings.adapter_kind() {
            AdapterKind::Cold => Box::new(ColdAdapter::new(self.runtime(runtime, config)?, params)),
            _ => {
                let mut options = SessionOptions::new(params);
                // A loop has no one to ask.
                options.permissions = PermissionPolicy::Allow;
                Box::new(HotAdapter::new(
                    self.session_runtime(runtime, config)?,
                    options,
                ))
            }
        })
    }
}
