//! Termination signals: Ctrl-C, SIGTERM and SIGHUP.

use std::io;
use std::time::Duration;

use teamster::AbortHandle;
use teamster::process::live_runs;
pub(crate) use teamster_host::signals::{Source, StopSignal};
use tokio::sync::watch;
use tokio::time::{interval, sleep};

use crate::exit_code;

/// The time for a reader to read the last output after the end of the run, after one signal.
const PATIENCE: Duration = Duration::from_secs(10);
/// The time for a reader to read the last output after the end of the run, after two signals.
const MOMENT: Duration = Duration::from_millis(500);
/// The interval of checks whether the run has ended.
const LOOK: Duration = Duration::from_millis(20);

/// Stops a run on signals: Ctrl-C, SIGTERM, and SIGHUP when the terminal closes.
///
/// The first signal stops the run cleanly, the second kills it, the third exits at once. If unread output blocks the
/// program after the end of the run, it exits as well.
///
/// A separate task handles the signals, because the task that shows events may be blocked in a write.
#[derive(Debug)]
pub(crate) struct Signals {
    stop_requested: watch::Receiver<bool>,
}

impl Signals {
    /// Installs the signal handlers for this run.
    pub(crate) fn stop(run: AbortHandle) -> io::Result<Self> {
        let mut source = Source::new()?;
        let (sender, stop_requested) = watch::channel(false);
        tokio::spawn(async move {
            source.next().await;
            run.abort();
            // Fails if the run is no longer shown.
            let _ = sender.send(true);
            tokio::select! {
                () = run_ended(PATIENCE) => {}
                () = source.next() => {
                    run.kill();
                    tokio::select! {
                        () = run_ended(MOMENT) => {}
                        () = source.next() => {}
                    }
                }
            }
            std::process::exit(exit_code::ABORTED.into());
        });
        Ok(Self { stop_requested })
    }

    /// Waits for the first signal. Later calls wait forever. Cancel-safe.
    pub(crate) async fn stop_requested(&mut self) {
        if self.stop_requested.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// Waits until no process of the run is left, then for the reader of its output.
pub(crate) async fn run_ended_and_read() {
    run_ended(PATIENCE).await;
}

/// Waits until no process of the run is left, then for `more`.
async fn run_ended(more: Duration) {
    let mut looks = interval(LOOK);
    // The event stream reports it too, but its reader may be blocked.
    while live_runs() > 0 {
        looks.tick().await;
    }
    sleep(more).await;
}
