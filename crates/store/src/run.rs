//! The record of a run.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use derive_setters::Setters;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use teamster_core::{AgentError, CostSource, ExecuteParams, RunStatus, Usage};
use teamster_orchestrator::Attempt;

use crate::StoreError;

/// Interval of a run's heartbeats.
pub const HEARTBEAT: Duration = Duration::from_secs(15);

/// Age of the last heartbeat after which a run counts as interrupted, if its process cannot be checked: on another
/// machine, or not on Linux. Where its process can be checked, the run counts as running while the process exists. The
/// clocks of machines that share a database must not differ by more than the difference to [`HEARTBEAT`].
pub const LOST_AFTER: Duration = Duration::from_mins(1);

/// Returns a hash that identifies equal prompts: SHA-256 of the text, in hexadecimal. The prompt itself is never
/// stored.
///
/// ```
/// let hash = teamster_store::prompt_hash("What does this crate do?");
/// assert_eq!(hash.len(), 64);
/// assert_eq!(hash, teamster_store::prompt_hash("What does this crate do?"));
/// ```
pub fn prompt_hash(prompt: &str) -> String {
    use fmt::Write as _;
    let hash = Sha256::digest(prompt.as_bytes());
    hash.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The record of a run's start.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NewRun {
    /// Unique id of the run.
    pub run_id: String,
    /// Hash of the prompt; see [`prompt_hash`].
    pub prompt_hash: String,
    /// The provider that is tried first.
    pub provider: String,
    /// The requested model.
    pub model: Option<String>,
    /// The session that is resumed.
    pub session_id: Option<String>,
    /// The conversation that it belongs to, as text.
    pub conversation: Option<String>,
    /// Working directory of the agent. Stored as an absolute path.
    pub working_directory: Option<PathBuf>,
    /// Start time, in milliseconds since the Unix epoch. Default: now.
    pub started_at: Option<u64>,
}

impl NewRun {
    /// Creates the record of a run with this prompt, of which only the hash is kept.
    pub fn new(run_id: impl Into<String>, provider: impl Into<String>, prompt: &str) -> Self {
        Self {
            run_id: run_id.into(),
            prompt_hash: prompt_hash(prompt),
            provider: provider.into(),
            model: None,
            session_id: None,
            conversation: None,
            working_directory: None,
            started_at: None,
        }
    }

    /// Creates the record of a run with these parameters. If no directory is given, it is that of this process.
    pub fn from_params(
        run_id: impl Into<String>,
        provider: impl Into<String>,
        params: &ExecuteParams,
    ) -> Self {
        let mut run = Self::new(run_id, provider, &params.prompt);
        run.model.clone_from(&params.model);
        run.session_id.clone_from(&params.session_id);
        let directory = params.working_directory.clone();
        run.working_directory = directory.or_else(|| std::env::current_dir().ok());
        run
    }
}

