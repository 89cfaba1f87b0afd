//! Limits of time.

use std::time::Duration;

use teamster_core::{AgentError, ErrorCode, ErrorKind, Timeouts};

const IDLE: Duration = Duration::from_mins(5);
const TOOL: Duration = Duration::from_mins(30);

/// Longest silence in each phase. [`Duration::MAX`] is no limit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Until the first piece of the first answer, if that differs from `idle`.
    startup: Option<Duration>,
    /// Until the next piece of an answer.
    pub(crate) idle: Duration,
    /// Until a tool has ended.
    pub(crate) tool: Duration,
}

impl Limits {
    pub(crate) fn new(timeouts: Timeouts) -> Self {
        Self {
            startup: timeouts.startup,
            idle: timeouts.idle.unwrap_or(IDLE),
            tool: timeouts.tool.unwrap_or(TOOL),
        }
    }

    /// These, less those that are set for one turn.
    pub(crate) fn with(self, timeouts: Timeouts) -> Self {
        Self {
            startup: timeouts.startup.or(self.startup),
            idle: timeouts.idle.unwrap_or(self.idle),
            tool: timeouts.tool.unwrap_or(self.tool),
        }
    }

    /// How long the next piece of an answer may take; `first`: no piece of any answer has come yet.
    pub(crate) fn of_model(&self, first: bool) -> Duration {
        self.startup.filter(|_| first).unwrap_or(self.idle)
    }

    /// The error of a model that sent nothing for too long.
    pub(crate) fn model_error(&self, first: bool) -> AgentError {
        let limit = self.of_model(first);
        let code = if first && self.startup.is_some() {
            ErrorCode::StartupTimeout
        } else {
            ErrorCode::WatchdogTimeout
        };
        let message = format!("the model sent nothing for {limit:?}");
        AgentError::new(code, ErrorKind::Timeout, message)
    }

    /// The error of a tool that took too long.
    pub(crate) fn tool_error(&self, tool: &str) -> AgentError {
        let message = format!("the tool {tool} did not end within {:?}", self.tool);
        AgentError::new(ErrorCode::WatchdogTimeout, ErrorKind::Timeout, message)
    }
}
