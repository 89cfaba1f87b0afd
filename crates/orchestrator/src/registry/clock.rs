//! A clock for tests.

use std::sync::Arc;

use teamster_core::time::millis;

use crate::Clock;

/// A clock that shows `start_ms` now and goes as Tokio's time does, also when that is paused.
pub(crate) fn test_clock(start_ms: u64) -> Clock {
    let start = tokio::time::Instant::now();
    Arc::new(move || start_ms.saturating_add(millis(start.elapsed())))
}
