//! Adapters, agents and fallbacks of loops, by the name of a provider.

use std::collections::BTreeMap;

use teamster_core::{AgentError, CliInfo, ExecuteParams, PermissionPolicy, SessionOptions};
use teamster_orchestrator::Candidate;
use teamster_process::RuntimeConfig;
use teamster_providers::Providers;

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
///
/// ```
/// use teamster_core::ExecuteParams;
/// use teamster_loop::{Settings, create_loop_adapter};
/// use teamster_process::RuntimeConfig;
///
/// let agent = teamster_providers::provider("claude").expect("is in this build");
/// let settings = Settings::new(agent.info());
/// let params = ExecuteParams::new("");
/// let agent = create_loop_adapter(&settings, params, RuntimeConfig::default())?;
/// assert!(agent.keeps_context());
/// # Ok::<(), teamster_core::AgentError>(())
/// ```
pub fn create_loop_adapter(
    settings: &Settings,
    params: ExecuteParams,
    config: RuntimeConfig,
) -> Result<Box<dyn Adapter>, AgentError> {
    loop_adapter(&Providers::builtin(), settings, params, config)
}

/// Creates the adapter of a loop with one of these providers. See [`create_loop_adapter`].
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
        None => providers.usual(),
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

/// Creates a fallback of a loop in this directory. `name` is that of a provider, or `NAME:MODEL`. `config`
/// applies to its process, and `env` has the variables of the agent's `.env`.
///
/// # Errors
///
/// Fails if the name is unknown, or if a file of the agent cannot be used.
pub(crate) fn loop_fallback(
    providers: &Providers,
    name: &str,
    folder: &AgentFolder,
    env: &BTreeMap<String, String>,
    config: RuntimeConfig,
) -> Result<Candidate, AgentError> {
    let (name, model) = agent_and_model(providers, name);
    let invalid = |problem: String| AgentError::invalid_params(format!("FALLBACK: {problem}"));
    let agent = loop_agent(providers, Some(name));
    let mut settings = Settings::new(agent.map_err(|error| invalid(error.message))?);
    settings.model = model.map(str::to_owned);
    let params =
        fallback_params(&settings, folder, env).map_err(|error| invalid(error.to_string()))?;
    providers.candidate(settings.agent.id, config, params)
}

/// Splits `AGENT:MODEL`. The text after `acp:` is a command.
pub(crate) fn agent_and_model<'n>(
    providers: &Providers,
    name: &'n str,
) -> (&'n str, Option<&'n str>) {
    match name.split_once(':') {
        Some((agent, model)) if providers.get(agent).is_some() => (agent, Some(model)),
        _ => (name, None),
    }
}
