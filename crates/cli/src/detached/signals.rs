//! Signals for a view.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use teamster_api::RunHandle;
use teamster_core::Stopping;
use tokio::sync::watch;

use crate::dialog::terminal;
use crate::exit_code;
use crate::signals::{Source, StopSignal, run_ended_and_read};

/// Listener for signals, in a task of its own.
#[derive(Debug)]
pub(crate) struct Signals {
    shared: Arc<Shared>,
    received: watch::Receiver<StopSignal>,
}

#[derive(Debug, Default)]
struct Shared {
    /// A turn is shown, which may have ended.
    is_in_turn: AtomicBool,
    /// The number of signals during the turn in progress.
    count: AtomicU32,
    /// A signal has ended the session.
    ended: AtomicBool,
    /// The session is being closed.
    closing: AtomicBool,
}

impl Signals {
    /// Installs the signal handlers for a client, which acts on them.
    pub(crate) fn of_client() -> io::Result<Self> {
        let mut source = Source::new()?;
        let (signals, sender) = Self::new();
        tokio::spawn(async move { while sender.send(source.stop_signal().await).is_ok() {} });
        Ok(signals)
    }

    /// Installs the signal handlers for the owner of a session: Ctrl-C interrupts the turn in progress, other signals end
    /// the session. Unless `at_terminal`, Ctrl-C between two turns ends it as well; at a terminal, the line editor handles
    /// it.
    ///
    /// They are acted on here, because the task that shows the log may be blocked in a write.
    pub(crate) fn of_owner(session: RunHandle, at_terminal: bool) -> io::Result<Self> {
        let mut source = Source::new()?;
        let (signals, sender) = Self::new();
        let shared = signals.shared.clone();
        tokio::spawn(async move {
            loop {
                let signal = source.stop_signal().await;
                let is_shown = shared.is_in_turn.load(Ordering::Relaxed);
                let count = shared
                    .count
                    .fetch_add(u32::from(is_shown), Ordering::Relaxed);
                if count > 1 {
                    exit_now();
                }
                let is_in_turn = session
                    .interrupt(Stopping::kill_if(count == 1))
                    .await
                    .is_ok()
                    || is_shown;
                if !is_in_turn && shared.is_closing() {
                    exit_now();
                }
                if (signal == StopSignal::End || (!at_terminal && !is_in_turn))
                    && !shared.ended.swap(true, Ordering::Relaxed)
                {
                    // It may have ended by itself.
                    let _ = session.cancel(Stopping::Graceful).await;
                    tokio::spawn(async {
                        run_ended_and_read().await;
                        exit_now();
                    });
                }
                // Fails only after the view.
                let _ = sender.send(signal);
            }
        });
        Ok(signals)
    }

    /// Creates a listener without signal handlers, and the sender of its signals.
    pub(crate) fn new() -> (Self, watch::Sender<StopSignal>) {
        let (sender, received) = watch::channel(StopSignal::Interrupt);
        let shared = Arc::default();
        (Self { shared, received }, sender)
    }

    /// Waits for a signal. Cancel-safe.
    pub(super) async fn next(&mut self) -> StopSignal {
        if self.received.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
        *self.received.borrow_and_update()
    }

    /// Reports the start or the end of a turn.
    pub(super) fn turn(&self, begins: bool) {
        // The beginning of a turn may be reported twice.
        if self.shared.is_in_turn.swap(begins, Ordering::Relaxed) != begins {
            self.shared.count.store(0, Ordering::Relaxed);
        }
    }

    /// Marks the session as closing: the next signal ends the process at once.
    pub(super) fn closing(&self) {
        self.shared.closing.store(true, Ordering::Relaxed);
    }

    /// Returns whether the session is being closed.
    pub(super) fn is_closing(&self) -> bool {
        self.shared.is_closing()
    }

    /// Returns whether a signal ended the session.
    pub(super) fn has_ended(&self) -> bool {
        self.shared.ended.load(Ordering::Relaxed)
    }
}

impl Shared {
    fn is_closing(&self) -> bool {
        self.ended.load(Ordering::Relaxed) || self.closing.load(Ordering::Relaxed)
    }
}

fn exit_now() -> ! {
    terminal::restore();
    std::process::exit(exit_code::ABORTED.into());
}
