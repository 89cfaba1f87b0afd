//! Agents whose model loop runs in this process.

use std::fmt;
use std::sync::Arc;

use teamster_core::provider::{DecodedResult, Decoder, Events, Exit, Launch};
use teamster_core::{
    AgentError, Capabilities, CliInfo, CliProvider, ExecuteParams, SessionRuntime,
};
#[cfg(all(feature = "embedded", feature = "prices"))]
use teamster_prices::{PriceFileError, PriceList};
use teamster_process::RuntimeConfig;

/// Agent whose model loop runs in this process. It has no CLI; its runtime is created from the settings alone.
///
/// The [`CliInfo`] has an empty `program`.
#[derive(Clone)]
pub struct InProcess {
    pub(crate) info: &'static CliInfo,
    capabilities: Arc<Capabilities>,
    make: Arc<dyn Fn(RuntimeConfig) -> Arc<dyn SessionRuntime> + Send + Sync>,
}

impl InProcess {
    /// Creates an agent whose runtimes come from this function. Only settings about the environment, time
    /// limits and the processes of tools apply.
    pub fn new(
        info: &'static CliInfo,
        make: impl Fn(RuntimeConfig) -> Arc<dyn SessionRuntime> + Send + Sync + 'static,
    ) -> Self {
        Self {
            info,
            capabilities: make(RuntimeConfig::default()).capabilities().clone().into(),
            make: Arc::new(make),
        }
    }

    /// Creates a runtime with these settings.
    ///
    /// # Errors
    ///
    /// Fails if they have a container: the agent cannot be in one.
    pub fn runtime(&self, config: RuntimeConfig) -> Result<Arc<dyn SessionRuntime>, AgentError> {
        if config.container.is_some() {
            let name = self.info.name;
            let problem = format!("{name} runs in this process, so it cannot be in a container");
            return Err(AgentError::refused("container", problem));
        }
        Ok((self.make)(config))
    }

    /// Returns the agent as a provider whose CLI cannot be started.
    pub(crate) fn provider(&self) -> Arc<dyn CliProvider> {
        Arc::new(NoProgram(self.clone()))
    }
}

impl fmt::Debug for InProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("InProcess").field(&self.info.id).finish()
    }
}

/// Returns the embedded agent, with the prices of the user's file and the built-in table.
#[cfg(feature = "embedded")]
pub(crate) fn embedded() -> InProcess {
    use teamster_embedded::{Embedded, EmbeddedConfig};

    InProcess::new(&teamster_embedded::INFO, |process| {
        let config = EmbeddedConfig::default().process(process);
        #[cfg(feature = "prices")]
        let config = {
            let own = |name: &str| std::env::var_os(name);
            priced(config, PriceList::of_user(own))
        };
        Arc::new(Embedded::new(config))
    })
}

/// Sets the prices. If the user's price file cannot be read, runs are refused: other prices would give wrong
/// costs and limits.
#[cfg(all(feature = "embedded", feature = "prices"))]
fn priced(
    mut config: teamster_embedded::EmbeddedConfig,
    list: Result<PriceList, PriceFileError>,
) -> teamster_embedded::EmbeddedConfig {
    match list {
        Ok(list) => config.prices(move |model, usage| list.estimate_model(model, usage)),
        Err(error) => {
            let why = match std::error::Error::source(&error) {
                Some(source) => format!("{error}: {source}"),
                None => error.to_string(),
            };
            config.problem = Some(format!("the file of prices cannot be used: {why}"));
            config
        }
    }
}

/// Provider of an agent without a program.
struct NoProgram(InProcess);

impl CliProvider for NoProgram {
    fn info(&self) -> &'static CliInfo {
        self.0.info
    }

    fn capabilities(&self) -> &Capabilities {
        &self.0.capabilities
    }

    fn launch(&self, _params: &ExecuteParams) -> Result<Launch, AgentError> {
        let name = self.0.info.name;
        Err(AgentError::invalid_params(format!(
            "{name} runs in this process: there is nothing to start"
        )))
    }

    fn decoder(&self, _params: &ExecuteParams) -> Box<dyn Decoder> {
        Box::new(NoOutput)
    }
}

/// Decoder of a program that is never started.
struct NoOutput;

impl Decoder for NoOutput {
    fn line(&mut self, line: &[u8], out: &mut Events) {
        out.unknown(line);
    }

    fn finish(&mut self, _exit: &Exit, _out: &mut Events) -> DecodedResult {
        DecodedResult::default()
    }
}

#[cfg(all(test, feature = "embedded"))]
mod tests {
    use super::*;
    use crate::Providers;
    use teamster_core::AgentRuntime;

    #[test]
    fn the_embedded_runtime_is_found_by_its_name_and_has_sessions() {
        let providers = Providers::builtin();
        let runtime = providers
            .runtime(" Embedded", RuntimeConfig::default())
            .unwrap();
        assert_eq!(runtime.id(), "embedded");
        assert_eq!(runtime.capabilities().cost, cfg!(feature = "prices"));
        let sessions = providers
            .session_runtime("embedded", RuntimeConfig::default())
            .unwrap();
        assert!(sessions.session_capabilities().steer);
        let provider = providers.get("embedded").unwrap();
        assert_eq!(provider.info().program, "");
        assert!(provider.launch(&ExecuteParams::new("hi")).is_err());
    }

    #[test]
    fn agent_of_this_process_is_in_no_container() {
        let container =
            teamster_core::Container::new(teamster_core::ContainerEngine::Docker, "agents:1");
        let config = RuntimeConfig::default().container(container);
        let error = Providers::builtin()
            .runtime("embedded", config)
            .err()
            .unwrap();
        assert_eq!(
            error.message,
            "container: Embedded runs in this process, so it cannot be in a container"
        );
    }

    #[cfg(feature = "prices")]
    #[test]
    fn the_users_prices_apply_and_an_unreadable_file_is_refused() {
        use std::path::Path;

        use teamster_embedded::{Embedded, EmbeddedConfig};

        let with = |text: &str| {
            let list = PriceList::with_text(text, Path::new("/etc/prices.toml"));
            priced(EmbeddedConfig::default(), list)
        };
        let config = with("[models.\"mine\"]\ninput = 2\noutput = 10\n");
        let mut usage = teamster_core::Usage::default();
        usage.input_tokens = Some(1_000_000);
        usage.output_tokens = Some(100_000);
        let prices = config.prices.unwrap();
        assert_eq!(prices("ollama/mine", &usage), Some(3.0));

        let config = with("[models.\"mine\"]\ninput = -1\n");
        let params = ExecuteParams::new("hi").model("ollama/mine");
        let error = Embedded::new(config).check(&params).unwrap_err();
        let begin = "the file of prices cannot be used: /etc/prices.toml:2:";
        assert!(error.message.starts_with(begin), "{}", error.message);
    }
}
