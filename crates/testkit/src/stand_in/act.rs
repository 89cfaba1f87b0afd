//! Actions of a stand-in in a turn.

use std::fs;
use std::io;
use std::path::Path;

use teamster_core::time::epoch_ms;

use serde::{Deserialize, Serialize};

use super::witness::iso;

/// The folder of the loop in that of the agent.
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
    /// Starts a process in a session of its own, which lives on in the background.
    Child,
    /// Dies of `SIGKILL` before anything else is done in the turn.
    Die,
    /// Dies of `SIGKILL` when everything else was done, before the turn's end.
    DieAfter,
    /// Does nothing more until it is interrupted.
    Hang,
    /// The same, and hears no interrupt and no signal that can be ignored.
    Deaf,
    /// Receives an interrupt, and continues for a while before it ends the turn.
    Late,
    /// Is no act in a turn: dies when it is started, before any output.
    DieAtStart,
    /// Is no act in a turn: dies when it receives the request to clear the conversation, before it has.
    DieOnClear,
}

impl Act {
    /// The flag that is touched.
    pub fn flag(self) -> Option<&'static str> {
        match self {
            Self::DidWork => Some(FLAGS[0]),
            Self::ClearSession => Some(FLAGS[1]),
            Self::ResetSession => Some(FLAGS[2]),
            _ => None,
        }
    }

    /// Whether it is a change of files in the agent's folder.
    pub(super) fn is_of_files(self) -> bool {
        matches!(
            self,
            Self::DidWork | Self::ClearSession | Self::ResetSession | Self::Tools | Self::Status
        )
    }

    /// The command with which a real agent would do it.
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
            // As `touch` does: a flag that is there already stays.
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
