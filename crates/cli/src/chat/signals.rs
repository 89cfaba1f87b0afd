//! What signals do in a chat.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use teamster::{AbortHandle, CancellationToken};
use teamster_core::sync::lock;
use tokio::sync::watch;

use super::terminal;
use crate::exit_code;
use crate::signals::{Request, Source, run_ended_and_read};

/// Listens for signals: Ctrl-C is for the turn that is played, the others end the chat.
///
/// A task of its own acts on them, because the one that shows the events may be stuck in writing.
#[derive(Debug, Clone)]
pub(super) struct Signals {
    now: Arc<Mutex<Now>>,
    interrupts: watch::Receiver<()>,
    end: CancellationToken,
}

/// What Ctrl-C is for at this moment.
#[derive(Debug)]
enum Now {
    /// Nothing is played. At a terminal the editor has it.
    Waiting,
    /// For this turn, and so many came for it already.
    Turn(AbortHandle, u32),
    /// The session is being ended.
    Closing,
}

impl Signals {
    /// From now on, signals have this effect. Without a user at the terminal, Ctrl-C between two turns ends the chat.
    pub(super) fn listen(at_terminal: bool) -> io::Result<Self> {
        let mut source = Source::new()?;
        let (sender, interrupts) = watch::channel(());
        let this = Self {
            now: Arc::new(Mutex::new(Now::Waiting)),
            interrupts,
            end: CancellationToken::new(),
        };
        let signals = this.clone();
        tokio::spawn(async move {
            loop {
                let request = source.request().await;
                let ended = signals.end.is_cancelled();
                let wait = match (&mut *signals.now(), request) {
                    (Now::Closing, _) => true,
                    (Now::Turn(turn, count), _) => {
                        *count += 1;
                        match *count {
                            1 => turn.abort(),
                            2 => turn.kill(),
                            _ => leave(),
                        }
                        false
                    }
                    (Now::Waiting, _) => false,
                };
                if wait {
                    leave();
                }
                if request == Request::End || (!at_terminal && !signals.is_playing()) {
                    signals.end.cancel();
                    if !ended {
                        tokio::spawn(async {
                            run_ended_and_read().await;
                            leave();
                        });
                    }
                }
                // The receiver lives as long as the chat.
                let _ = sender.send(());
            }
        });
        Ok(this)
    }

    /// Listens for nothing, for tests.
    #[cfg(test)]
    pub(super) fn none() -> Self {
        Self {
            now: Arc::new(Mutex::new(Now::Waiting)),
            interrupts: watch::channel(()).1,
            end: CancellationToken::new(),
        }
    }

    /// What ends the chat, for tests.
    #[cfg(test)]
    pub(super) fn end(&self) -> CancellationToken {
        self.end.clone()
    }

    /// This turn is played until the guard is dropped.
    pub(super) fn turn(&mut self, turn: AbortHandle) -> Playing<'_> {
        if self.end.is_cancelled() {
            turn.abort();
        }
        self.interrupts.mark_unchanged();
        *self.now() = Now::Turn(turn, 0);
        Playing(self)
    }

    /// The session is being ended: another signal ends the wait for it.
    pub(super) fn closing(&self) {
        *self.now() = Now::Closing;
    }

    /// Waits for a signal. Cancel-safe.
    pub(super) async fn interrupted(&mut self) {
        if self.interrupts.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Waits until the chat is asked to end. Cancel-safe.
    pub(super) async fn ended(&self) {
        self.end.cancelled().await;
    }

    /// Whether the chat was asked to end.
    pub(super) fn has_ended(&self) -> bool {
        self.end.is_cancelled()
    }

    fn is_playing(&self) -> bool {
        matches!(*self.now(), Now::Turn(..))
    }

    fn now(&self) -> MutexGuard<'_, Now> {
        lock(&self.now)
    }
}

/// A turn is played while this lives.
pub(super) struct Playing<'a>(&'a mut Signals);

impl Playing<'_> {
    /// As [`Signals::interrupted`].
    pub(super) async fn interrupted(&mut self) {
        self.0.interrupted().await;
    }
}

impl Drop for Playing<'_> {
    fn drop(&mut self) {
        *self.0.now() = Now::Waiting;
    }
}

fn leave() -> ! {
    terminal::restore();
    std::process::exit(exit_code::ABORTED.into());
}
