//! Notices of the engine.

use teamster_core::{AgentEvent, NoticeLevel, NoticeSource};

/// A notice for the user, in addition to the CLI's output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Notice {
    pub(crate) level: NoticeLevel,
    pub(crate) message: String,
}

impl Notice {
    pub(crate) fn warning(message: String) -> Self {
        Self {
            level: NoticeLevel::Warning,
            message,
        }
    }

    pub(crate) fn info(message: String) -> Self {
        Self {
            level: NoticeLevel::Info,
            message,
        }
    }

    pub(crate) fn event(self) -> AgentEvent {
        AgentEvent::notice(self.level, NoticeSource::Runtime, self.message)
    }
}
