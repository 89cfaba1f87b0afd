//! Stops the run when the user or the system asks for it.

use std::io;
use std::time::Duration;

use teamster::AbortHandle;
use tokio::sync::watch;

use crate::exit_code;

/// How long the run may take to end after it was killed, before the program leaves without it.
const PATIENCE: Duration = Duration::from_secs(5);

/// Listens for the signals that ask for an end: Ctrl-C, SIGTERM, and SIGHUP when the terminal goes.
///
/// The first one stops the run cleanly. The second kills it at once; if even then the program does
/// not come to its end, for example because nobody reads what it writes, it leaves.
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
        let (tell, asked) = watch::channel(false);
        tokio::spawn(async move {
            source.next().await;
            run.abort();
            // The receiver lives as long as the run is shown.
            let _ = tell.send(true);
            source.next().await;
            run.kill();
            tokio::time::sleep(PATIENCE).await;
            std::process::exit(exit_code::ABORTED.into());
        });
        Ok(Self { asked })
    }

    /// Waits until the user asked for the end. Returns once only, then waits for ever. Cancel-safe.
    pub(crate) async fn asked(&mut self) {
        if self.asked.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(unix)]
struct Source {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    hang_up: Option<tokio::signal::unix::Signal>,
}

#[cfg(unix)]
impl Source {
    fn new() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            // `nohup` ignores it, and to listen for it would undo that.
            hang_up: if hang_up_is_ignored() {
                None
            } else {
                Some(signal(SignalKind::hangup())?)
            },
        })
    }

    async fn next(&mut self) {
        let hang_up = async {
            match &mut self.hang_up {
                Some(signal) => signal.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = hang_up => {}
        }
    }
}

/// Whether we were started with SIGHUP ignored. Where `/proc` does not tell, it is taken to be so:
/// then SIGHUP does what it does to any program.
#[cfg(unix)]
fn hang_up_is_ignored() -> bool {
    let ignored = std::fs::read_to_string("/proc/self/status")
        .ok()
        .and_then(|status| {
            let mask = status
                .lines()
                .find_map(|line| line.strip_prefix("SigIgn:"))?;
            u64::from_str_radix(mask.trim(), 16).ok()
        });
    // SIGHUP is signal 1, the lowest bit.
    ignored.is_none_or(|mask| mask & 1 != 0)
}

#[cfg(not(unix))]
struct Source;

#[cfg(not(unix))]
impl Source {
    #[expect(clippy::unnecessary_wraps, reason = "the same shape as on Unix")]
    fn new() -> io::Result<Self> {
        Ok(Self)
    }

    async fn next(&mut self) {
        // Without a handler Ctrl-C ends the program as it always does.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
