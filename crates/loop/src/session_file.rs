//! `session.json`, in which a loop keeps its session.

use serde::{Deserialize, Serialize};

use crate::tick_record::TickBegin;

/// `session.json`: session of a running loop. The loop removes the file at its end, so a remaining file shows a
/// loop that was cut off, and its session is resumed. With `KEEP_SESSION` the file is kept at a clean exit too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SessionFile {
    pub(crate) runtime: String,
    pub(crate) session_id: Option<String>,
    pub(crate) pid: u32,
    pub(crate) updated_at_epoch: i64,
    /// The loop ended cleanly.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) ended: bool,
    /// The tick in progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tick: Option<TickBegin>,
}

impl SessionFile {
    pub(crate) const NAME: &str = "session.json";
}
