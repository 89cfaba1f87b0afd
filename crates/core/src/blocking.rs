//! Runs and sessions from code that is not async.
//!
//! ```no_run
//! use teamster_core::blocking::wait;
//! use teamster_core::{AgentEvent, ExecuteParams, SessionOptions, SharedRuntime, Turn};
//!
//! # fn example(runtime: SharedRuntime, sessions: impl teamster_core::SessionRuntime) -> Result<(), teamster_core::AgentError> {
//! for event in runtime.execute(ExecuteParams::new("List the crates")).blocking() {
//!     if let AgentEvent::Text(text) = event {
//!         print!("{}", text.text);
//!     }
//! }
//! let session = sessions.open(SessionOptions::default())?;
//! let first = wait(session.send(Turn::new("Which tests are flaky?")).result());
//! wait(session.close());
//! # Ok(())
//! # }
//! ```

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use crate::{AgentEvent, EventStream};

/// Waits for a future on this thread, such as a run, its result or a call of a session.
///
/// Runs of CLIs need no Tokio runtime. What does, such as an orchestrator, is created and waited for within the context
/// of a multi-thread one ([`Runtime::enter`](https://docs.rs/tokio/latest/tokio/runtime/struct.Runtime.html#method.enter)).
/// It must not be called from async code: it blocks the thread.
pub fn wait<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

/// Events of a run as an iterator, which ends after `done`. Dropping it before its end stops the run.
#[must_use = "the run starts with the first event"]
#[derive(Debug)]
pub struct Events(EventStream);

impl Iterator for Events {
    type Item = AgentEvent;

    fn next(&mut self) -> Option<AgentEvent> {
        wait(self.0.next())
    }
}

impl EventStream {
    /// Converts the stream to an iterator that waits for each event on the calling thread.
    pub fn blocking(self) -> Events {
        Events(self)
    }
}
