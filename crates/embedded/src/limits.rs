//! Time limits.

use std::time::Duration;

use teamster_core::{AgentError, ErrorCode, ErrorKind, Timeouts};

/// Maximum silence in each phase. [`Duration::MAX`] means no limit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Limit for the first chunk of the first answer, if it differs from `idle`.
    startup: Option<Duration>,
    /// Limit for the next chunk of an answer.
    pub(crate) idle: Duration,
    /// Limit for a tool call.
    pub(crate) tool: Duration,
}

impl Limits {
    pub(crate) fn new(timeouts: Timeouts) -> Self {
        let none = Self {
            startup: timeouts.startup,
            idle: Duration::MAX,
            tool: Duration::MAX,
        };
        none.with(Timeouts {
            startup: None,
            ..timeouts.or(Timeouts::DEFAULT)
        })
    }

    /// Returns these limits, overridden by those of one turn.
    pub(crate) fn with(self, timeouts: Timeouts) -> Self {
        Self {
            startup: timeouts.startup.or(self.startup),
            idle: timeouts.idle.unwrap_or(self.idle),
            tool: timeouts.tool.unwrap_or(self.tool),
        }
    }

    /// Returns the limit for the next chunk of an answer. `first` is true until the first chunk of the first answer.
    pub(crate) fn of_model(&self, first: bool) -> Duration {
        self.startup.filter(|_| first).unwrap_or(self.idle)
    }

    /// Returns the error of a model that exceeded its limit.
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

    /// Returns the error of a tool that exceeded its limit.
    pub(crate) fn tool_error(&self, tool: &str) -> AgentError {
        let message = format!("the tool {tool} did not end within {:?}", self.tool);
        AgentError::new(ErrorCode::WatchdogTimeout, ErrorKind::Timeout, message)
    }
}
