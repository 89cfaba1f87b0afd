//! Messages for a person.

use serde::{Deserialize, Serialize};

/// Payload of `notice`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Notice {
    /// Severity.
    pub level: NoticeLevel,
    /// The text, for a person.
    pub message: String,
    /// Source.
    pub source: NoticeSource,
    /// What it is about, if callers may act on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<NoticeCode>,
}

/// Subject of a notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum NoticeCode {
    /// The conversation is being compacted.
    CompactionStarted,
    /// The conversation was compacted.
    Compacted,
    /// The conversation could not be compacted.
    CompactionFailed,
    /// The CLI has a version that its decoder is not tested with. The message is the same for each run of that version.
    UntestedVersion,
    /// A value added by a newer version.
    #[serde(other)]
    Other,
}

/// Severity of a notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum NoticeLevel {
    /// Information.
    Info,
    /// Something unexpected, or a level that only a newer version knows.
    #[serde(other)]
    Warning,
}

/// Source of a notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum NoticeSource {
    /// The CLI's standard output.
    Stdout,
    /// The CLI's standard error.
    Stderr,
    /// Teamster itself, or a source that only a newer version knows.
    #[serde(other)]
    Runtime,
}
