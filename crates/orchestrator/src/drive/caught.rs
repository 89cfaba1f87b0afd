//! Isolates a run from panics and delays in user callbacks.

use std::future::Future;
use std::time::Duration;

use teamster_core::AbortHandle;
use teamster_core::sync::caught;
use tokio::time::sleep;

/// Time that an observer may delay a run.
const OBSERVER: Duration = Duration::from_secs(30);

/// Time that an observer may delay a run that was asked to stop.
const OBSERVER_OF_A_STOPPED_RUN: Duration = Duration::from_secs(3);

/// Waits for an observer, with a time limit. Ignores its panics.
pub(super) async fn observed(future: impl Future<Output = ()>, abort: &AbortHandle) {
    let stopped = async {
        abort.aborted().await;
        sleep(OBSERVER_OF_A_STOPPED_RUN).await;
    };
    // The observer itself must report what it missed.
    tokio::select! {
        _ = caught(future) => {}
        () = stopped => {}
        () = sleep(OBSERVER) => {}
    }
}
