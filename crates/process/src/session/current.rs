//! Turn in progress of a session.

use teamster_core::AbortHandle;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use crate::queue::Producer;
use crate::stop_signals::StopSignals;
use crate::watchdog::Limits;

/// Turn in progress.
pub(super) struct Current {
    pub(super) queue: Producer,
    pub(super) stop_signals: StopSignals,
    pub(super) limits: Limits,
    pub(super) begun: Instant,
    /// Start of the time limits, unless the last line was later.
    pub(super) since: Instant,
    /// Exclusive use of the process, until this is dropped.
    _permit: Option<OwnedSemaphorePermit>,
}

impl Current {
    pub(super) fn new(
        queue: Producer,
        abort: &AbortHandle,
        limits: Limits,
        permit: Option<OwnedSemaphorePermit>,
    ) -> Self {
        Self {
            queue,
            stop_signals: StopSignals::new(abort),
            limits,
            begun: Instant::now(),
            since: Instant::now(),
            _permit: permit,
        }
    }
}
