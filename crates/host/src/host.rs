//! The machine that carries out runs.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use teamster_core::{AgentError, CliInfo};
use teamster_orchestrator::{Orchestrator, OrchestratorConfig, PriceList, RunObserver};
use teamster_providers::Providers;

use crate::observers::Both;
use crate::own_agents::with_own_agents;
use crate::{environment, state};

/// Executor of runs and sessions on this machine: the agents by their names, and the program that runners and guards
/// are started as. Clones share it.
#[derive(Clone)]
pub struct Host {
    providers: Providers,
    program: Option<PathBuf>,
    /// True until the user's own agents are added.
    wants_own_agents: bool,
    on_notice: Arc<dyn Fn(Notice) + Send + Sync>,
    observer: Option<Arc<dyn RunObserver>>,
}

/// Message for the user without a caller that waits for it, such as that the history of an ended run is incomplete.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// Something is less than what was requested.
    Warning(String),
    /// Something failed.
    Error(String),
}

impl Host {
    /// Creates a host with these agents, without a program for runners and guards. Notices are dropped.
    pub fn new(providers: Providers) -> Self {
        Self {
            providers,
            program: None,
            wants_own_agents: false,
            on_notice: Arc::new(|_| ()),
            observer: None,
        }
    }

    /// Adds the agents of the user's file (`teamster/agents.toml`) when the host is [initialized](crate::init).
    #[must_use]
    pub fn with_own_agents(mut self) -> Self {
        self.wants_own_agents = true;
        self
    }

    /// Sets the program that runners and guards are started as, such as an installed `teamster`. It MUST call
    /// [`init`](crate::init) first in its `main`. Default: this program, once it has called that itself.
    #[must_use]
    pub fn program(mut self, program: impl Into<PathBuf>) -> Self {
        self.program = Some(program.into());
        self
    }

    /// Sets the function that is called with notices. Parameters in their text are between backticks.
    #[must_use]
    pub fn on_notice(mut self, notice: impl Fn(Notice) + Send + Sync + 'static) -> Self {
        self.on_notice = Arc::new(notice);
        self
    }

    /// Sets the observer of all runs, turns of sessions and ticks of loops that this process carries out, beside their
    /// history. A runner is a process of its own: its `main` sets its own.
    #[must_use]
    pub fn observer(mut self, observer: Arc<dyn RunObserver>) -> Self {
        self.observer = Some(observer);
        self
    }

    /// Returns the observer of a run with this history.
    pub(crate) fn observed(
        &self,
        history: Option<Arc<dyn RunObserver>>,
    ) -> Option<Arc<dyn RunObserver>> {
        match (self.observer.clone(), history) {
            (Some(own), Some(history)) => Some(Arc::new(Both { own, history })),
            (own, history) => own.or(history),
        }
    }

    /// Completes the host of a program that knows its role.
    pub(crate) fn into_started(mut self) -> Result<Self, AgentError> {
        // A value that is not valid is an error of what needs it.
        if let Ok(limit) = state::git_silence() {
            teamster_workspace::set_git_silence(limit);
        }
        if self.wants_own_agents {
            self.providers = with_own_agents(self.providers)?;
            self.wants_own_agents = false;
        }
        // A newer version that replaces the program has the same path. Without it, starting a runner is refused.
        self.program = self.program.or_else(|| std::env::current_exe().ok());
        Ok(self)
    }

    /// Returns the agents.
    pub fn providers(&self) -> &Providers {
        &self.providers
    }

    /// Returns the program of runners and guards.
    pub fn runner_program(&self) -> Option<&Path> {
        self.program.as_deref()
    }

    /// Returns the agent with this name.
    ///
    /// # Errors
    ///
    /// Fails with the error in an agent's command, or with the names that there are.
    pub fn agent(&self, name: &str) -> Result<&'static CliInfo, AgentError> {
        let provider = self.providers.find(name);
        let provider = provider.map_err(|problem| AgentError::refused("provider", problem))?;
        Ok(provider.info())
    }

    pub(crate) fn notice(&self, notice: Notice) {
        (self.on_notice)(notice);
    }

    /// Creates the orchestrator of runs, with the user's prices. If their file cannot be used, warns and uses the table: a
    /// run needs no prices.
    ///
    /// # Errors
    ///
    /// Fails if the orchestrator cannot be created.
    pub fn orchestrator(&self) -> Result<Orchestrator, AgentError> {
        let prices = PriceList::of_user(environment::variable).unwrap_or_else(|error| {
            let error = anyhow::Error::from(error);
            let error = error.context("ignoring the file of prices, which cannot be used");
            self.notice(Notice::Warning(format!("{error:#}")));
            PriceList::default()
        });
        Orchestrator::new(OrchestratorConfig::default().prices(prices))
    }
}

teamster_core::debug_fields!(Host { providers, program });
