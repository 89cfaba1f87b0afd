//! Signals without signal handlers.
//!
//! The signals that a script names are blocked in every thread, and one thread takes them with `sigwait`. The
//! answer to a signal is therefore ordinary code, which may lock and write. Until its `ignore` or `on_signal`
//! step is executed, a signal has its default effect.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::thread;

use nix::sys::signal::{self, SigSet, Signal as Native};
use nix::unistd::Pid;
use teamster_core::sync::lock;

use super::run::Runner;
use super::step::{Signal, Step};
use super::{Flow, Stop};

/// The script's action for each signal.
#[derive(Debug, Default)]
pub(super) struct Signals(Mutex<HashMap<Native, Action>>);

#[derive(Debug, Clone)]
enum Action {
    Ignore,
    Run(Arc<[Step]>),
}

impl Signals {
    pub(super) fn ignore(&self, signals: &[Signal]) {
        for &signal in signals {
            self.set(signal, Action::Ignore);
        }
    }

    pub(super) fn answer(&self, signal: Signal, steps: &[Step]) {
        self.set(signal, Action::Run(steps.into()));
    }

    /// Sends a signal to this process. Does not return if the signal ends the process.
    pub(super) fn send_to_self(&self, signal: Signal) -> Flow {
        let signal = Native::from(signal);
        if self.action(signal).is_some() {
            signal::kill(Pid::this(), signal).map_err(|error| Stop::failed("cannot signal", error))
        } else {
            die(signal)
        }
    }

    fn set(&self, signal: Signal, action: Action) {
        lock(&self.0).insert(signal.into(), action);
    }

    fn action(&self, signal: Native) -> Option<Action> {
        lock(&self.0).get(&signal).cloned()
    }
}

/// Takes over the signals that the steps name. MUST be called before any other thread exists, because threads
/// inherit the signal mask.
pub(super) fn watch(runner: &Arc<Runner>, steps: &[Step]) -> Flow {
    let mut named = SigSet::empty();
    collect(steps, &mut named);
    if named.contains(Native::SIGKILL) {
        return Err(Stop::Failed(
            "SIGKILL can be neither ignored nor answered".into(),
        ));
    }
    if named == SigSet::empty() {
        return Ok(());
    }
    named
        .thread_block()
        .map_err(|error| Stop::failed("cannot block signals", error))?;
    let runner = Arc::clone(runner);
    thread::spawn(move || {
        while let Ok(signal) = named.wait() {
            match runner.signals.action(signal) {
                None => runner.end_on_stop(die(signal)),
                Some(Action::Ignore) => {}
                // Runs in a separate thread, so that a slow answer does not delay the next signal.
                Some(Action::Run(steps)) => {
                    let runner = Arc::clone(&runner);
                    thread::spawn(move || runner.end_on_stop(runner.run(&steps)));
                }
            }
        }
    });
    Ok(())
}

/// Lets a signal have its default effect.
fn die(signal: Native) -> Flow {
    let mut set = SigSet::empty();
    set.add(signal);
    set.thread_unblock()
        .and_then(|()| signal::raise(signal))
        .map_err(|error| Stop::failed("cannot signal", error))
}

/// Collects the signals that the steps answer or ignore, without those of spawned processes.
fn collect(steps: &[Step], named: &mut SigSet) {
    for step in steps {
        match step {
            Step::Ignore { signals } => {
                for &signal in signals {
                    named.add(signal.into());
                }
            }
            Step::OnSignal { signal, step } => {
                named.add((*signal).into());
                collect(step, named);
            }
            Step::IfExists { step, .. } => collect(step, named),
            _ => {}
        }
    }
}

impl From<Signal> for Native {
    fn from(signal: Signal) -> Self {
        match signal {
            Signal::Hup => Self::SIGHUP,
            Signal::Int => Self::SIGINT,
            Signal::Quit => Self::SIGQUIT,
            Signal::Abrt => Self::SIGABRT,
            Signal::Kill => Self::SIGKILL,
            Signal::Usr1 => Self::SIGUSR1,
            Signal::Usr2 => Self::SIGUSR2,
            Signal::Term => Self::SIGTERM,
        }
    }
}
