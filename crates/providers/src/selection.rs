//! Selection of a runtime by the owner of the agent's loop.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use derive_setters::Setters;
use serde::Deserialize;
use teamster_core::{AgentError, SharedRuntime};
use teamster_process::RuntimeConfig;

use crate::Providers;

/// Owner of an agent's loop: the program that calls the model, runs the tools and decides when the run ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum LoopOwner {
    /// A coding-agent CLI, which runs as a subprocess.
    Cli,
    /// This process.
    Embedded,
}

impl LoopOwner {
    /// Returns the name, as in a configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cli => "cli",
            Self::Embedded => "embedded",
        }
    }
}

impl std::str::FromStr for LoopOwner {
    type Err = AgentError;

    fn from_str(name: &str) -> Result<Self, AgentError> {
        match name {
            "cli" => Ok(Self::Cli),
            "embedded" => Ok(Self::Embedded),
            _ => {
                let name = teamster_core::text::excerpt(name, 100);
                let problem = format!("there is no loop owner `{name}`; there is: cli, embedded");
                Err(AgentError::invalid_params(problem).about("owner"))
            }
        }
    }
}

/// Configuration of an agent and its runtime.
///
/// ```
/// # use teamster_core::AgentRuntime;
/// # use teamster_providers::AgentConfig;
/// let json = r#"{"agent": "codex", "cli": {"dieWithParent": true}}"#;
/// let config: AgentConfig = serde_json::from_str(json)?;
/// assert_eq!(teamster_providers::get_runtime(&config)?.id(), "codex");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default, Deserialize, Setters)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
#[setters(strip_option)]
#[non_exhaustive]
pub struct AgentConfig {
    /// Owner of the loop. Default: a CLI if `agent` is the name of one, in this build or another, else this
    /// process.
    pub owner: Option<LoopOwner>,
    /// Name of the agent. With [`LoopOwner::Cli`] it is that of a CLI ([`provider`](crate::provider) lists the
    /// names), otherwise one that the runtime defines.
    #[setters(into)]
    pub agent: String,
    /// Service of the models, such as `anthropic`. It never selects the runtime. For a CLI it MUST be unset: a CLI
    /// has its own settings and variables for the service.
    #[setters(into)]
    pub model_provider: Option<String>,
    /// Settings of a CLI's runtime.
    #[setters(rename = "cli_config")]
    pub cli: RuntimeConfig,
}

impl AgentConfig {
    /// Creates the configuration of a CLI with default settings.
    pub fn cli(agent: impl Into<String>) -> Self {
        Self {
            owner: Some(LoopOwner::Cli),
            agent: agent.into(),
            ..Self::default()
        }
    }

    /// Creates the configuration of an agent whose loop runs in this process.
    pub fn embedded(agent: impl Into<String>) -> Self {
        Self {
            owner: Some(LoopOwner::Embedded),
            agent: agent.into(),
            ..Self::default()
        }
    }
}

/// Creates the runtime for an agent, with the runtimes of this build ([`Runtimes::default`]): the embedded one,
/// unless the configuration asks for a CLI.
///
/// # Errors
///
/// Fails as [`Runtimes::get`] does.
///
/// ```
/// use teamster_core::AgentRuntime;
/// use teamster_providers::AgentConfig;
///
/// let runtime = teamster_providers::get_runtime(&AgentConfig::cli("codex"))?;
/// assert_eq!(runtime.id(), "codex");
/// # Ok::<(), teamster_core::AgentError>(())
/// ```
pub fn get_runtime(config: &AgentConfig) -> Result<SharedRuntime, AgentError> {
    Runtimes::default().get(config)
}

/// Function that creates a runtime, or returns the error.
type Factory = Arc<dyn Fn(&AgentConfig) -> Result<SharedRuntime, AgentError> + Send + Sync>;

