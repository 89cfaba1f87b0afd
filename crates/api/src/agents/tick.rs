//! `ticks.jsonl`: one record for each tick of a loop.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use teamster_core::{CostSource, ErrorKind};

/// One line of `ticks.jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[non_exhaustive]
pub struct TickRecord {
    /// Number of the tick since the start of its loop, from 1.
    pub tick: u64,
    /// Process id of its loop.
    pub pid: u32,
    /// Id of the tick's run: the name of its log, and its row in the history.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    /// Prompt of the tick.
    pub prompt: Prompt,
    /// Time of its start.
    #[schemars(with = "String", extend("format" = "date-time"))]
    pub begin: Timestamp,
    /// Time of its end. If its loop was killed: the start of the next loop.
    #[schemars(with = "String", extend("format" = "date-time"))]
    pub end: Timestamp,
    /// Outcome of the tick.
    pub result: TickResult,
    /// Class of the error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_kind: Option<ErrorKind>,
    /// Error of the tick, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Flags that were set at its end, by the names of their files.
    pub flags: Vec<String>,
    /// Session of the tick.
    pub session_id: Option<String>,
    /// Input tokens outside the cache, over all models.
    pub input_tokens: u64,
    /// Output tokens, reasoning included.
    pub output_tokens: u64,
    /// Tokens read from the cache.
    pub cache_read_tokens: u64,
    /// Tokens written to the cache.
    pub cache_write_tokens: u64,
    /// Cost in USD, if it is known for all models of the tick.
    pub cost_usd: Option<f64>,
    /// Source of the cost: an estimate if the cost of any model is one.
    pub cost_source: Option<CostSource>,
}

impl TickRecord {
    /// Name of the file.
    pub const NAME: &str = "ticks.jsonl";

    /// Creates a record without usage, error and run id.
    pub fn new(
        tick: u64,
        prompt: Prompt,
        begin: Timestamp,
        end: Timestamp,
        result: TickResult,
    ) -> Self {
        Self {
            tick,
            pid: 0,
            run_id: None,
            prompt,
            begin,
            end,
            result,
            error_kind: None,
            error: None,
            flags: Vec::new(),
            session_id: None,
            input_tokens: 0,
            output_tokens: 0,
            cache_read_tokens: 0,
            cache_write_tokens: 0,
            cost_usd: None,
            cost_source: None,
        }
    }
}

/// Outcome of a tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TickResult {
    /// The agent completed its turn.
    Completed,
    /// The agent reported a failure.
    Failed,
    /// The service refused the request; the content of the session may be the cause.
    Refused,
    /// The turn exceeded its limit and was interrupted.
    TimedOut,
    /// The turn exceeded its limit and ignored the interrupt, so its process was ended.
    Stuck,
    /// The agent's process died or could not be started.
    Died,
    /// The session cannot be resumed.
    Unusable,
    /// The loop was stopped, or the tick alone was cancelled.
    Stopped,
    /// The loop was killed. The next loop wrote the record.
    Killed,
    /// Value of a later version.
    #[serde(other)]
    Other,
}

/// Prompt of a tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "TickPrompt")]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Prompt {
    /// Short prompt: the context has the instructions.
    Light,
    /// Full prompt: the agent reads its instructions. Also stands for values of later versions.
    #[serde(other)]
    Full,
}

impl Prompt {
    /// Returns the name in capitals.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Full => "FULL",
            Self::Light => "LIGHT",
        }
    }
}
