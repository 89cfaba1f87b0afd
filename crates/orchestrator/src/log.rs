//! Parts of a run's log on their way to its consumer.

use teamster_core::{LifecycleEntry, LogEntry, RunEvent};

/// Selection of a run's log for its consumer. Each view has the same entry numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum View {
    /// All entries. The result of `run:end` has no text: `done` has it.
    Log,
    /// The events of the run itself and [those derived from the agents' events](RunEvent::is_derived).
    Lifecycle,
}

impl View {
    /// Returns whether the view includes the agents' events.
    pub(crate) fn has_agents(self) -> bool {
        self == Self::Log
    }
}

/// A part of a run's log.
#[derive(Debug)]
pub(crate) enum Part {
    /// Events of an agent.
    Agents(Vec<LogEntry>),
    /// An event of the run itself.
    Run(LifecycleEntry),
}

impl Part {
    pub(crate) fn is_end(&self) -> bool {
        matches!(self, Self::Run(entry) if matches!(entry.event, RunEvent::End(_)))
    }

    /// Returns the number of events and their approximate size in bytes.
    pub(crate) fn size(&self) -> (usize, usize) {
        match self {
            Self::Agents(entries) => {
                let bytes = entries.iter().map(LogEntry::approximate_bytes);
                (entries.len(), bytes.sum())
            }
            Self::Run(entry) => (1, entry.approximate_bytes()),
        }
    }
}
