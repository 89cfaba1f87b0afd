//! The reason for which a run of a fleet is queued.

use serde::{Deserialize, Serialize};

/// The reason for which a run of a fleet was not started yet.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct QueueStatus {
    /// The pool whose machines may take it; absent if it is queued for one machine.
    pub pool: Option<String>,
    /// The reason, for programs.
    pub reason: QueueReason,
    /// The reason, for people.
    pub detail: String,
    /// The end of the reason, such as the reset of a limit, in milliseconds since the Unix epoch. Absent if unknown.
    pub until: Option<u64>,
}

impl QueueStatus {
    /// Creates a status with this reason.
    pub fn new(reason: QueueReason, detail: impl Into<String>) -> Self {
        Self {
            pool: None,
            reason,
            detail: detail.into(),
            until: None,
        }
    }
}

/// The reason for which a run is queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum QueueReason {
    /// A machine has a free slot and will take it.
    Pending,
    /// All slots are in use.
    NoSlot,
    /// No machine takes runs of the pool.
    NoMachine,
    /// No machine of the pool has the agent, installed and logged in.
    NoAgent,
    /// No machine of the pool has a version of teamster that knows all fields of the run.
    OldVersion,
    /// The agent has reached its limit on all machines of the pool.
    OnHold,
    /// Each machine that could take it has refused it, such as for its policy or for a secret that it does not have.
    Refused,
    /// The only machine that may take it does not report.
    MachineAbsent,
    /// A value of a later version.
    #[serde(other)]
    Other,
}
