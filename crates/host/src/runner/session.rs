//! The work of the runner of a detached session.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use teamster_core::{AgentError, Stopping};
use teamster_runner::{AtRest, Runs};

use super::run::Ended;
use super::{detach, stop_by_signals};
use crate::guard::Guard;
use crate::prepare::PreparedSession;
use crate::signals::Source;
use crate::start::report;
use crate::{Host, memory};

/// The time at rest after which a session releases memory. Work that follows a turn has ended by then.
const RELEASE_DELAY: Duration = Duration::from_secs(2);

pub(super) async fn work(
    host: &Host,
    mut prepared: PreparedSession,
    runs: &Runs,
    signals: Source,
    at_rest: AtRest,
) -> Result<Ended, AgentError> {
    let run = prepared.accept(runs)?;
    detach(&run, &mut prepared.common)?;
    let history = prepared.history.clone();
    let session = prepared.detached(run, Some(at_rest));
    let control = session.control();
    stop_by_signals(signals, move |kill| control.end(Stopping::kill_if(kill)));
    let finished = session.work().await;
    report(host, &finished, history.close().await);
    Ok(Ended {
        result: finished.result,
        recorded: None,
    })
}

/// Returns the function that is called when the session begins and ends to wait for a prompt. It MUST be called in a
/// Tokio runtime.
pub(super) fn at_rest(guard: Option<Arc<Guard>>) -> AtRest {
    let rests = Arc::new(AtomicU64::new(0));
    Box::new(move |is_at_rest| {
        if let Some(guard) = &guard {
            guard.report_idle(is_at_rest);
        }
        let this = rests.fetch_add(1, Ordering::Relaxed) + 1;
        if is_at_rest {
            let rests = Arc::clone(&rests);
            tokio::spawn(async move {
                tokio::time::sleep(RELEASE_DELAY).await;
                if rests.load(Ordering::Relaxed) == this {
                    memory::release_code();
                }
            });
        }
    })
}
