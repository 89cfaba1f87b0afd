//! State file of a supervisor: which agents are enabled and which run.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use teamster_api::agents::LastError;
use teamster_process::{FileMode, ProcessIdentity, process_space};

use crate::folder::write_json_for;

/// Version of the file format.
const VERSION: u32 = 1;

/// Content of the state file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct State {
    version: u32,
    /// Path of the configuration.
    pub(crate) config: PathBuf,
    /// Path of the supervisor's socket.
    pub(crate) socket: Option<PathBuf>,
    /// The master switch.
    pub(crate) enabled: bool,
    /// Boot and container in which the process ids are valid.
    space: Option<String>,
    #[serde(default)]
    pub(crate) agents: BTreeMap<String, AgentState>,
}

#[derive(Deserialize)]
struct Head {
    version: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AgentState {
    /// The agent's own switch.
    pub(crate) enabled: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) process: Option<ProcessState>,
    #[serde(default)]
    pub(crate) restarts: u32,
    /// Reason of the last change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    /// The loop ended cleanly after a request.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) stopped_in_order: bool,
    /// Last unrequested end of the loop, or the reason that it was not started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) last_error: Option<LastError>,
}

/// A running loop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ProcessState {
    pub(crate) pid: u32,
    /// Start time, in clock ticks since boot.
    pub(crate) start_time: Option<u64>,
    /// Start time, in milliseconds since the Unix epoch.
    pub(crate) started_at_ms: u64,
    /// Path without links, at the start of the loop.
    pub(crate) working_dir: PathBuf,
    pub(crate) runtime: Option<String>,
    #[serde(default)]
    pub(crate) chrome: bool,
}

impl ProcessState {
    pub(crate) fn identity(&self) -> ProcessIdentity {
        ProcessIdentity::new(self.pid, self.start_time)
    }
}

impl State {
    pub(crate) fn new(config: &Path) -> Self {
        Self {
            version: VERSION,
            config: config.to_owned(),
            socket: None,
            enabled: true,
            space: process_space(),
            agents: BTreeMap::new(),
        }
    }

    /// Reads the file. Returns `None` if there is none. Processes of an earlier boot or another container are
    /// left out.
    pub(crate) fn read(file: &Path) -> io::Result<Option<Self>> {
        let text = match fs::read(file) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        // The version comes first: another version may have other fields.
        let Head { version } = serde_json::from_slice(&text)?;
        if version != VERSION {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!(
                    "it was written by another version of teamster: format {version}, not {VERSION}"
                ),
            ));
        }
        let mut state: Self = serde_json::from_slice(&text)?;
        let space = process_space();
        if state.space != space {
            for agent in state.agents.values_mut() {
                agent.process = None;
            }
            state.space = space;
        }
        Ok(Some(state))
    }

    /// Returns whether this is the loop of one of the agents.
    pub(crate) fn has(&self, process: ProcessIdentity) -> bool {
        let processes = self.agents.values().filter_map(|it| it.process.as_ref());
        processes
            .map(ProcessState::identity)
            .any(|it| it == process)
    }

    /// Replaces the file atomically.
    pub(crate) fn write(&self, file: &Path) -> io::Result<()> {
        write_json_for(FileMode::Private, file, self)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn example() -> State {
        let mut state = State::new(Path::new("/company/agents.config.json"));
        state.agents.insert(
            "a".into(),
            AgentState {
                enabled: false,
                process: Some(ProcessState {
                    pid: 7,
                    start_time: Some(8),
                    started_at_ms: 9,
                    working_dir: "/company/agents/a".into(),
                    runtime: Some("claude".into()),
                    chrome: true,
                }),
                restarts: 3,
                reason: Some("exited with code 1".into()),
                stopped_in_order: false,
                last_error: None,
            },
        );
        state
    }

    #[test]
    fn the_state_is_read_back_and_private() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("supervisor.json");
        assert_eq!(State::read(&file).unwrap(), None);
        let state = example();
        state.write(&file).unwrap();
        assert_eq!(State::read(&file).unwrap(), Some(state));
        let mode = fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn process_ids_of_another_boot_are_ignored() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("supervisor.json");
        let mut state = example();
        state.space = Some("another".into());
        state.write(&file).unwrap();
        let read = State::read(&file).unwrap().unwrap();
        assert_eq!(read.agents["a"].process, None);
        assert!(!read.agents["a"].enabled);
        assert_eq!(read.space, process_space());
    }

    #[test]
    fn an_invalid_state_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("supervisor.json");
        let whole = serde_json::to_string(&example()).unwrap();
        for text in [
            "",
            "{",
            "[]",
            &whole[..whole.len() / 2],
            &whole.replace("\"version\":1", "\"version\":2"),
        ] {
            fs::write(&file, text).unwrap();
            assert!(State::read(&file).is_err(), "{text}");
        }
        // Unknown fields are ignored.
        fs::write(&file, whole.replacen('{', "{\"later\":{},", 1)).unwrap();
        assert_eq!(State::read(&file).unwrap(), Some(example()));
    }
}
