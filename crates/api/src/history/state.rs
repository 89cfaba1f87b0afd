//! The state of a run in the history.

use std::fmt;

use serde::{Deserialize, Serialize};
use teamster_core::RunStatus;

/// State of a run.
///
/// The names of final states are those of `status` in `run:end`, also in the database and in
/// `teamster runs --json`: `success` for [`Completed`](teamster_core::RunStatus::Completed), `aborted`, and `error`
/// for every other [`RunStatus`](teamster_core::RunStatus), whose cause is in [`RunRecord::error`](super::RunRecord::error).
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
#[schemars(rename = "HistoryStatus")]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RunState {
    /// The run has begun and not ended.
    #[default]
    Running,
    /// The agent completed successfully.
    Success,
    /// The run failed; see its error.
    Error,
    /// The caller stopped it.
    Aborted,
    /// The process of the run is gone: killed, crashed or switched off.
    Interrupted,
    /// A value added by a newer version of this program.
    #[serde(untagged)]
    Other(Word),
}

/// A name that this version does not know, truncated to 32 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Word {
    bytes: [u8; 32],
    length: usize,
}

impl Word {
    fn new(text: &str) -> Self {
        let mut bytes = [0; 32];
        let length = text.floor_char_boundary(bytes.len());
        bytes[..length].copy_from_slice(&text.as_bytes()[..length]);
        Self { bytes, length }
    }

    /// Returns the name.
    pub fn as_str(&self) -> &str {
        // It was cut at a character boundary.
        std::str::from_utf8(&self.bytes[..self.length]).unwrap_or_default()
    }
}

impl fmt::Debug for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl Serialize for Word {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Word {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        Ok(Self::new(&text))
    }
}

impl schemars::JsonSchema for Word {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Word".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "string"})
    }
}

impl RunState {
    /// All states that this version knows.
    pub const ALL: [Self; 5] = [
        Self::Running,
        Self::Success,
        Self::Error,
        Self::Aborted,
        Self::Interrupted,
    ];

    /// Returns the name of the state, as stored and displayed.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Running => "running",
            Self::Success => "success",
            Self::Error => "error",
            Self::Aborted => "aborted",
            Self::Interrupted => "interrupted",
            Self::Other(word) => word.as_str(),
        }
    }

    /// Returns the state with this name. One that this version does not know is [`Other`](Self::Other).
    pub fn from_name(name: &str) -> Self {
        let known = Self::ALL.into_iter().find(|state| state.as_str() == name);
        known.unwrap_or_else(|| Self::Other(Word::new(name)))
    }
}

impl From<RunStatus> for RunState {
    fn from(status: RunStatus) -> Self {
        match status {
            RunStatus::Completed => Self::Success,
            RunStatus::Aborted => Self::Aborted,
            _ => Self::Error,
        }
    }
}

impl fmt::Display for RunState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_read_back_and_a_newer_one_kept() {
        for state in RunState::ALL {
            assert_eq!(RunState::from_name(state.as_str()), state);
        }
        let newer = RunState::from_name("paused");
        assert_eq!(
            (newer.to_string(), newer.as_str()),
            ("paused".into(), "paused")
        );
        let json = serde_json::to_string(&[newer, RunState::Error]).unwrap();
        assert_eq!(json, r#"["paused","error"]"#);
        assert_eq!(
            serde_json::from_str::<[RunState; 2]>(&json).unwrap(),
            [newer, RunState::Error]
        );
        assert_eq!(
            RunState::from_name(&"ü".repeat(20)).as_str(),
            "ü".repeat(16)
        );
    }
}