/// Factories of runtimes, by the owner of the loop.
///
/// ```
/// # use std::sync::Arc;
/// use teamster_core::{AgentError, AgentRuntime, SharedRuntime};
/// use teamster_providers::{AgentConfig, LoopOwner, Runtimes};
///
/// # fn example(mine: SharedRuntime) -> Result<(), AgentError> {
/// // Adds a custom loop to the CLIs.
/// let runtimes = Runtimes::default().with(LoopOwner::Embedded, move |config| Ok(mine.clone()));
/// let runtime = runtimes.get(&AgentConfig::embedded("reviewer"))?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Runtimes {
    factories: HashMap<LoopOwner, Factory>,
    /// The CLIs, by whose names a configuration without an owner asks for one.
    providers: Providers,
}

impl Runtimes {
    /// Sets the factory of runtimes for this owner.
    #[must_use]
    pub fn with(
        mut self,
        owner: LoopOwner,
        factory: impl Fn(&AgentConfig) -> Result<SharedRuntime, AgentError> + Send + Sync + 'static,
    ) -> Self {
        self.factories.insert(owner, Arc::new(factory));
        self
    }

    /// Creates the runtime for an agent. No process is started.
    ///
    /// # Errors
    ///
    /// Fails with [`InvalidParams`](teamster_core::ErrorCode::InvalidParams) if the owner has no runtime, or if the
    /// runtime does not know the agent.
    pub fn get(&self, config: &AgentConfig) -> Result<SharedRuntime, AgentError> {
        let owner = config.owner.unwrap_or_else(|| {
            if self.providers.names_other_than_embedded(&config.agent) {
                LoopOwner::Cli
            } else {
                LoopOwner::Embedded
            }
        });
        match self.factories.get(&owner) {
            Some(factory) => factory(config),
            None => {
                let problem = format!(
                    "there is no runtime for the loop owner `{}`: turn on the feature `embedded` of the crate \
                     `teamster`, add a runtime with `Runtimes::with`, or name a CLI with `AgentConfig::cli`",
                    owner.as_str()
                );
                Err(AgentError::invalid_params(problem).about("owner"))
            }
        }
    }
}

impl Runtimes {
    /// Uses the CLIs of these providers.
    pub fn of(providers: Providers) -> Self {
        let runtimes = Self {
            factories: HashMap::new(),
            providers: providers.clone(),
        };
        #[cfg(feature = "embedded")]
        let runtimes = runtimes.with(LoopOwner::Embedded, |config| Ok(embedded(config)));
        runtimes.with(LoopOwner::Cli, move |config| match &config.model_provider {
            None => providers.runtime(&config.agent, config.cli.clone()),
            Some(_) => {
                let problem = format!(
                    "`model_provider` cannot be set for a CLI: {} chooses its service by its own \
                     settings and variables",
                    config.agent
                );
                Err(AgentError::invalid_params(problem).about("model_provider"))
            }
        })
    }
}

/// Creates the embedded runtime. `model_provider` is the service of models whose name has none.
#[cfg(feature = "embedded")]
fn embedded(config: &AgentConfig) -> SharedRuntime {
    let service = config.model_provider.clone();
    crate::in_process::embedded_for(service, config.cli.clone())
}

/// Uses the CLIs of this build.
impl Default for Runtimes {
    fn default() -> Self {
        Self::of(Providers::builtin())
    }
}

