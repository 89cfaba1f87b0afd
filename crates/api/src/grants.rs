//! Grants of a session's agent.

use serde::{Deserialize, Serialize};
use teamster_core::PermissionMode;

/// Actions that the agent of a session may perform without a request, as the session was started.
///
/// Each turn has these grants, no matter who sends the prompt.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Grants {
    /// Permission mode at the start. The live status has a later one.
    pub permission: PermissionMode,
    /// Tools that are allowed before they are requested, in the CLI's own syntax.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allowed_tools: Vec<String>,
    /// Ids of the agents that may take over.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fallback: Vec<String>,
    /// The CLI got further arguments, which may grant anything.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cli_arguments: bool,
}
