//! The reason for which a run of a fleet waits, as a terminal shows it.

use std::time::Duration;

use teamster_api::{RunHandle, ViewState};
use tokio::time::sleep;

use crate::report::note;
use crate::words;

/// Interval in which a queued run is looked at. One that is taken at once is not reported.
const POLL_INTERVAL: Duration = Duration::from_secs(2);

/// Reports on stderr why the run is queued, whenever that changes, until it is no longer. `is_one` is true if no other
/// run is reported.
pub(crate) async fn report_queue(run: RunHandle, is_one: bool) {
    let mut reported = None;
    loop {
        sleep(POLL_INTERVAL).await;
        let Ok(view) = run.outline().await else {
            return;
        };
        let (ViewState::Queued, Some(queue)) = (view.summary.state, &view.summary.queue) else {
            return;
        };
        if reported.as_ref() != Some(&queue.detail) {
            let what = if is_one {
                String::new()
            } else {
                format!("run {} ", run.id())
            };
            note(&format!("{what}queued: {}", words::one_line(&queue.detail)));
            reported = Some(queue.detail.clone());
        }
    }
}
