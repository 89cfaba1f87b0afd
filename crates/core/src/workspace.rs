//! What a run leaves in its workspace.

use serde::{Deserialize, Serialize};

/// The workspace of a run at its end: what the agent has changed, be it committed or not. A figure that could not be
/// found out is absent, never 0; then [`error`](Self::error) has the reason.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct WorkspaceResult {
    /// Kind of the workspace.
    pub kind: WorkspaceKind,
    /// Folder of the workspace. Absent if it was removed, because nothing was changed in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// The run's branch. Absent if it was removed with the folder, or if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The commit at which the workspace began. Absent without a repository.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub base: String,
    /// The last commit of the run; that at which it began if it made none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
    /// Number of commits from `base` to `head`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commits: Option<u64>,
    /// Number of files that differ from `base`, including what is not committed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files_changed: Option<u64>,
    /// Number of added lines in text files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub insertions: Option<u64>,
    /// Number of deleted lines in text files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletions: Option<u64>,
    /// True if there are changes that are not committed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dirty: Option<bool>,
    /// The commit of these changes, on top of `head`: `refs/teamster/RUN/wip`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wip: Option<String>,
    /// The remote and the branch that the commits were pushed to, such as `origin:fix`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pushed: Option<String>,
    /// Work that is only in the folder, such as `1 commit in the submodule libs/a`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unsaved: Vec<String>,
    /// The reason for which something is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl WorkspaceResult {
    /// Returns whether the run has left commits, or changes that are not committed. They may not be kept any more.
    pub fn has_changes(&self) -> bool {
        self.wip.is_some() || self.head.as_ref().is_some_and(|head| *head != self.base)
    }

    /// Creates the result of a workspace that began at this commit, with nothing else known.
    pub fn new(kind: WorkspaceKind, base: impl Into<String>) -> Self {
        Self {
            kind,
            base: base.into(),
            ..Self::default()
        }
    }
}

/// Kind of a workspace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum WorkspaceKind {
    /// A folder of the machine.
    #[default]
    Directory,
    /// A git worktree of a repository of the machine.
    Worktree,
    /// A git worktree of a repository that the machine keeps a mirror of.
    Repository,
    /// The repository that came with the run.
    Upload,
    /// A new folder.
    Empty,
    /// Value of a later version.
    #[serde(other)]
    Other,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commits_and_what_is_not_committed_are_changes() {
        for (head, wip, changed) in [
            (None, None, false),
            (Some("a1"), None, false),
            (Some("b2"), None, true),
            (None, Some("c3"), true),
            (Some("a1"), Some("c3"), true),
        ] {
            let mut result = WorkspaceResult::new(WorkspaceKind::Worktree, "a1");
            result.head = head.map(str::to_owned);
            result.wip = wip.map(str::to_owned);
            assert_eq!(result.has_changes(), changed, "{head:?} {wip:?}");
        }
    }
}
