//! Adapters, agents and fallbacks of loops, by the name of a provider.

mod builder;

pub use builder::{LoopBuilder, LoopError, PreparedLoop};

use std::collections::BTreeMap;

use teamster_core::{AgentError, CliInfo, ExecuteParams, PermissionPolicy, SessionOptions};
use teamster_loop::{
    Adapter, AdapterKind, AgentFolder, ColdAdapter, HotAdapter, Settings, fallback_params,
};
use teamster_orchestrator::Candidate;
use teamster_process::RuntimeConfig;

use crate::Providers;

/// Creates the adapter of a loop with these settings: one process for all ticks, or one for each tick.
///
/// `params` come from [`agent_loop::params`](crate::agent_loop::params). No process is started.
///
/// # Errors
///
/// Fails if no provider has the agent's id, or if a provider without sessions is to keep its process.
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
    /// Creates the adapter of a loop with one of these providers. See [`create_loop_adapter`].
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
                // There is no user to answer permission requests.
                options.permissions = PermissionPolicy::Allow;
                Box::new(HotAdapter::new(
                    self.session_runtime(runtime, config)?,
                    options,
                ))
            }
        })
    }

    /// Returns the CLI of a runtime's name in the settings of a loop, or the default CLI for `None`.
    ///
    /// # Errors
    ///
    /// Fails with the reason if the name is unknown or cannot be used in a loop.
    pub fn loop_agent(&self, name: Option<&str>) -> Result<&'static CliInfo, AgentError> {
        let provider = match name {
            Some(name) => self.get(name),
            None => self.usual(),
        };
        let name = name.unwrap_or_default();
        match provider {
            Some(provider) => Ok(provider.info()),
            None => match self.runtime(name, RuntimeConfig::default()) {
                Err(error) => Err(error),
                Ok(_) => Err(AgentError::refused(
                    "runtime",
                    format!("`{name}` cannot be used in a loop"),
                )),
            },
        }
    }

    /// Creates a fallback of a loop in this directory. `name` is that of a provider, or `NAME:MODEL`. `config`
    /// applies to its process, and `env` has the variables of the agent's `.env`.
    ///
    /// # Errors
    ///
    /// Fails if the name is unknown, or if a file of the agent cannot be used.
    pub fn loop_fallback(
        &self,
        name: &str,
        folder: &AgentFolder,
        env: &BTreeMap<String, String>,
        config: RuntimeConfig,
    ) -> Result<Candidate, AgentError> {
        let (name, model) = self.agent_and_model(name);
        let invalid = |problem: String| AgentError::invalid_params(format!("FALLBACK: {problem}"));
        let agent = self.loop_agent(Some(name));
        let mut settings = Settings::new(agent.map_err(|error| invalid(error.message))?);
        settings.model = model.map(str::to_owned);
        let params =
            fallback_params(&settings, folder, env).map_err(|error| invalid(error.to_string()))?;
        self.candidate(settings.agent.id, config, params)
    }

    /// Splits `AGENT:MODEL`. The text after `acp:` is a command.
    pub(crate) fn agent_and_model<'n>(&self, name: &'n str) -> (&'n str, Option<&'n str>) {
        match name.split_once(':') {
            Some((agent, model)) if self.get(agent).is_some() => (agent, Some(model)),
            _ => (name, None),
        }
    }
}
