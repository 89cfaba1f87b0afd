//! Limits of the subscription, which each `token_count` of a rollout has.

use std::time::SystemTime;

use jiff::Timestamp;
use memchr::memmem;
use serde::Deserialize;

use crate::{Limit, Provider};

#[derive(Deserialize)]
struct Line {
    timestamp: Timestamp,
    payload: Payload,
}

#[derive(Deserialize)]
struct Payload {
    r#type: String,
    rate_limits: Option<RateLimits>,
}

#[derive(Deserialize)]
struct RateLimits {
    primary: Option<Window>,
    secondary: Option<Window>,
}

#[derive(Deserialize)]
struct Window {
    used_percent: f64,
    #[serde(rename = "window_minutes")]
    minutes: Option<u64>,
    /// Seconds since 1970-01-01 UTC.
    resets_at: Option<i64>,
}

/// Returns the limits in a line, if there are any.
pub(super) fn of_line(line: &[u8]) -> Vec<Limit> {
    if memmem::find(line, b"\"rate_limits\"").is_none() {
        return Vec::new();
    }
    let Ok(line) = serde_json::from_slice::<Line>(line) else {
        return Vec::new();
    };
    let limits = line.payload.rate_limits;
    let Some(limits) = limits.filter(|_| line.payload.r#type == "token_count") else {
        return Vec::new();
    };
    let windows = [limits.primary, limits.secondary].into_iter().flatten();
    windows
        .map(|window| Limit {
            provider: Provider::Codex,
            window_minutes: window.minutes,
            used_percent: window.used_percent,
            resets_at: window
                .resets_at
                .and_then(|at| Timestamp::from_second(at).ok())
                .map(SystemTime::from),
            at: line.timestamp.into(),
        })
        .collect()
}
