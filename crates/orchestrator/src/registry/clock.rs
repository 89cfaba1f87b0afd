//! A clock for tests.

use std::sync::Arc;

use crate::Clock;

/// A clock that shows `start_ms` now and goes as Tokio's time does, also when that is paused.
pub(crate) fn test_clock(start_ms: u64) -> Clock {
    let start = tokio::time::Instant::now();
    Arc::new(move || {
        let elapsed = u64::try_from(start.elapsed().as_millis());
        start_ms.saturating_add(elapsed.unwrap_or(u64::MAX))
    })
}
