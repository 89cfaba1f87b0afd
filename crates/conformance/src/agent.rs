//! The player of a scenario: a CLI by its provider, or any ACP agent by its command.

use std::fmt;
use std::sync::Arc;

use anyhow::Context;
use teamster::{AgentRuntime, Capabilities, Providers, RuntimeConfig, SessionRuntime};
use teamster_mock_model::{Cli, Pointing};

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
    provider: String,
    only_sessions: bool,
    /// Returns the configuration for a model with this address.
    point_at: Box<dyn Fn(&str) -> Pointing + Send + Sync>,
}

impl Candidate {
    /// Creates the agent that this command starts, or the provider with this name. It is never freed.
    pub(crate) fn new(
        name: &str,
        command: &str,
        point_at: impl Fn(&str) -> Pointing + Send + Sync + 'static,
    ) -> anyhow::Result<&'static Self> {
        let mut known = Providers::builtin().all_with_sessions().into_iter();
        let (provider, only_sessions) = match known.find(|it| it.info().id == command) {
            Some(known) => (command.to_owned(), known.only_sessions()),
            None => (format!("acp:{command}"), true),
        };
        // A command that cannot be read is reported before anything is played.
        teamster::create_session_runtime(&provider, RuntimeConfig::default())?;
        Ok(Box::leak(Box::new(Self {
            name: name.to_owned(),
            provider,
            only_sessions,
            point_at: Box::new(point_at),
        })))
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

    fn provider(&self) -> &str {
        match self {
            Self::Cli(cli) => cli.id(),
            Self::Acp(candidate) => &candidate.provider,
        }
    }

    pub(crate) fn capabilities(&self) -> anyhow::Result<Capabilities> {
        let provider = Providers::builtin().get(self.provider());
        Ok(provider.context("unknown provider")?.capabilities().clone())
    }

    /// Creates a runtime with a process for each run.
    pub(crate) fn runtime(&self, config: RuntimeConfig) -> anyhow::Result<Arc<dyn AgentRuntime>> {
        Ok(teamster::create_cli_runtime(self.provider(), config)?)
    }

    /// Returns whether a run of an ACP agent is a session of one turn, so that its output is of the protocol.
    pub(crate) fn runs_by_protocol(&self) -> bool {
        match self {
            Self::Cli(_) => false,
            Self::Acp(candidate) => candidate.only_sessions,
        }
    }

    pub(crate) fn sessions(
        &self,
        config: RuntimeConfig,
    ) -> anyhow::Result<Arc<dyn SessionRuntime>> {
        Ok(teamster::create_session_runtime(self.provider(), config)?)
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
