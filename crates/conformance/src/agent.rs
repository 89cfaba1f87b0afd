//! The player of a scenario: a CLI by its provider, or any ACP agent by its command.

mod watched;

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context;
use teamster::process::{CliRuntime, OneTurn};
use teamster::{
    AgentError, AgentRuntime, Capabilities, CliInfo, CliProvider, ExecuteParams, Providers,
    RuntimeConfig, SessionCapabilities, SessionOptions, SessionProvider, SessionRuntime,
};
use teamster_acp::AcpAgent;
use teamster_core::provider::{Decoder, Launch, SessionProtocol};
use teamster_mock_model::{Cli, Pointing};

use watched::Watched;

/// The player of a scenario.
#[derive(Clone, Copy)]
pub(crate) enum Agent {
    /// A CLI, by its provider.
    Cli(Cli),
    /// Any agent, by its command.
    Acp(&'static Candidate),
}

/// An agent that is named by its command.
pub(crate) struct Candidate {
    /// Short name for people and files.
    pub(crate) name: String,
    agent: Arc<dyn SessionProvider>,
    /// Returns the configuration for a model with this address.
    point_at: Box<dyn Fn(&str) -> Pointing + Send + Sync>,
    /// Its output, by its working directory.
    printed: Arc<Printed>,
}

/// Lines of agents, by their working directory.
#[derive(Debug, Default)]
pub(crate) struct Printed(Mutex<HashMap<PathBuf, Vec<String>>>);

impl Printed {
    /// Records a line.
    pub(crate) fn keep(&self, directory: &Path, line: &[u8]) {
        let line = String::from_utf8_lossy(line).into_owned();
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry(directory.to_owned()).or_default().push(line);
    }

    /// Takes the lines that were recorded so far.
    fn take(&self, directory: &Path) -> Vec<String> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.remove(directory).unwrap_or_default()
    }
}

impl Candidate {
    /// Creates the agent that this command starts, or the provider with this name. It is never freed.
    pub(crate) fn new(
        name: &str,
        command: &str,
        point_at: impl Fn(&str) -> Pointing + Send + Sync + 'static,
    ) -> anyhow::Result<&'static Self> {
        let mut providers = Providers::builtin().all_with_sessions().into_iter();
        let agent = match providers.find(|provider| provider.info().id == command) {
            Some(provider) => provider,
            None => Arc::new(AcpAgent::new(command).map_err(anyhow::Error::msg)?),
        };
        Ok(Box::leak(Box::new(Self {
            name: name.to_owned(),
            agent,
            point_at: Box::new(point_at),
            printed: Arc::default(),
        })))
    }

    fn provider(&self) -> Recorded {
        Recorded {
            agent: Arc::clone(&self.agent),
            printed: Arc::clone(&self.printed),
        }
    }
}

impl Agent {
    /// Returns its short name.
    pub(crate) fn id(&self) -> &str {
        match self {
            Self::Cli(cli) => cli.id(),
            Self::Acp(candidate) => &candidate.name,
        }
    }

    /// Returns the CLI, if the mock model knows it.
    pub(crate) fn cli(&self) -> Option<Cli> {
        match self {
            Self::Cli(cli) => Some(*cli),
            Self::Acp(_) => None,
        }
    }

    /// Returns the configuration for a model with this address.
    pub(crate) fn point_at(&self, url: &str) -> Pointing {
        match self {
            Self::Cli(cli) => cli.point_at(url),
            Self::Acp(candidate) => (candidate.point_at)(url),
        }
    }

    /// Returns the capabilities of its provider.
    pub(crate) fn capabilities(&self) -> anyhow::Result<Capabilities> {
        match self {
            Self::Cli(cli) => {
                let provider = Providers::builtin().get(cli.id());
                let provider = provider.context("unknown provider")?;
                Ok(provider.capabilities().clone())
            }
            Self::Acp(candidate) => Ok(candidate.agent.capabilities().clone()),
        }
    }

    /// Creates a runtime with a process for each run.
    pub(crate) fn runtime(&self, config: RuntimeConfig) -> anyhow::Result<Arc<dyn AgentRuntime>> {
        Ok(match self {
            Self::Cli(cli) => teamster::create_cli_runtime(cli.id(), config)?,
            Self::Acp(candidate) => {
                let runtime = CliRuntime::with_config(candidate.provider(), config);
                if candidate.agent.only_sessions() {
                    Arc::new(OneTurn::new(runtime))
                } else {
                    Arc::new(runtime)
                }
            }
        })
    }

    /// Returns whether a run of an ACP agent is a session of one turn, so that its output is of the protocol.
    pub(crate) fn runs_by_protocol(&self) -> bool {
        match self {
            Self::Cli(_) => false,
            Self::Acp(candidate) => candidate.agent.only_sessions(),
        }
    }

    /// Creates a runtime of sessions.
    pub(crate) fn sessions(
        &self,
        config: RuntimeConfig,
    ) -> anyhow::Result<Arc<dyn SessionRuntime>> {
        Ok(match self {
            Self::Cli(cli) => teamster::create_session_runtime(cli.id(), config)?,
            Self::Acp(candidate) => Arc::new(CliRuntime::with_config(candidate.provider(), config)),
        })
    }

    /// Takes its output in this directory since the last call, if recorded.
    pub(crate) fn printed(&self, directory: &Path) -> Vec<String> {
        match self {
            Self::Cli(_) => Vec::new(),
            Self::Acp(candidate) => candidate.printed.take(directory),
        }
    }
}

impl From<Cli> for Agent {
    fn from(cli: Cli) -> Self {
        Self::Cli(cli)
    }
}

impl fmt::Display for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id())
    }
}

/// An agent whose lines are recorded.
#[derive(Clone)]
struct Recorded {
    agent: Arc<dyn SessionProvider>,
    printed: Arc<Printed>,
}

impl CliProvider for Recorded {
    fn info(&self) -> &'static CliInfo {
        self.agent.info()
    }

    fn capabilities(&self) -> &Capabilities {
        self.agent.capabilities()
    }

    fn native_programs(&self, launcher: &Path) -> Vec<PathBuf> {
        self.agent.native_programs(launcher)
    }

    fn launch(&self, params: &ExecuteParams) -> Result<Launch, AgentError> {
        self.agent.launch(params)
    }

    fn recorded_params(&self, argv: &[String], params: &mut ExecuteParams) {
        self.agent.recorded_params(argv, params);
    }

    fn decoder(&self, params: &ExecuteParams) -> Box<dyn Decoder> {
        let directory = params.working_directory.clone();
        Box::new(Watched::new(
            self.agent.decoder(params),
            directory.unwrap_or_default(),
            Arc::clone(&self.printed),
        ))
    }
}

impl SessionProvider for Recorded {
    fn session_capabilities(&self) -> &SessionCapabilities {
        self.agent.session_capabilities()
    }

    fn only_sessions(&self) -> bool {
        self.agent.only_sessions()
    }

    fn launch_session(&self, options: &SessionOptions) -> Result<Launch, AgentError> {
        self.agent.launch_session(options)
    }

    fn protocol(&self, options: &SessionOptions) -> Box<dyn SessionProtocol> {
        let directory = options.params.working_directory.clone();
        Box::new(Watched::new(
            self.agent.protocol(options),
            directory.unwrap_or_default(),
            Arc::clone(&self.printed),
        ))
    }
}
