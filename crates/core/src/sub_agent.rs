//! Sub-agents of a run.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A sub-agent, to which the agent may give a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct SubAgent {
    /// The name by which the agent knows it.
    pub name: String,
    /// What it is for. The agent chooses a sub-agent by this.
    pub description: String,
    /// Its instructions.
    pub prompt: String,
    /// Further settings in the CLI's own words, such as `tools` or `model`.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub settings: Map<String, Value>,
}

impl SubAgent {
    /// Creates a sub-agent without further settings.
    pub fn new(
        name: impl Into<String>,
        description: impl Into<String>,
        prompt: impl Into<String>,
    ) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            prompt: prompt.into(),
            settings: Map::new(),
        }
    }
}
