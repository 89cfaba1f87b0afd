//! The status of a live run or session.

use serde::{Deserialize, Serialize};
use teamster_core::{CostSource, Id, PermissionMode, Usage};

/// Status of a live run or session.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct LiveStatus {
    /// State of the run or session.
    pub state: LiveState,
    /// Start of the state, in milliseconds since the Unix epoch.
    pub since: u64,
    /// Number of ended turns of a session. 0 for a run.
    pub turns: u64,
    /// The turn in progress.
    pub turn: Option<TurnStatus>,
    /// Provider in use, which may be a fallback.
    pub provider: Option<String>,
    /// Model in use.
    pub model: Option<String>,
    /// Id of the provider's session, to resume it.
    pub session_id: Option<Id>,
    /// Usage so far, as reported.
    pub usage: Option<Usage>,
    /// Cost so far in USD.
    pub cost_usd: Option<f64>,
    /// The source of the cost.
    pub cost_source: Option<CostSource>,
    /// Permission mode of a session, if it was changed after the start.
    #[schemars(with = "Option<String>")]
    pub permission: Option<PermissionMode>,
    /// Process id of a runner that does not answer, if it is known.
    pub pid: Option<u32>,
}

impl LiveStatus {
    /// Creates a status with only a state.
    pub fn new(state: LiveState, since: u64) -> Self {
        Self {
            state,
            since,
            ..Self::default()
        }
    }
}

/// Status of a live run or session.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum LiveState {
    /// The session waits for a prompt.
    #[default]
    Idle,
    /// The agent is working.
    Running,
    /// The agent waits for the answer to a request.
    Waiting,
    /// The run or session is being stopped.
    Ending,
    /// The runner does not answer: it is stopped (`SIGSTOP`), hangs, or has lost its socket.
    NotAnswering,
    /// Value of a later version.
    #[serde(other)]
    Other,
}

/// Turn in progress.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TurnStatus {
    /// Id of the turn in the log and in the history.
    pub run_id: String,
    /// Name of the sender, such as `terminal pts/3`. `None` for a turn that the agent began by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Start time, in milliseconds since the Unix epoch.
    #[serde(rename = "beganAt")]
    pub began_at_ms: u64,
}

impl TurnStatus {
    /// Creates a turn that began at this time, in milliseconds since the Unix epoch.
    pub fn new(run_id: impl Into<String>, began_at_ms: u64) -> Self {
        Self {
            run_id: run_id.into(),
            from: None,
            began_at_ms,
        }
    }
}
