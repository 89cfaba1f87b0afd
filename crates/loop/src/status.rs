//! What a loop leaves for others to read, as JSON.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use teamster_core::ErrorKind;

use crate::tick_record::TickBegin;

/// `sleep.json`: what the loop is doing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct SleepFile {
    /// Whether it sleeps.
    pub state: LoopState,
    /// The sleep that it has come to, in seconds.
    pub current_sleep_seconds: u64,
    /// Why, for a person, with the last error.
    pub reason: String,
    /// The same without the last error, where `reason` has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plain_reason: Option<String>,
    /// When this was written, in seconds since 1970.
    pub updated_at_epoch: i64,
    /// When the sleep is over, in seconds since 1970; only while it sleeps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sleep_until_epoch: Option<i64>,
    /// Ticks and starts in a row that failed; left out at 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failed_ticks: u32,
    /// Why the last of them failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<TickError>,
}

impl SleepFile {
    /// A loop in this state, without a sleep and without failures.
    pub fn new(state: LoopState, reason: impl Into<String>, updated_at_epoch: i64) -> Self {
        Self {
            state,
            current_sleep_seconds: 0,
            reason: reason.into(),
            plain_reason: None,
            updated_at_epoch,
            sleep_until_epoch: None,
            failed_ticks: 0,
            last_error: None,
        }
    }
}

/// Why a tick failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct TickError {
    /// The class of the error.
    pub kind: ErrorKind,
    /// The error, for a person, on one line of limited length.
    pub message: String,
    /// When it happened, in seconds since 1970.
    pub at_epoch: i64,
}

impl TickError {
    /// An error at this time, in seconds since 1970.
    pub fn new(kind: ErrorKind, message: impl Into<String>, at_epoch: i64) -> Self {
        Self {
            kind,
            message: message.into(),
            at_epoch,
        }
    }

    /// Whether the service has refused more work for now, so that waiting is all there is to do.
    pub fn is_limit(&self) -> bool {
        matches!(self.kind, ErrorKind::RateLimit | ErrorKind::Quota)
    }
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// What a loop is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum LoopState {
    /// It waits.
    Sleeping,
    /// It plays a tick.
    Tick,
    /// What only a newer version knows.
    #[serde(other)]
    Other,
}

impl SleepFile {
    /// The reason without the last error.
    pub fn plain_reason(&self) -> &str {
        self.plain_reason.as_deref().unwrap_or(&self.reason)
    }

    /// The name of the file.
    pub const NAME: &str = "sleep.json";

    pub(crate) fn tick(current: u64, reason: String, now: Timestamp) -> Self {
        Self {
            state: LoopState::Tick,
            current_sleep_seconds: current,
            reason,
            plain_reason: None,
            updated_at_epoch: now.as_second(),
            sleep_until_epoch: None,
            failed_ticks: 0,
            last_error: None,
        }
    }

    pub(crate) fn sleeping(seconds: u64, reason: String, now: Timestamp) -> Self {
        let now = now.as_second();
        Self {
            state: LoopState::Sleeping,
            current_sleep_seconds: seconds,
            reason,
            plain_reason: None,
            updated_at_epoch: now,
            sleep_until_epoch: Some(now.saturating_add_unsigned(seconds)),
            failed_ticks: 0,
            last_error: None,
        }
    }

    /// Adds why the last tick failed to the reason: for readers who see nothing else of the loop.
    pub(crate) fn after(mut self, error: &str) -> Self {
        let reason = format!("{}; the last error: {error}", self.reason);
        self.plain_reason = Some(std::mem::replace(&mut self.reason, reason));
        self
    }
}

/// `session.json`: there from the beginning of a loop to its end, so that one which was cut off is known by
/// it, with the session that continues then. With `KEEP_SESSION` it stays at the end in order, too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SessionFile {
    pub(crate) runtime: String,
    pub(crate) session_id: Option<String>,
    pub(crate) pid: u32,
    pub(crate) updated_at_epoch: i64,
    /// The loop ended in order.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) ended: bool,
    /// The tick that is being played.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tick: Option<TickBegin>,
}

impl SessionFile {
    pub(crate) const NAME: &str = "session.json";
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_fields_that_dashboards_read() {
        let now = Timestamp::from_second(1000).unwrap();
        let sleeping = SleepFile::sleeping(120, "idle".into(), now);
        assert_eq!(
            serde_json::to_value(&sleeping).unwrap(),
            json!({"state": "sleeping", "current_sleep_seconds": 120, "reason": "idle",
                "updated_at_epoch": 1000, "sleep_until_epoch": 1120})
        );
        let failed = sleeping.after("no; the last error: no");
        assert_eq!(failed.plain_reason(), "idle");
        assert_eq!(
            failed.reason,
            "idle; the last error: no; the last error: no"
        );
        let newer: LoopState = serde_json::from_value(json!("dreaming")).unwrap();
        assert_eq!(newer, LoopState::Other);
        let tick = SleepFile::tick(60, "work done".into(), now);
        assert_eq!(
            serde_json::to_value(&tick).unwrap(),
            json!({"state": "tick", "current_sleep_seconds": 60, "reason": "work done",
                "updated_at_epoch": 1000})
        );
    }
}
