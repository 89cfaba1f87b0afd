//! Changes of runs and agents, as a server streams them.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::RunSummary;
use crate::agents::AgentList;

/// A message of the state stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(
    tag = "type",
    rename_all = "snake_case",
    rename_all_fields = "camelCase"
)]
#[non_exhaustive]
pub enum Change {
    /// The current state; always the first message.
    Snapshot {
        /// The newest 50 runs and all that have not ended, newest first.
        runs: Vec<Arc<RunSummary>>,
        /// The agents; absent if the server has no configuration of them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agents: Option<Arc<AgentList>>,
    },
    /// A run started, changed or ended.
    Run {
        /// The run's current state, including its requests.
        run: Arc<RunSummary>,
    },
    /// A run was deleted, or is no longer among the newest.
    Gone {
        /// The run's id.
        run_id: String,
    },
    /// The agents changed.
    Agents {
        /// The current state of the agents.
        agents: Arc<AgentList>,
    },
}
