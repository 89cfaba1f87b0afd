//! Settings of the runtime.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use derive_setters::Setters;
use serde::Deserialize;
use teamster_core::Usage;
use teamster_process::{EnvPolicy, RuntimeConfig};

/// The cost of a model's tokens in USD, by the model's name (such as `openai/gpt-5.1`). `None` if it has no price.
pub type Prices = Arc<dyn Fn(&str, &Usage) -> Option<f64> + Send + Sync>;

/// Settings of the runtime: the same for all its runs.
///
/// ```
/// use teamster_embedded::EmbeddedConfig;
///
/// let config = EmbeddedConfig::default().model_provider("anthropic").state_dir("/var/lib/agent");
/// assert_eq!(config.model_provider.as_deref(), Some("anthropic"));
/// ```
#[derive(Clone, Default, Deserialize, Setters)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
#[setters(strip_option)]
#[non_exhaustive]
pub struct EmbeddedConfig {
    /// Which variables of the environment count and reach the tools, limits of time, and how the processes of
    /// tools are ended. What is about a CLI's program and its output does not count.
    pub process: RuntimeConfig,
    /// Where sessions are kept. Unset, `teamster/embedded/sessions` in the user's folder for state
    /// (`XDG_STATE_HOME`, else `~/.local/state`).
    #[setters(into)]
    pub state_dir: Option<PathBuf>,
    /// The service of a model that is named without one, such as `anthropic`.
    #[setters(into)]
    pub model_provider: Option<String>,
    /// The address of the model's service, over that of the environment.
    #[setters(into)]
    pub base_url: Option<String>,
    /// The key for the model's service, over that of the environment.
    #[setters(into)]
    pub api_key: Option<String>,
    /// Prices of tokens. Without it, a run has no cost and takes no limit of it.
    #[setters(skip)]
    #[serde(skip)]
    pub prices: Option<Prices>,
    /// Why no run can begin. Every run is refused with it.
    #[setters(into)]
    pub problem: Option<String>,
}

impl EmbeddedConfig {
    /// Sets what tokens cost.
    #[must_use]
    pub fn prices(
        mut self,
        prices: impl Fn(&str, &Usage) -> Option<f64> + Send + Sync + 'static,
    ) -> Self {
        self.prices = Some(Arc::new(prices));
        self
    }

    /// A variable of the environment as a run sees it: its own, else ours where the policy lets it through.
    pub(crate) fn variable(
        &self,
        name: &str,
        own: &std::collections::BTreeMap<String, String>,
    ) -> Option<String> {
        if let Some(value) = own.get(name) {
            return Some(value.clone());
        }
        let is_let_through = match &self.process.env_policy {
            EnvPolicy::Clean { allow } => allow.iter().any(|allowed| allowed == name),
            _ => !self
                .process
                .env_remove
                .iter()
                .any(|removed| removed == name),
        };
        std::env::var(name).ok().filter(|_| is_let_through)
    }
}

/// Without the key.
impl fmt::Debug for EmbeddedConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EmbeddedConfig")
            .field("process", &self.process)
            .field("state_dir", &self.state_dir)
            .field("model_provider", &self.model_provider)
            .field("api_key", &self.api_key.is_some())
            .field("prices", &self.prices.is_some())
            .finish_non_exhaustive()
    }
}
