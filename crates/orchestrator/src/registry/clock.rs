//! A clock for tests.

use std::sync::Arc;

use teamster_core::time::millis;

use crate::Clock;

/// Creates a clock that starts at `start_ms` and follows Tokio's time, including when that is paused.
pub(crate) fn test_clock(start_ms: u64) -> Clock {
    let start = tokio::time::Instant::now();
    Arc::new(move || start_ms.saturating_add(millis(start.elapsed())))
}