/// State of a run.
///
/// The names of final states are those of `status` in `run:end`, also in the database and in
/// `teamster runs --json`: `success` for [`Completed`](teamster_core::RunStatus::Completed), `aborted`, and `error`
/// for every other [`RunStatus`](teamster_core::RunStatus), whose cause is in [`RunRecord::error`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(rename = "HistoryStatus")
)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RunState {
    /// The run has begun and not ended.
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

#[cfg(feature = "schema")]
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

    /// Parses any value, including those of newer versions.
    pub(crate) fn from_column(word: &str) -> Self {
        let shown = crate::column::printable(word);
        word.parse()
            .unwrap_or_else(|_| Self::Other(Word::new(&shown)))
    }

    pub(crate) fn of(status: RunStatus) -> Self {
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

impl std::str::FromStr for RunState {
    type Err = StoreError;

    fn from_str(text: &str) -> Result<Self, StoreError> {
        Self::ALL
            .into_iter()
            .find(|state| state.as_str() == text)
            .ok_or_else(|| {
                let names = Self::ALL.each_ref().map(Self::as_str).join(", ");
                let text = crate::column::printable(text);
                StoreError::invalid("status", format!("`{text}` is none of {names}"))
            })
    }
}

/// A run in the history. A figure that no CLI reported is absent, never 0.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RunRecord {
    /// Id of the run.
    pub run_id: String,
    /// State of the run.
    pub status: RunState,
    /// The current or last provider of the run.
    pub provider: String,
    /// The model as reported by the agent, else as requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The session of the run, or the one to resume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The conversation that it belongs to, as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<String>,
    /// Working directory of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_directory: Option<PathBuf>,
    /// SHA-256 of the prompt, in hexadecimal.
    pub prompt_hash: String,
    /// Start time, in milliseconds since the Unix epoch.
    pub started_at: u64,
    /// End time, in milliseconds since the Unix epoch. For an interrupted run it is the last heartbeat, once that was
    /// recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<u64>,
    /// Duration of the run, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// Usage of all attempts together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Cost of all attempts together, in USD.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// The source of the cost. Absent in a record of an earlier version, which kept reported costs only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_source: Option<CostSource>,
    /// Turns of all attempts, as the CLIs count them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub num_turns: Option<u32>,
    /// The error of a run that failed. Its code and details are known if it is the error of the last attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<AgentError>,
    /// Number of attempts; 0 while the run is running.
    pub attempts: u32,
    /// The attempts, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attempt_log: Vec<Attempt>,
    /// Name of the machine that the run is on.
    pub host: String,
    /// Id of the process that owns the run.
    pub pid: u32,
    /// Time of the last heartbeat, in milliseconds since the Unix epoch.
    pub heartbeat_at: u64,
}

impl RunRecord {
    /// Creates a record with these fields, and without the optional ones. `started_at` is in milliseconds since the
    /// Unix epoch.
    pub fn new(
        run_id: impl Into<String>,
        provider: impl Into<String>,
        status: RunState,
        started_at: u64,
    ) -> Self {
        Self {
            run_id: run_id.into(),
            status,
            provider: provider.into(),
            model: None,
            session_id: None,
            conversation: None,
            working_directory: None,
            prompt_hash: String::new(),
            started_at,
            ended_at: None,
            duration_ms: None,
            usage: None,
            cost_usd: None,
            cost_source: None,
            num_turns: None,
            error: None,
            attempts: 0,
            attempt_log: Vec::new(),
            host: String::new(),
            pid: 0,
            heartbeat_at: started_at,
        }
    }

    /// Returns the run's position in the order of [`Store::runs`](crate::Store::runs), for the next page.
    pub fn cursor(&self) -> RunCursor {
        RunCursor {
            started_at: self.started_at,
            run_id: self.run_id.clone(),
        }
    }
}

/// A position in the order of [`Store::runs`](crate::Store::runs).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunCursor {
    pub(crate) started_at: u64,
    pub(crate) run_id: String,
}

impl RunCursor {
    /// Creates the position of the run with this id and start time, in milliseconds since the Unix epoch.
    pub fn new(started_at: u64, run_id: impl Into<String>) -> Self {
        Self {
            started_at,
            run_id: run_id.into(),
        }
    }
}

/// Filter of runs. Default: all.
///
/// ```
/// use teamster_store::{RunFilter, RunState};
///
/// let filter = RunFilter::default().provider("claude").status(RunState::Error).limit(20);
/// assert_eq!(filter.limit, Some(20));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Setters)]
#[setters(strip_option)]
#[non_exhaustive]
pub struct RunFilter {
    /// Maximum number of runs. Default: no limit.
    pub limit: Option<u32>,
    /// Only runs of this provider.
    #[setters(into)]
    pub provider: Option<String>,
    /// Only runs in this state.
    pub status: Option<RunState>,
    /// Only runs of this conversation.
    #[setters(into)]
    pub conversation: Option<String>,
    /// Only runs of this session.
    #[setters(into)]
    pub session_id: Option<String>,
    /// Only runs in this directory, as recorded with the run.
    pub working_directory: Option<PathBuf>,
    /// Only runs that started at this time or later, in milliseconds since the Unix epoch.
    pub since_ms: Option<u64>,
    /// Only runs that started before this time, in milliseconds since the Unix epoch.
    pub until_ms: Option<u64>,
    /// Only runs after this position, as the next page.
    pub after: Option<RunCursor>,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn equal_prompts_and_only_they_have_equal_hashes(a in ".{0,40}", b in ".{0,40}") {
            prop_assert_eq!(prompt_hash(&a), prompt_hash(&a.clone()));
            prop_assert_eq!(prompt_hash(&a) == prompt_hash(&b), a == b);
        }
    }

    #[test]
    fn the_hash_is_sha_256() {
        // The example of FIPS 180-2.
        assert_eq!(
            prompt_hash("abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }

    #[test]
    fn a_state_is_read_back_and_another_word_refused() {
        for state in RunState::ALL {
            assert_eq!(state.as_str().parse(), Ok(state));
        }
        let newer = RunState::from_column("paused");
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
            RunState::from_column(&"ü".repeat(20)).as_str(),
            "ü".repeat(16)
        );
        let error = "done".parse::<RunState>().unwrap_err().to_string();
        assert!(error.contains("interrupted"), "{error}");
    }
}
