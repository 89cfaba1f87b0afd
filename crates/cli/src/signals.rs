//! Stops the run when the user or the system asks for it.

use std::io;
use std::time::Duration;

use teamster::AbortHandle;
use teamster::process::live_runs;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tokio::time::{interval, sleep};

use crate::exit_code;

/// After the first signal: how long a reader may take for the run's last output once it has ended.
const PATIENCE: Duration = Duration::from_secs(10);
/// The same after the second one: enough for a reader that reads.
const MOMENT: Duration = Duration::from_millis(500);
/// How often is looked whether the run has ended.
const LOOK: Duration = Duration::from_millis(20);

/// The name of the signal of Ctrl-C.
const INTERRUPT: &str = "SIGINT";

/// Listens for the signals to stop: Ctrl-C, SIGTERM, and SIGHUP when the terminal closes.
///
/// The first stops the run cleanly, the second kills it, the third exits at once. If the program cannot end
/// after the run because its output is not read, it exits.
///
/// A task of its own acts on them, because the one that shows the events may be stuck in writing.
#[derive(Debug)]
pub(crate) struct Signals {
    asked: watch::Receiver<bool>,
}

impl Signals {
    /// From now on, signals stop the run of this handle.
    pub(crate) fn stop(run: AbortHandle) -> io::Result<Self> {
        let mut source = Source::new()?;
        let (sender, asked) = watch::channel(false);
        tokio::spawn(async move {
            source.next().await;
            run.abort();
            // The receiver lives as long as the run is shown.
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
        Ok(Self { asked })
    }

    /// Waits until the user requests the end. Returns once only, then waits forever. Cancel-safe.
    pub(crate) async fn asked(&mut self) {
        if self.asked.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// Waits until nothing is left of the run, and then as long as a reader who has to read its end may take.
pub(crate) async fn run_ended_and_read() {
    run_ended(PATIENCE).await;
}

/// Waits until nothing is left of the run, and then for as long as given.
async fn run_ended(more: Duration) {
    let mut looks = interval(LOOK);
    // The stream would report it too, but its reader may be stuck.
    while live_runs() > 0 {
        looks.tick().await;
    }
    sleep(more).await;
}

/// What a signal asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Request {
    /// Ctrl-C.
    Interrupt,
    /// SIGTERM, or SIGHUP when the terminal goes.
    End,
}

/// The signals that ask for an end.
pub(crate) struct Source {
    interrupt: Option<Signal>,
    terminate: Signal,
    hang_up: Option<Signal>,
}

impl Source {
    /// From now on, they do not end the program by themselves.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            interrupt: unless_ignored(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: unless_ignored(SignalKind::hangup())?,
        })
    }

    /// Waits for the next one. Cancel-safe.
    pub(crate) async fn next(&mut self) {
        self.request().await;
    }

    /// Waits for the next one and returns it. Cancel-safe.
    pub(crate) async fn request(&mut self) -> Request {
        match self.name().await {
            INTERRUPT => Request::Interrupt,
            _ => Request::End,
        }
    }

    /// Waits for the next one; its name. Cancel-safe.
    pub(crate) async fn name(&mut self) -> &'static str {
        tokio::select! {
            () = received(&mut self.interrupt) => INTERRUPT,
            _ = self.terminate.recv() => "SIGTERM",
            () = received(&mut self.hang_up) => "SIGHUP",
        }
    }
}

/// Waits for the signal, forever if it is ignored. Cancel-safe.
async fn received(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => {
            signal.recv().await;
        }
        None => std::future::pending().await,
    }
}

/// Listens for the signal, unless we were started with it ignored: `nohup` ignores SIGHUP, and a shell
/// SIGINT for what it starts in the background of a script. To listen would undo that.
fn unless_ignored(kind: SignalKind) -> io::Result<Option<Signal>> {
    if is_ignored(kind) {
        return Ok(None);
    }
    signal(kind).map(Some)
}

/// Whether we were started with this signal ignored. Where `/proc` does not say, SIGHUP counts as
/// ignored: then it does what it does to any program.
fn is_ignored(kind: SignalKind) -> bool {
    let ignored = std::fs::read_to_string("/proc/self/status")
        .ok()
        .and_then(|status| {
            let mask = status
                .lines()
                .find_map(|line| line.strip_prefix("SigIgn:"))?;
            u64::from_str_radix(mask.trim(), 16).ok()
        });
    // Signal 1 is the lowest bit.
    let bit = 1 << (kind.as_raw_value() - 1);
    ignored.map_or(kind == SignalKind::hangup(), |mask| mask & bit != 0)
}
