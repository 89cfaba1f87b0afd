//! A session that waits for a machine of a fleet.

use std::time::Duration;

use teamster_api::{RunHandle, ViewState};
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::connection::Update;

/// Interval in which a queued session is looked at. One that is taken at once is not reported.
const LOOK: Duration = Duration::from_secs(2);
/// Title of the notice with the reason.
const QUEUED: &str = "Queued";

/// Returns whether a session is queued.
pub(super) async fn is_queued(run: &RunHandle) -> bool {
    // An error is that of the next request, too.
    let view = run.outline().await;
    view.is_ok_and(|view| view.summary.state == ViewState::Queued)
}

/// Waits until a session is no longer queued. Cancel-safe.
pub(super) async fn until_taken(run: &RunHandle) {
    while is_queued(run).await {
        sleep(LOOK).await;
    }
}

/// Reports why a session is queued, whenever that changes, until it is no longer.
pub(super) async fn report(session_id: String, run: RunHandle, updates: mpsc::Sender<Update>) {
    let mut reported = None;
    loop {
        sleep(LOOK).await;
        let Ok(view) = run.outline().await else {
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
