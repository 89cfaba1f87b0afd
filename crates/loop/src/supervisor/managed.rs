//! Agent of a supervisor, with its configuration and runtime state.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use teamster_api::agents::{AgentState as ReportedState, AgentStatus, LastError};
use teamster_core::time::millis;

use super::agent::{Agent, Exit, Phase, Policy, UNUSABLE};
use super::config::{AgentConfig, Obstacle};
use super::last_start::LastStart;
use super::lock_holder;
use super::offline::{activity, heartbeat, last_error, running, status_of};
use super::process::log_path;
use super::state::{AgentState, ProcessState};
use super::state_folder::resolve_links;
use crate::Log;
use crate::clock::SystemClock;
use crate::refusal::refusal;

#[derive(Debug)]
pub(crate) struct ManagedAgent {
    pub(crate) config: AgentConfig,
    pub(crate) agent: Agent,
    /// The agent's own switch.
    pub(crate) enabled: bool,
    /// The running process, as it is recorded in the state file.
    pub(crate) process: Option<ProcessState>,
    /// The loop was started by another program.
    pub(crate) adopted: bool,
    /// Reason of the last change.
    pub(crate) reason: Option<String>,
    /// The loop ended cleanly after a request.
    pub(crate) stopped_in_order: bool,
    /// Obstacle of the last attempt to start the loop.
    pub(crate) obstacle: Option<Obstacle>,
    /// Last unrequested end of the loop, or the reason that it was not started.
    pub(crate) error: Option<LastError>,
    /// The agent is no longer in the configuration and is dropped when its loop has ended.
    pub(crate) removed: bool,
}

impl ManagedAgent {
    /// Describes the exit of this process, with the reason if the loop could not run.
    pub(super) fn exit_reason(&self, exit: Exit, pid: u32) -> String {
        /// Maximum length of the reason, in bytes.
        const LONGEST: usize = 300;
        let why = match exit {
            Exit::Code(UNUSABLE) => refusal(&self.config.working_dir, pid),
            _ => None,
        };
        match why {
            Some(why) => format!(
                "exited with code {UNUSABLE}: {}",
                teamster_core::text::excerpt(&why, LONGEST)
            ),
            None => exit.to_string(),
        }
    }

    pub(crate) fn new(config: AgentConfig, policy: &Policy, enabled: bool) -> Self {
        Self {
            config,
            agent: Agent::new(policy.clone()),
            enabled,
            process: None,
            adopted: false,
            reason: None,
            stopped_in_order: false,
            obstacle: None,
            error: None,
            removed: false,
        }
    }

    /// Creates the agent of a loop that is no longer in the configuration.
    pub(crate) fn removed(id: &str, process: &ProcessState, policy: &Policy) -> Self {
        let config = AgentConfig {
            id: id.to_owned(),
            alias: None,
            role: None,
            runtime: process.runtime.clone(),
            chrome: process.chrome,
            working_dir: process.working_dir.clone(),
            instructions_file: None,
        };
        Self {
            removed: true,
            ..Self::new(config, policy, false)
        }
    }

    /// Returns the state file's record of a process of this agent.
    pub(crate) fn process_state(
        &self,
        process: teamster_process::ProcessIdentity,
        started_at_ms: u64,
    ) -> ProcessState {
        ProcessState {
            pid: process.pid(),
            start_time: process.start_time(),
            started_at_ms,
            working_dir: resolve_links(&self.config.working_dir),
            runtime: self.config.runtime.clone(),
            chrome: self.config.chrome,
        }
    }

    /// Returns whether the agent's loop may be in this directory, even if it is ending. `directory` is a path
    /// without links.
    pub(crate) fn may_be_in(&self, directory: &Path) -> bool {
        let Some(process) = &self.process else {
            return false;
        };
        let identity = process.identity();
        match identity.directory() {
            // The directory of the process was renamed.
            Some(found) if found == directory => true,
            // The process has ended, so its directory is unknown. Its exit is about to be reported.
            None if !identity.is_running() => true,
            _ => resolve_links(&process.working_dir) == directory,
        }
    }

    /// Returns a loop that another program started in the agent's directory, and its start time in
    /// milliseconds.
    pub(crate) fn started_elsewhere(&self) -> Option<(teamster_process::ProcessIdentity, u64)> {
        let directory = &self.config.working_dir;
        LastStart::running(directory).or_else(|| lock_holder::running(directory))
    }

    pub(crate) fn adopt(&mut self, process: ProcessState, restarts: u32, now: Instant) {
        self.agent.adopt(process.identity(), restarts, now);
        self.process = Some(process);
        self.adopted = true;
    }

    /// Returns whether the running loop was started with the current configuration.
    pub(crate) fn is_up_to_date(&self) -> bool {
        self.process.as_ref().is_none_or(|process| {
            let was = AgentConfig {
                runtime: process.runtime.clone(),
                chrome: process.chrome,
                working_dir: process.working_dir.clone(),
                ..self.config.clone()
            };
            was.starts_like(&self.config)
        })
    }

    /// Appends a message to the log of the agent's loop.
    pub(crate) fn log(&self, message: &str) {
        let clock = Arc::new(SystemClock::new());
        let path = log_path(&self.config.working_dir);
        // The folder of the log is created by the first start. The loop rotates the log, because it knows the
        // size limit.
        Log::new(path, u64::MAX, clock).line(format_args!("supervisor: {message}"));
    }

    pub(crate) fn state(&self) -> AgentState {
        AgentState {
            enabled: self.enabled,
            process: self.process.clone(),
            restarts: self.agent.restarts(),
            reason: self.reason.clone(),
            stopped_in_order: self.stopped_in_order,
            last_error: self.error.clone(),
        }
    }

    pub(crate) fn status(&self, now: Instant, now_ms: u64) -> AgentStatus {
        let started_at_ms = self.process.as_ref().map(|process| process.started_at_ms);
        let activity = started_at_ms.and_then(|it| activity(&self.config.working_dir, it));
        let mut retry_at_ms = self
            .agent
            .starts_at()
            .map(|until| now_ms.saturating_add(millis(until.saturating_duration_since(now))));
        let state = match self.agent.phase() {
            Phase::Stopped => ReportedState::Stopped,
            Phase::Ended => ReportedState::Ended,
            Phase::Failed { .. } => ReportedState::Failed,
            Phase::Starting => ReportedState::Starting,
            Phase::Waiting { until } => {
                if until <= now {
                    retry_at_ms = None;
                    ReportedState::Starting
                } else {
                    ReportedState::BackingOff
                }
            }
            Phase::Running { .. } => match &self.process {
                Some(process) => match running(process.identity(), activity.as_ref()) {
                    ReportedState::Suspended => ReportedState::Suspended,
                    _ if self.agent.is_crash_looping(now) => ReportedState::Failing,
                    state => state,
                },
                None => ReportedState::Running,
            },
            Phase::Stopping { .. } => ReportedState::Stopping,
        };
        let mut status = status_of(&self.config, state);
        status.enabled = self.enabled;
        status.pid = self.process.as_ref().map(|process| process.pid);
        status.started_at_ms = started_at_ms;
        status.removed = self.removed;
        status.adopted = self.adopted && self.process.is_some();
        status.restarts = self.agent.restarts();
        status.retry_at_ms = retry_at_ms;
        status.reason.clone_from(&self.reason);
        status.stopped_in_order = self.stopped_in_order;
        status.last_error = last_error(activity.as_ref(), self.error.as_ref());
        status.heartbeat_ms = heartbeat(&self.config.working_dir, status.pid);
        status.activity = activity;
        status
    }
}
