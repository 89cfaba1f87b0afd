//! Signal handling of a chat.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use teamster::{AbortHandle, CancellationToken};
use teamster_core::sync::lock;
use tokio::sync::watch;

use crate::dialog::terminal;
use crate::exit_code;
use crate::signals::{Source, StopSignal, run_ended_and_read};

/// Listener for signals: Ctrl-C interrupts the turn in progress, other signals end the chat.
///
/// A separate task handles them, because the task that shows events may be blocked in a write.
#[derive(Debug, Clone)]
pub(super) struct Signals {
    target: Arc<Mutex<Target>>,
    interrupts: watch::Receiver<()>,
    end: CancellationToken,
}

/// The current target of Ctrl-C.
#[derive(Debug)]
enum Target {
    /// No turn is in progress. At a terminal, the line editor handles Ctrl-C.
    Idle,
    /// A turn in progress, and the number of signals during it.
    Turn(AbortHandle, u32),
    /// The session is being closed.
    Closing,
}

impl Signals {
    /// Installs the signal handlers. Unless `at_terminal`, Ctrl-C between two turns ends the chat.
    pub(super) fn listen(at_terminal: bool) -> io::Result<Self> {
        let mut source = Source::new()?;
        let (sender, interrupts) = watch::channel(());
        let this = Self {
            target: Arc::new(Mutex::new(Target::Idle)),
            interrupts,
            end: CancellationToken::new(),
        };
        let signals = this.clone();
        tokio::spawn(async move {
            loop {
                let signal = source.stop_signal().await;
                let ended = signals.end.is_cancelled();
                let exits = match (&mut *signals.target(), signal) {
                    (Target::Closing, _) => true,
                    (Target::Turn(turn, count), _) => {
                        *count += 1;
                        match *count {
                            1 => turn.abort(),
                            2 => turn.kill(),
                            _ => exit_now(),
                        }
                        false
                    }
                    (Target::Idle, _) => false,
                };
                if exits {
                    exit_now();
                }
                if signal == StopSignal::End || (!at_terminal && !signals.is_in_turn()) {
                    signals.end.cancel();
                    if !ended {
                        tokio::spawn(async {
                            run_ended_and_read().await;
                            exit_now();
                        });
                    }
                }
                // Fails only after the chat has dropped the receiver.
                let _ = sender.send(());
            }
        });
        Ok(this)
    }

    /// Creates a listener without signal handlers, for tests.
    #[cfg(test)]
    pub(super) fn none() -> Self {
        Self {
            target: Arc::new(Mutex::new(Target::Idle)),
            interrupts: watch::channel(()).1,
            end: CancellationToken::new(),
        }
    }

    /// Returns the token that ends the chat, for tests.
    #[cfg(test)]
    pub(super) fn end(&self) -> CancellationToken {
        self.end.clone()
    }

    /// Directs Ctrl-C to this turn until the guard is dropped.
    pub(super) fn turn(&mut self, turn: AbortHandle) -> TurnGuard<'_> {
        if self.end.is_cancelled() {
            turn.abort();
        }
        self.interrupts.mark_unchanged();
        *self.target() = Target::Turn(turn, 0);
        TurnGuard(self)
    }

    /// Marks the session as closing: the next signal ends the process at once.
    pub(super) fn closing(&self) {
        *self.target() = Target::Closing;
    }

    /// Waits for a signal.
    ///
    /// Cancel-safe.
    pub(super) async fn interrupted(&mut self) {
        if self.interrupts.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Waits until a signal ends the chat.
    ///
    /// Cancel-safe.
    pub(super) async fn ended(&self) {
        self.end.cancelled().await;
    }

    /// Returns whether a signal ended the chat.
    pub(super) fn has_ended(&self) -> bool {
        self.end.is_cancelled()
    }

    fn is_in_turn(&self) -> bool {
        matches!(*self.target(), Target::Turn(..))
    }

    fn target(&self) -> MutexGuard<'_, Target> {
        lock(&self.target)
    }
}

/// Guard of a turn in progress.
pub(super) struct TurnGuard<'a>(&'a mut Signals);

impl TurnGuard<'_> {
    /// Waits for a signal, as [`Signals::interrupted`] does.
    pub(super) async fn interrupted(&mut self) {
        self.0.interrupted().await;
    }
}

impl Drop for TurnGuard<'_> {
    fn drop(&mut self) {
        *self.0.target() = Target::Idle;
    }
}

fn exit_now() -> ! {
    terminal::restore();
    std::process::exit(exit_code::ABORTED.into());
}
