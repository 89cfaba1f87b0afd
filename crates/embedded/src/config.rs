//! Settings of the runtime.

use std::path::PathBuf;
use std::sync::Arc;

use serde::Deserialize;
use teamster_core::Usage;
use teamster_process::{EnvPolicy, RuntimeConfig};

/// Function from a model's name (such as `openai/gpt-5.1`) and its usage to the cost in USD. Returns `None` for a
/// model without a price.
pub type Prices = Arc<dyn Fn(&str, &Usage) -> Option<f64> + Send + Sync>;

/// Settings of the runtime, for all its runs.
///
/// ```
/// use teamster_embedded::EmbeddedConfig;
///
/// let config = EmbeddedConfig::default().model_provider("anthropic").state_dir("/var/lib/agent");
/// assert_eq!(config.model_provider.as_deref(), Some("anthropic"));
/// ```
#[derive(Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct EmbeddedConfig {
    /// Environment variables that reach the runtime and its tools, time limits, and how processes of tools are
    /// stopped. Settings about a CLI's program and output are ignored.
    pub process: RuntimeConfig,
    /// Folder of sessions. The default is `teamster/embedded/sessions` in the user's state folder (`XDG_STATE_HOME`,
    /// else `~/.local/state`).
    pub state_dir: Option<PathBuf>,
    /// Service of models that are named without one, such as `anthropic`.
    pub model_provider: Option<String>,
    /// Address of the model's service. It overrides the environment.
    pub base_url: Option<String>,
    /// Key for the model's service. It overrides the environment.
    pub api_key: Option<String>,
    /// Prices of tokens. Without them, a run has no cost and rejects a cost limit.
    #[serde(skip)]
    pub prices: Option<Prices>,
    /// A problem that makes every run fail with this message.
    pub problem: Option<String>,
}

teamster_core::setters! {
    EmbeddedConfig {
        set process: RuntimeConfig,
        some_into state_dir: PathBuf,
        some_into model_provider: String,
        some_into base_url: String,
        some_into api_key: String,
        some_into problem: String,
    }
}

impl EmbeddedConfig {
    /// Sets the prices of tokens.
    #[must_use]
    pub fn prices(
        mut self,
        prices: impl Fn(&str, &Usage) -> Option<f64> + Send + Sync + 'static,
    ) -> Self {
        self.prices = Some(Arc::new(prices));
        self
    }

    /// Returns an environment variable as a run sees it: the run's value, else this process's value if the policy
    /// allows it.
    pub(crate) fn variable(
        &self,
        name: &str,
        own: &std::collections::BTreeMap<String, String>,
    ) -> Option<String> {
        if let Some(value) = own.get(name) {
            return Some(value.clone());
        }
        std::env::var(name).ok().filter(|_| self.lets_through(name))
    }

    /// Returns whether a variable of this process is one of its agents.
    pub(crate) fn lets_through(&self, name: &str) -> bool {
        match &self.process.env_policy {
            EnvPolicy::Clean { allow } => allow.iter().any(|allowed| allowed == name),
            _ => !self.process.env_remove.iter().any(|it| it == name),
        }
    }
}

// Omits the key.
teamster_core::debug_fields!(EmbeddedConfig |it| {
    process: it.process,
    state_dir: it.state_dir,
    model_provider: it.model_provider,
    api_key: it.api_key.is_some(),
    prices: it.prices.is_some(),
});
