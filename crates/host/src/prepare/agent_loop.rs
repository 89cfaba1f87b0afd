//! The preparation of agents' loops.
//!
//! The settings of a loop are in the directory of its agent, which `teamster-loop` reads. Here it gets what every run of
//! this machine gets: the configuration of its processes, the history, the logs, the locks of its sessions.

use std::io::Write;
use std::path::{Path, PathBuf};

use teamster_api::Trusted;
use teamster_core::AgentError;
use teamster_loop::{AgentLoop, Control, Log, LoopBuilder, LoopError, TickOptions};
use teamster_process::{RecordTo, foreign_git_variables};

use crate::environment::CONTAINER_VARIABLE;
use crate::history::KeptHistory;
use crate::{Host, params, state};

/// Settings of a loop that are not in the directory of its agent.
#[derive(Default)]
#[non_exhaustive]
pub struct LoopOptions {
    /// Handle that wakes or stops the loop.
    pub control: Control,
    /// Number of ticks after which the loop ends. Default: no limit.
    pub ticks: Option<u64>,
    /// Folder for recordings of the agent's CLI, absolute: one for each of its processes.
    pub record_to: Option<PathBuf>,
    /// Store of the history. Default: that of the user.
    pub store: Option<String>,
    /// Writer to which the log of the loop is copied.
    pub copy_log_to: Option<Box<dyn Write + Send>>,
}

/// A loop that is ready to start.
#[must_use = "the loop has not been started"]
#[non_exhaustive]
pub struct HostedLoop {
    /// The agent's directory, absolute and without links.
    pub directory: PathBuf,
    /// Log of the loop.
    pub log: Log,
    agent_loop: AgentLoop,
    history: KeptHistory,
}

impl Host {
    /// Prepares the loop of the agent in this directory. Nothing is started. What it goes without, such as the history, is
    /// in its log.
    ///
    /// # Errors
    ///
    /// Fails if the directory, a file or a setting cannot be used, or if the loop is stopped meanwhile.
    pub async fn prepare_loop(
        &self,
        directory: &Path,
        options: LoopOptions,
    ) -> Result<HostedLoop, LoopError> {
        let LoopOptions {
            control,
            ticks,
            record_to,
            store,
            copy_log_to,
        } = options;
        let mut config = params::base_config();
        config.container = params::container(&Trusted::default()).map_err(LoopError::Agent)?;
        if (config.container.as_ref()).is_some_and(|container| container.mounts.is_empty()) {
            let problem = "a loop resumes its session, and a container without a mount keeps none: add a directory in \
                           which the CLI keeps its sessions, such as /srv/login:/home/agent/.claude";
            let error = AgentError::refused_item("container", CONTAINER_VARIABLE, problem);
            return Err(LoopError::Agent(error));
        }
        // The program may move to the directory before it starts the agent.
        let of_git = foreign_git_variables(directory).iter();
        (config.env_remove).extend(of_git.map(|name| (*name).to_owned()));
        config.record_to = record_to.map(RecordTo::Each);

        let history = self.history(store.as_deref(), None).await;
        let history = history.map_err(LoopError::Agent)?;
        let mut ticks_of = TickOptions::default();
        ticks_of.observer = self.observed(history.observer());
        ticks_of.holds = history.holds(self, false);
        let mut builder = LoopBuilder::new(directory)
            .providers(self.providers().clone())
            .runtime_config(config)
            .control(control)
            .ticks_limit(ticks)
            .tick_options(ticks_of);
        let runs = state::runs();
        if let Ok(runs) = &runs {
            let retention = state::retention().map_err(LoopError::Agent)?;
            builder = builder.runs(runs.clone()).retention(retention);
        }
        if let Some(locks) = state::session_locks(None) {
            builder = builder.session_locks(locks);
        }
        if let Some(copy) = copy_log_to {
            builder = builder.copy_log_to(copy);
        }
        let prepared = builder.build().await?;

        let log = prepared.log;
        for warning in history.take_warnings() {
            log.line(format!("warning: {}", warning.text));
        }
        history.log_errors_to(&log);
        if runs.is_err() {
            log.line("warning: the ticks have no logs: neither XDG_STATE_HOME nor HOME is set to an absolute path");
        }
        Ok(HostedLoop {
            directory: prepared.directory,
            log,
            agent_loop: prepared.agent_loop,
            history,
        })
    }
}

impl HostedLoop {
    /// Runs the loop until it is stopped or has run its ticks, and closes its history. Returns the error of the last
    /// tick, if it failed.
    ///
    /// # Errors
    ///
    /// Fails as [`AgentLoop::run`] does.
    pub async fn run(self) -> Result<Option<AgentError>, AgentError> {
        let ended = self.agent_loop.run().await;
        // Its errors are in the log already.
        let _ = self.history.close().await;
        ended
    }
}
