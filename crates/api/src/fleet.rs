//! The state of a fleet: its workers, its queues, and what waits.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The state of a fleet at one time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[non_exhaustive]
pub struct FleetStatus {
    /// The workers that are present, by name.
    pub workers: Vec<FleetWorker>,
    /// The pools and machines for which runs wait, by name.
    pub queues: Vec<FleetQueue>,
    /// Number of runs by the state of their record, such as `started`.
    pub runs: BTreeMap<String, u64>,
    /// The limits because of which agents take no runs.
    pub holds: Vec<FleetHold>,
    /// The owner whose runs are counted; absent if those of all owners are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
}

/// A worker that is present.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct FleetWorker {
    /// Name of the worker.
    pub name: String,
    /// Pools from which it takes runs.
    pub pools: Vec<String>,
    /// The agents that its program knows.
    pub agents: Vec<FleetAgent>,
    /// Number of runs at once.
    pub slots: u64,
    /// Number of runs that it carries out.
    pub running: u64,
    /// It takes no new runs, and ends with those that it has.
    #[serde(default)]
    pub draining: bool,
    /// Version of its program.
    pub version: String,
    /// How far its clock is ahead of the server's, in milliseconds, if that is more than 5 s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_ms: Option<i64>,
}

/// An agent of a worker.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct FleetAgent {
    /// Id of the agent.
    pub id: String,
    /// It is installed, and not known to be logged out.
    pub ready: bool,
    /// Version of its program, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// The runs that wait for a pool or a machine.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct FleetQueue {
    /// Name of the pool; absent for the runs of one machine.
    pub pool: Option<String>,
    /// Name of the machine's worker; absent for the runs of a pool.
    pub machine: Option<String>,
    /// Number of runs that wait.
    pub waiting: u64,
    /// Time since which the oldest one waits, in milliseconds since the Unix epoch.
    pub oldest_at: Option<u64>,
}

/// A limit because of which an agent takes no runs where it has this login.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct FleetHold {
    /// Id of the agent.
    pub agent: String,
    /// Mark of the login that has reached it, from which neither the account nor the key can be read.
    pub login: String,
    /// Name of the limit, such as `five_hour`, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
    /// End of the limit, in milliseconds since the Unix epoch.
    pub until: u64,
}
