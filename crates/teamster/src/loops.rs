//! Agent loops, with a provider by name.

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

    /// The CLI of a runtime's name in the settings of a loop, or why there is none; the usual one where none is
    /// named.
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

    /// A fallback of a loop in this directory, by the name of its provider, or by `NAME:MODEL`. `config` is its
    /// process's, and `env` are the variables of the agent's file.
    pub fn loop_fallback(
        &self,
        name: &str,
        folder: &AgentFolder,
        env: &BTreeMap<String, String>,
        config: RuntimeConfig,
    ) -> Result<Candidate, AgentError> {
        // What follows `acp:` is a command.
        let (name, model) = match name.split_once(':') {
            Some((provider, model)) if self.get(provider).is_some() => (provider, Some(model)),
            _ => (name, None),
        };
        let invalid = |problem: String| AgentError::invalid_params(format!("FALLBACK: {problem}"));
        let agent = self.loop_agent(Some(name));
        let mut settings = Settings::new(agent.map_err(|error| invalid(error.message))?);
        settings.model = model.map(str::to_owned);
        let params =
            fallback_params(&settings, folder, env).map_err(|error| invalid(error.to_string()))?;
        self.candidate(settings.agent.id, config, params)
    }
}
