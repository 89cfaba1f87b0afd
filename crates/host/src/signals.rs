//! Termination signals: Ctrl-C, SIGTERM and SIGHUP.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The name of the signal of Ctrl-C.
const INTERRUPT: &str = "SIGINT";

/// The meaning of a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopSignal {
    /// Ctrl-C.
    Interrupt,
    /// SIGTERM, or SIGHUP when the terminal closes.
    End,
}

/// Listens for termination signals.
pub struct Source {
    interrupt: Option<Signal>,
    terminate: Signal,
    hang_up: Option<Signal>,
}

impl Source {
    /// Installs the signal handlers. From then on, the signals do not end the program by themselves.
    ///
    /// # Errors
    ///
    /// Fails if a handler cannot be installed.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            interrupt: unless_ignored(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: unless_ignored(SignalKind::hangup())?,
        })
    }

    /// Waits for the next signal. Cancel-safe.
    pub async fn next(&mut self) {
        self.stop_signal().await;
    }

    /// Waits for the next signal and returns its meaning. Cancel-safe.
    pub async fn stop_signal(&mut self) -> StopSignal {
        match self.name().await {
            INTERRUPT => StopSignal::Interrupt,
            _ => StopSignal::End,
        }
    }

    /// Waits for the next signal and returns its name. Cancel-safe.
    pub async fn name(&mut self) -> &'static str {
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
