//! A session that waits for a machine of a fleet.

use std::time::Duration;

use teamster_api::{RunHandle, ServiceError, ViewState};
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::connection::Update;
use super::repeat::{is_break, repeated};

/// Interval in which a queued session is looked at. One that is taken at once is not reported.
const LOOK: Duration = Duration::from_secs(2);
/// Title of the notice with the reason.
const QUEUED: &str = "Queued";

/// Returns whether a session is queued, as it may be while the service cannot be reached.
pub(super) async fn is_queued(run: &RunHandle) -> bool {
    match run.outline().await {
        Ok(view) => view.summary.state == ViewState::Queued,
        // Any other error is that of the next request, too.
        Err(error) => is_break(&error),
    }
}

/// Waits until a session is no longer queued. Cancel-safe. Fails if the service cannot be reached for long, or does not
/// have the session.
pub(super) async fn until_taken(run: &RunHandle) -> Result<(), ServiceError> {
    while repeated(|| run.outline()).await?.summary.state == ViewState::Queued {
        sleep(LOOK).await;
    }
    Ok(())
}

/// Reports why a session is queued, whenever that changes, until it is no longer.
pub(super) async fn report(session_id: String, run: RunHandle, updates: mpsc::Sender<Update>) {
    let mut reported = None;
    loop {
        sleep(LOOK).await;
        let Ok(view) = repeated(|| run.outline()).await else {
            return;
        };
        let (ViewState::Queued, Some(queue)) = (view.summary.state, &view.summary.queue) else {
            return;
        };
        if reported.as_ref() == Some(&queue.detail) {
            continue;
        }
        let update = Update::Notice(session_id.clone(), QUEUED, queue.detail.clone());
        // Fails only if the editor has disconnected.
        if updates.send(update).await.is_err() {
            return;
        }
        reported = Some(queue.detail.clone());
    }
}
