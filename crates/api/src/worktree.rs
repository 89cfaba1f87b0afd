//! The git worktree of a run.

use serde::{Deserialize, Serialize};

/// A new git worktree for a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(untagged)]
pub enum Worktree {
    /// `true` for a worktree on a new branch that is named after the run.
    Switch(bool),
    /// A worktree on a new branch of this name.
    Branch(#[schemars(length(min = 1))] String),
}

impl Worktree {
    /// Returns whether there is to be a worktree.
    pub fn is_requested(worktree: Option<&Self>) -> bool {
        !matches!(worktree, None | Some(Self::Switch(false)))
    }
}
