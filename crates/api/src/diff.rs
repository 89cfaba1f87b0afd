//! The changes of a run's workspace as data.

use serde::{Deserialize, Serialize};

/// A selection of a run's changes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct DiffQuery {
    /// Only files at these paths and below them. A path is one of the repository; patterns are not read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// Only figures, without hunks.
    #[serde(skip_serializing_if = "crate::is_default")]
    pub stat: bool,
}

/// The changes of a run's workspace: everything between the commit at which it began and what is there now, be it
/// committed or not.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct WorkspaceDiff {
    /// The commit at which the run began.
    pub base: String,
    /// The commit that is compared: the last one of the run, or the one that has also what was not committed.
    pub head: String,
    /// The files, in the order of their paths.
    pub files: Vec<DiffFile>,
    /// Number of changed files, including those that a limit left out.
    pub files_changed: u64,
    /// Number of added lines in text files.
    pub insertions: u64,
    /// Number of deleted lines in text files.
    pub deletions: u64,
    /// True if files, hunks or lines were left out because of a limit.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub truncated: bool,
}

impl WorkspaceDiff {
    /// Creates a diff without files between these commits.
    pub fn new(base: impl Into<String>, head: impl Into<String>) -> Self {
        Self {
            base: base.into(),
            head: head.into(),
            ..Self::default()
        }
    }
}

/// A changed file.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct DiffFile {
    /// What happened to the file.
    pub status: DiffStatus,
    /// Path in the repository, the old one if the file was deleted. Bytes that are not UTF-8 are replaced by `U+FFFD`.
    pub path: String,
    /// The path before a rename.
    pub old_path: Option<String>,
    /// The exact path where it is not UTF-8, percent-encoded.
    pub raw_path: Option<String>,
    /// The exact old path where it is not UTF-8, percent-encoded.
    pub raw_old_path: Option<String>,
    /// Git's mode before, such as `100644`, `100755` (executable), `120000` (symbolic link) or `160000` (submodule).
    pub old_mode: Option<String>,
    /// Git's mode after.
    pub new_mode: Option<String>,
    /// True if git regards the content as binary: it has neither hunks nor numbers of lines.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub binary: bool,
    /// Number of added lines.
    pub insertions: Option<u64>,
    /// Number of deleted lines.
    pub deletions: Option<u64>,
    /// The changed places.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hunks: Vec<Hunk>,
    /// True if hunks or lines of the file were left out because of a limit.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub truncated: bool,
}

impl DiffFile {
    /// Creates the entry of a file without figures.
    pub fn new(status: DiffStatus, path: impl Into<String>) -> Self {
        Self {
            status,
            path: path.into(),
            ..Self::default()
        }
    }
}

/// What happened to a file.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DiffStatus {
    /// It is new.
    Added,
    /// It was deleted.
    Deleted,
    /// Its content was changed.
    #[default]
    Modified,
    /// Its path was changed, and possibly its content.
    Renamed,
    /// Only its mode was changed.
    Mode,
    /// Its type was changed, such as from a file to a symbolic link.
    Type,
    /// Value of a later version.
    #[serde(other)]
    Other,
}

/// A changed place of a file, with the lines around it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Hunk {
    /// First line before, from 1; 0 if there is none.
    pub old_start: u64,
    /// Number of lines before.
    pub old_lines: u64,
    /// First line after, from 1; 0 if there is none.
    pub new_start: u64,
    /// Number of lines after.
    pub new_lines: u64,
    /// The line that begins the section, such as a function's, as git finds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub section: Option<String>,
    /// The lines.
    pub lines: Vec<DiffLine>,
}

impl Hunk {
    /// Creates a hunk without lines: start and number of lines before, then after.
    pub fn new(old: (u64, u64), new: (u64, u64)) -> Self {
        Self {
            old_start: old.0,
            old_lines: old.1,
            new_start: new.0,
            new_lines: new.1,
            section: None,
            lines: Vec::new(),
        }
    }
}

/// A line of a hunk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct DiffLine {
    /// Whether the line was added or deleted.
    pub kind: DiffLineKind,
    /// The line without its line feed. Bytes that are not UTF-8 are replaced by `U+FFFD`.
    pub text: String,
    /// True if the file ends with this line, without a line feed.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub no_newline: bool,
}

impl DiffLine {
    /// Creates a line that ends with a line feed.
    pub fn new(kind: DiffLineKind, text: impl Into<String>) -> Self {
        Self {
            kind,
            text: text.into(),
            no_newline: false,
        }
    }
}

/// Whether a line was added or deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DiffLineKind {
    /// It is there before and after.
    Context,
    /// It was added.
    Added,
    /// It was deleted.
    Deleted,
}
