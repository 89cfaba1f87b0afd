//! Actions of a stand-in in a turn.

use std::fs;
use std::io;
use std::path::Path;

use teamster_core::time::epoch_ms;

use serde::{Deserialize, Serialize};

use super::witness::iso;

/// The loop's folder in the agent's folder.
pub(super) const ORCHESTRATOR: &str = ".orchestrator";

/// Flags that an agent touches.
pub(super) const FLAGS: [&str; 3] = ["did-work", "clear-session", "reset-session"];

/// An action in a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Act {
    /// Touches `.orchestrator/did-work`.
    DidWork,
    /// Touches `.orchestrator/clear-session`.
    ClearSession,
    /// Touches `.orchestrator/reset-session`.
    ResetSession,
    /// Writes `.orchestrator/tools.json`.
    Tools,
    /// Writes `status.json`.
    Status,
    /// Starts a background process in a new session.
    Child,
    /// Dies of `SIGKILL` before any other action of the turn.
    Die,
    /// Dies of `SIGKILL` after all other actions, before the end of the turn.
    DieAfter,
    /// Hangs until it is interrupted.
    Hang,
    /// Hangs, and ignores interrupts and all signals that can be ignored.
    Deaf,
    /// Receives an interrupt, but continues for a while before it ends the turn.
    Late,
    /// Dies at its start, before any output. Not an action of a turn.
    DieAtStart,
    /// Dies on the request to clear the conversation, before it is cleared. Not an action of a turn.
    DieOnClear,
}

impl Act {
    /// Returns the flag that is touched, if any.
    pub fn flag(self) -> Option<&'static str> {
        match self {
            Self::DidWork => Some(FLAGS[0]),
            Self::ClearSession => Some(FLAGS[1]),
            Self::ResetSession => Some(FLAGS[2]),
            _ => None,
        }
    }

    /// Returns whether it changes files in the agent's folder.
    pub(super) fn is_of_files(self) -> bool {
        matches!(
            self,
            Self::DidWork | Self::ClearSession | Self::ResetSession | Self::Tools | Self::Status
        )
    }

    /// Returns the command that a real agent would use.
    pub(super) fn command(self) -> Option<String> {
        match self {
            Self::Tools => Some("cat > .orchestrator/tools.json".to_owned()),
            Self::Status => Some("cat > status.json".to_owned()),
            _ => self
                .flag()
                .map(|flag| format!("touch {ORCHESTRATOR}/{flag}")),
        }
    }

    /// Changes the files in an agent's folder.
    pub(super) fn change_files(self, folder: &Path, turn: u64) -> io::Result<()> {
        let orchestrator = folder.join(ORCHESTRATOR);
        if let Some(flag) = self.flag() {
            // As with `touch`, an existing flag is kept.
            let file = fs::File::options()
                .create(true)
                .append(true)
                .open(orchestrator.join(flag))?;
            return file.set_modified(std::time::SystemTime::now());
        }
        let now = iso(epoch_ms());
        match self {
            Self::Tools => fs::write(
                orchestrator.join("tools.json"),
                format!(
                    "{{\"generated_at\": \"{now}\", \"total_tools\": 1, \"servers\": \
                     [{{\"name\": \"mock\", \"tools\": [{{\"name\": \"mcp__mock__echo\"}}]}}]}}\n"
                ),
            ),
            Self::Status => fs::write(
                folder.join("status.json"),
                format!("{{\"turn\": {turn}, \"updated\": \"{now}\"}}\n"),
            ),
            _ => Ok(()),
        }
    }
}
