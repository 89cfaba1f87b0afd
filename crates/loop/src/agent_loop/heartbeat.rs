//! Heartbeat of the loop.

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::clock::Clock;
use crate::folder::write_json;

/// Interval between two heartbeats.
const INTERVAL: Duration = Duration::from_secs(30);

/// `heartbeat.json`: written every 30 s while the loop runs, in ticks and in sleeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Heartbeat {
    /// In milliseconds since the Unix epoch.
    pub(crate) epoch_ms: i64,
    /// The process id of the loop.
    pub(crate) pid: u32,
}

impl Heartbeat {
    pub(crate) const NAME: &str = "heartbeat.json";
}

/// Writes the file at each interval.
pub(super) async fn write_heartbeats(clock: Arc<dyn Clock>, path: PathBuf) -> Infallible {
    loop {
        let heartbeat = Heartbeat {
            epoch_ms: clock.now().as_millisecond(),
            pid: std::process::id(),
        };
        // A missing folder is restored at the next tick.
        let _ = write_json(&path, &heartbeat);
        clock.sleep(INTERVAL).await;
    }
}