impl fmt::Debug for Runtimes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.factories.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use teamster_core::{AgentRuntime, ErrorCode, ExecuteParams, RunStatus};
    use teamster_testkit::mock_runtime::{MockRuntime, Script};

    fn with_mock() -> (Arc<MockRuntime>, Runtimes) {
        let mock = Arc::new(
            MockRuntime::new("mine")
                .run(Script::new().text("from our own loop").completed())
                .repeat_last(),
        );
        let given = mock.clone();
        let runtimes = Runtimes::default().with(LoopOwner::Embedded, move |_| Ok(given.clone()));
        (mock, runtimes)
    }

    #[tokio::test]
    async fn a_loop_of_our_own_is_chosen_by_its_owner() {
        let (mock, runtimes) = with_mock();
        let runtime = runtimes.get(&AgentConfig::embedded("reviewer")).unwrap();
        assert_eq!(runtime.id(), "mine");
        let result = runtime.execute(ExecuteParams::new("go")).result().await;
        assert_eq!(result.status, RunStatus::Completed);
        assert_eq!(result.text, "from our own loop");
        assert_eq!(mock.runs().len(), 1);
    }

    #[cfg(feature = "claude")]
    #[test]
    fn the_model_provider_never_chooses_the_runtime() {
        let (_, runtimes) = with_mock();
        for provider in ["anthropic", "openai", "claude", "cli"] {
            let mut own = AgentConfig::embedded("claude");
            own.model_provider = Some(provider.into());
            assert_eq!(runtimes.get(&own).unwrap().id(), "mine");

            let mut cli = AgentConfig::cli("claude");
            assert_eq!(runtimes.get(&cli).unwrap().id(), "claude");
            cli.model_provider = Some(provider.into());
            let error = runtimes.get(&cli).err().unwrap();
            assert_eq!(error.code, ErrorCode::InvalidParams);
            assert!(error.message.contains("model_provider"), "{error}");
        }
    }

    #[cfg(feature = "embedded")]
    #[test]
    fn the_embedded_runtime_owns_its_loop_whatever_models_it_asks() {
        for provider in [None, Some("ollama"), Some("openai")] {
            let mut config = AgentConfig::embedded("reviewer");
            config.model_provider = provider.map(str::to_owned);
            let runtime = get_runtime(&config).unwrap();
            assert_eq!(runtime.id(), "embedded");
            let params = ExecuteParams::new("hi").model("llama3");
            let refused = runtime.check(&params).err().map(|error| error.message);
            match provider {
                Some("ollama") => assert_eq!(refused, None),
                Some(_) => assert!(refused.unwrap().contains("OPENAI_API_KEY")),
                None => assert!(refused.unwrap().contains("names no service")),
            }
        }
    }

    #[cfg(not(feature = "embedded"))]
    #[test]
    fn an_owner_without_a_runtime_is_an_error() {
        let error = get_runtime(&AgentConfig::embedded("x")).err().unwrap();
        assert_eq!(error.code, ErrorCode::InvalidParams);
        assert!(error.message.contains("`embedded`"), "{error}");
    }

    #[test]
    fn without_an_owner_the_loop_is_in_this_process_unless_a_cli_is_named() {
        let (_, runtimes) = with_mock();
        let chosen = |agent: &str| {
            let config = AgentConfig::default().agent(agent);
            let chosen = runtimes.get(&config);
            chosen.map(|runtime| runtime.id().to_owned())
        };
        for agent in ["", "reviewer", "embedded"] {
            assert_eq!(chosen(agent).unwrap(), "mine", "{agent:?}");
        }
        for (agent, id, in_build) in [
            ("claude", "claude", cfg!(feature = "claude")),
            ("Gemini-CLI", "gemini", cfg!(feature = "gemini")),
        ] {
            match chosen(agent) {
                Ok(chosen) => assert!(in_build && chosen == id, "{chosen}"),
                Err(error) => {
                    let feature = format!("turn on the feature `{id}`");
                    assert!(!in_build && error.message.contains(&feature), "{error}");
                }
            }
        }
    }

    #[test]
    fn an_agent_that_the_runtime_does_not_know_is_an_error() {
        let error = get_runtime(&AgentConfig::cli("nobody")).err().unwrap();
        assert!(error.message.contains("nobody"), "{error}");
    }

    #[test]
    fn owners_by_name() {
        for owner in [LoopOwner::Cli, LoopOwner::Embedded] {
            assert_eq!(owner.as_str().parse::<LoopOwner>().unwrap(), owner);
        }
        assert!("anthropic".parse::<LoopOwner>().is_err());
    }
}
