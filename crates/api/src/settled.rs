//! Outcome of applying or discarding a run's changes.

use serde::{Deserialize, Serialize};

/// Changes of a run that were applied to the files of a repository.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct AppliedChanges {
    /// The root of the working tree whose files were changed.
    pub directory: String,
    /// The number of changed files; 0 if the run has changed nothing.
    pub files_changed: u64,
    /// Warnings about the files before that, such as that an earlier apply was killed and its files were restored.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

impl AppliedChanges {
    /// Creates the report of changes to files in this directory.
    pub fn new(directory: impl Into<String>, files_changed: u64) -> Self {
        Self {
            directory: directory.into(),
            files_changed,
            warnings: Vec::new(),
        }
    }
}

/// Changes of a run that were discarded.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct DiscardedChanges {
    /// The branch that was deleted; absent if it is kept, because it has other commits or is checked out elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
}

impl DiscardedChanges {
    /// Creates the report of changes that were discarded with this branch.
    pub fn new(branch: Option<String>) -> Self {
        Self { branch }
    }
}
