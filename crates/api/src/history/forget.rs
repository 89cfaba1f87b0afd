//! Deletion of runs and logs.

use serde::{Deserialize, Serialize};

/// Runs and logs to delete. Live runs are kept.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(extend("not" = {"type": "object", "properties": {
    "ids": {"type": "array", "items": {"type": "string"}, "maxItems": 0},
    "olderThanMs": {"type": "null"},
    "logsOver": {"type": "null"},
}}))]
#[non_exhaustive]
pub struct ForgetRuns {
    /// Ids or unique id prefixes of runs to delete. If one of them cannot be deleted, none is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ids: Vec<String>,
    /// Delete runs that ended longer ago than this, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub older_than_ms: Option<u64>,
    /// Delete the logs of `ids` only, and keep their rows of the history.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub logs_only: bool,
    /// Delete the oldest logs until the rest takes at most this many bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logs_over: Option<u64>,
}

/// The number of deleted runs and logs.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Forgotten {
    /// Deleted runs of the history.
    pub runs: u64,
    /// Deleted logs.
    pub logs: u64,
    /// The size of the deleted logs, in bytes.
    pub log_bytes: u64,
}
