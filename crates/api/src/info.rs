//! The description of a run that was accepted.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use teamster_core::PermissionMode;
use teamster_core::time::epoch_ms;

/// Description of a run. It is written when the run is accepted and never changed.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RunInfo {
    /// Id of the run.
    pub run_id: String,
    /// Title of the run: that of its spec, or else the first line of its prompt. A person may change it later; then the views of
    /// the run have the new one. `None` where titles are not kept, and for a session before its first prompt.
    pub title: Option<String>,
    /// Kind of the run.
    pub kind: RunKind,
    /// First provider of the run.
    pub provider: String,
    /// The requested model.
    pub model: Option<String>,
    /// Working directory of the agent.
    #[serde(serialize_with = "crate::path::optional_shown")]
    #[schemars(with = "Option<String>")]
    pub directory: Option<PathBuf>,
    /// The directory of another machine that was submitted for the run, as that machine names it.
    pub submitted_from: Option<String>,
    /// Branch of the git worktree that was created for the run.
    pub branch: Option<String>,
    /// Id of the run whose log has the beginning of this session's conversation.
    pub continues: Option<String>,
    /// Grants of a session. `None` if they were not recorded: for a run, and by an earlier version.
    pub grants: Option<Grants>,
    /// Time of acceptance, in milliseconds since the Unix epoch.
    #[serde(rename = "acceptedAt")]
    pub accepted_at_ms: u64,
}

impl RunInfo {
    /// Creates the description of a run that is accepted now.
    pub fn new(run_id: impl Into<String>, provider: impl Into<String>) -> Self {
        Self {
            run_id: run_id.into(),
            provider: provider.into(),
            accepted_at_ms: epoch_ms(),
            ..Self::default()
        }
    }
}

/// Kind of a run.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RunKind {
    /// One prompt, from start to `done`.
    #[default]
    Run,
    /// A live session: turns until it is closed.
    Session,
    /// A tick of an agent loop.
    Tick,
    /// Value of a later version.
    #[serde(other)]
    Other,
}

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
