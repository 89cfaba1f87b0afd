//! Termination signals: Ctrl-C, SIGTERM and SIGHUP.

use std::io;
use std::time::Duration;

use teamster::AbortHandle;
use teamster::process::live_runs;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tokio::time::{interval, sleep};

use crate::exit_code;

/// The time for a reader to read the last output after the end of the run, after one signal.
const PATIENCE: Duration = Duration::from_secs(10);
/// The time for a reader to read the last output after the end of the run, after two signals.
const MOMENT: Duration = Duration::from_millis(500);
/// The interval of checks whether the run has ended.
const LOOK: Duration = Duration::from_millis(20);

/// The name of the signal of Ctrl-C.
const INTERRUPT: &str = "SIGINT";

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

/// The meaning of a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StopSignal {
    /// Ctrl-C.
    Interrupt,
    /// SIGTERM, or SIGHUP when the terminal closes.
    End,
}

/// Listens for termination signals.
pub(crate) struct Source {
    interrupt: Option<Signal>,
    terminate: Signal,
    hang_up: Option<Signal>,
}

impl Source {
    /// Installs the signal handlers. From then on, the signals do not end the program by themselves.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            interrupt: unless_ignored(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: unless_ignored(SignalKind::hangup())?,
        })
    }

    /// Waits for the next signal. Cancel-safe.
    pub(crate) async fn next(&mut self) {
        self.stop_signal().await;
    }

    /// Waits for the next signal and returns its meaning. Cancel-safe.
    pub(crate) async fn stop_signal(&mut self) -> StopSignal {
        match self.name().await {
            INTERRUPT => StopSignal::Interrupt,
            _ => StopSignal::End,
        }
    }

    /// Waits for the next signal and returns its name. Cancel-safe.
    pub(crate) async fn name(&mut self) -> &'static str {
        tokio::select! {
            () = received(&mut self.interrupt) => INTERRUPT,
            _ = self.terminate.recv() => "SIGTERM",
            () = received(&mut self.hang_up) => "SIGHUP",
        }
    }
}

/// Waits for the signal; forever if it is ignored. Cancel-safe.
async fn received(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => {
            signal.recv().await;
        }
        None => std::future::pending().await,
    }
}

/// Listens for the signal unless this process inherited it as ignored. `nohup` ignores SIGHUP, and a shell ignores
/// SIGINT for background commands of a script. A handler would override that.
fn unless_ignored(kind: SignalKind) -> io::Result<Option<Signal>> {
    if is_ignored(kind) {
        return Ok(None);
    }
    signal(kind).map(Some)
}

/// Returns `true` if this process inherited the signal as ignored. Without `/proc`, only SIGHUP counts as ignored, so
/// it keeps its default action.
fn is_ignored(kind: SignalKind) -> bool {
    let ignored = std::fs::read_to_string("/proc/self/status")
        .ok()
        .and_then(|status| {
            let mask = status
                .lines()
                .find_map(|line| line.strip_prefix("SigIgn:"))?;
            u64::from_str_radix(mask.trim(), 16).ok()
        });
    // The lowest bit is signal 1.
    let bit = 1 << (kind.as_raw_value() - 1);
    ignored.map_or(kind == SignalKind::hangup(), |mask| mask & bit != 0)
}
