//! `sleep.json`, in which a loop reports its status.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use teamster_core::ErrorKind;

/// `sleep.json`: current status of the loop.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[non_exhaustive]
pub struct SleepFile {
    /// State of the loop.
    pub state: LoopState,
    /// Current sleep between ticks, in seconds.
    pub current_sleep_seconds: u64,
    /// Reason of the state, for people, with the last error.
    pub reason: String,
    /// `reason` without the last error, if `reason` has one.
    pub plain_reason: Option<String>,
    /// Time of writing, in seconds since the Unix epoch.
    pub updated_at_epoch: i64,
    /// End of the sleep, in seconds since the Unix epoch; only while the loop sleeps.
    pub sleep_until_epoch: Option<i64>,
    /// Failed ticks and starts in a row; left out at 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failed_ticks: u32,
    /// Error of the last of them.
    pub last_error: Option<TickError>,
}

impl SleepFile {
    /// Creates a status without a sleep and without failures.
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

/// Error of a tick.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[non_exhaustive]
pub struct TickError {
    /// Class of the error.
    pub kind: ErrorKind,
    /// The error, for people, on one line of limited length.
    pub message: String,
    /// Time of the error, in seconds since the Unix epoch.
    pub at_epoch: i64,
}

impl TickError {
    /// Creates an error at this time, in seconds since the Unix epoch.
    pub fn new(kind: ErrorKind, message: impl Into<String>, at_epoch: i64) -> Self {
        Self {
            kind,
            message: message.into(),
            at_epoch,
        }
    }

    /// Returns whether the error is a rate limit or a spent quota, which only waiting resolves.
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

/// State of a loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum LoopState {
    /// The loop sleeps between two ticks.
    Sleeping,
    /// The loop runs a tick.
    Tick,
    /// Value of a later version.
    #[serde(other)]
    Other,
}

impl SleepFile {
    /// Returns the reason without the last error.
    pub fn plain_reason(&self) -> &str {
        self.plain_reason.as_deref().unwrap_or(&self.reason)
    }

    /// Name of the file.
    pub const NAME: &str = "sleep.json";

    /// Creates the status of a loop that runs a tick. `current` is its sleep in seconds.
    pub fn tick(current: u64, reason: String, now: Timestamp) -> Self {
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

    /// Creates the status of a loop that sleeps for this time from `now`, in seconds.
    pub fn sleeping(seconds: u64, reason: String, now: Timestamp) -> Self {
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

    /// Appends the error of the last tick to the reason, for readers that show only the reason.
    #[must_use]
    pub fn after(mut self, error: &str) -> Self {
        let reason = format!("{}; the last error: {error}", self.reason);
        self.plain_reason = Some(std::mem::replace(&mut self.reason, reason));
        self
    }
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
