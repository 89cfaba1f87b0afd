//! Signals of a stand-in, received as by the real programs, but without handlers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use nix::sys::signal::{SigSet, Signal};

/// Switch that disables the reception of signals.
#[derive(Debug, Clone, Default)]
pub(super) struct Ears(Arc<AtomicBool>);

impl Ears {
    /// Ignores all signals from now on.
    pub(super) fn close(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    fn are_closed(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

/// Takes over the signals that end a program. MUST be called before any other thread exists, because threads
/// inherit the signal mask. `hear` is called for each received signal.
pub(super) fn watch(hear: impl Fn(Signal) + Send + 'static) -> Result<Ears, String> {
    let mut ending = SigSet::empty();
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
        ending.add(signal);
    }
    ending
        .thread_block()
        .map_err(|error| format!("cannot block signals: {error}"))?;
    let ears = Ears::default();
    let open = ears.clone();
    thread::spawn(move || {
        while let Ok(signal) = ending.wait() {
            if !open.are_closed() {
                hear(signal);
            }
        }
    });
    Ok(ears)
}
