//! The progress of a turn: output of a command that is running, how full the model's context is, and the permission mode
//! that the agent has changed to.

use serde::{Deserialize, Serialize};

use super::payload::Id;
use crate::PermissionMode;

/// Payload of `tool_output`: a piece of the output of a tool call that has no result yet, appended to the pieces before
/// it. The result has the complete output; the pieces of a long output end early. Only sessions have this event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolOutput {
    /// The id of the `tool_use`.
    pub tool_id: Id,
    /// The new output.
    pub text: String,
}

/// Payload of `context`: how full the context of the main agent's model is. Only sessions have this event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ContextUse {
    /// Tokens in the context after the last request.
    pub tokens: u64,
    /// Size of the context window, in tokens.
    pub window: u64,
}

/// Payload of `permission_mode`: the permission mode to which the agent has changed the session by itself, such as once its
/// plan was approved. A change that the caller has requested is no event. Only sessions have this event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct PermissionChange {
    /// The mode from now on.
    pub mode: PermissionMode,
}

impl PermissionChange {
    /// Creates a change to this mode.
    pub const fn new(mode: PermissionMode) -> Self {
        Self { mode }
    }
}

impl ToolOutput {
    /// Creates a piece of the output of this call.
    pub fn new(tool_id: impl Into<Id>, text: impl Into<String>) -> Self {
        Self {
            tool_id: tool_id.into(),
            text: text.into(),
        }
    }
}

impl ContextUse {
    /// Creates the figures of a context.
    pub const fn new(tokens: u64, window: u64) -> Self {
        Self { tokens, window }
    }
}
