//! Adapters, agents and fallbacks of loops, by the name of a provider.

use std::collections::BTreeMap;

use teamster_core::{AgentError, CliInfo, ExecuteParams, PermissionPolicy, SessionOptions};
use teamster_orchestrator::Candidate;
use teamster_process::RuntimeConfig;
use teamster_providers::{Fallback, Providers};

use crate::{
    Adapter, AdapterKind, AgentFolder, ColdAdapter, HotAdapter, Settings, fallback_params,
};

/// Creates the adapter of a loop with these settings: one process for all ticks, or one for each tick.
///
/// `params` come from [`params`](crate::params). No process is started.
///
/// # Errors
///
/// Fails if no provider has the agent's id, or if a provider without sessions is to keep its process.
pub(crate) fn loop_adapter(
    providers: &Providers,
    settings: &Settings,
    params: ExecuteParams,
    config: RuntimeConfig,
) -> Result<Box<dyn Adapter>, AgentError> {
    let runtime = settings.agent.id;
    Ok(match settings.adapter_kind() {
        AdapterKind::Cold => Box::new(ColdAdapter::new(
            providers.runtime(runtime, config)?,
            params,
        )),
        _ => {
            let mut options = SessionOptions::new(params);
            // There is no user to answer permission requests.
            options.permissions = PermissionPolicy::Allow;
            Box::new(HotAdapter::new(
                providers.session_runtime(runtime, config)?,
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
pub fn loop_agent(
    providers: &Providers,
    name: Option<&str>,
) -> Result<&'static CliInfo, AgentError> {
    let provider = match name {
        Some(name) => providers.get(name),
        None => providers.first(),
    };
    let name = name.unwrap_or_default();
    match provider {
        Some(provider) => Ok(provider.info()),
        None => match providers.runtime(name, RuntimeConfig::default()) {
            Err(error) => Err(error),
            Ok(_) => Err(AgentError::refused(
                "runtime",
                format!("`{name}` cannot be used in a loop"),
            )),
        },
    }
}

/// Creates a fallback of a loop in this directory. `text` is the name of a provider, or `NAME:MODEL`. `config_of`
/// returns the configuration of its process, and `env` has the variables of the agent's `.env`.
///
/// # Errors
///
/// Fails if the name is unknown, or if a file of the agent cannot be used.
pub(crate) fn loop_fallback(
    providers: &Providers,
    text: &str,
    folder: &AgentFolder,
    env: &BTreeMap<String, String>,
    config_of: &dyn Fn(&CliInfo) -> RuntimeConfig,
) -> Result<Candidate, AgentError> {
    let invalid = |problem: String| AgentError::invalid_params(format!("FALLBACK: {problem}"));
    let fallback = Fallback::parse(providers, text).map_err(invalid)?;
    let agent = loop_agent(providers, Some(&fallback.provider));
    let mut settings = Settings::new(agent.map_err(|error| invalid(error.message))?);
    settings.model = fallback.model;
    let params =
        fallback_params(&settings, folder, env).map_err(|error| invalid(error.to_string()))?;
    providers.candidate(settings.agent.id, config_of(settings.agent), params)
}
