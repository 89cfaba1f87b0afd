//! Stops of runs, turns and sessions.

use tokio_util::sync::CancellationToken;

/// Stops a run from anywhere. Clones stop the same run.
#[derive(Debug, Clone, Default)]
pub struct AbortHandle {
    graceful: CancellationToken,
    forced: CancellationToken,
}

/// How a run, a turn or a session is stopped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Stopping {
    /// The CLI is asked to stop and may clean up. If it does not stop, it is killed.
    #[default]
    Graceful,
    /// The CLI is killed at once.
    Kill,
}

impl Stopping {
    /// Returns [`Kill`](Self::Kill) if `kill` is true, as a flag or a field of a command has it.
    pub fn kill_if(kill: bool) -> Self {
        if kill { Self::Kill } else { Self::Graceful }
    }

    /// Returns whether it is [`Kill`](Self::Kill).
    pub fn is_kill(self) -> bool {
        self == Self::Kill
    }
}

impl AbortHandle {
    /// Creates a handle for a run that is also stopped when `parent` is cancelled.
    pub fn new(parent: &CancellationToken) -> Self {
        Self {
            graceful: parent.child_token(),
            forced: CancellationToken::new(),
        }
    }

    /// Stops the run gracefully, then by force.
    pub fn abort(&self) {
        self.graceful.cancel();
    }

    /// Stops the run at once, by force.
    pub fn kill(&self) {
        self.forced.cancel();
        self.graceful.cancel();
    }

    /// Stops the run as given.
    pub fn stop(&self, stopping: Stopping) {
        match stopping {
            Stopping::Graceful => self.abort(),
            Stopping::Kill => self.kill(),
        }
    }

    /// Returns whether a stop of the run was requested.
    pub fn is_aborted(&self) -> bool {
        self.graceful.is_cancelled()
    }

    /// Returns a token that is cancelled when a stop of the run is requested. Cancelling it stops nothing else.
    pub fn token(&self) -> CancellationToken {
        self.graceful.child_token()
    }

    /// Waits until a stop of the run is requested.
    pub async fn aborted(&self) {
        self.graceful.cancelled().await;
    }

    /// Waits until a stop by force is requested.
    pub async fn killed(&self) {
        self.forced.cancelled().await;
    }
}

#[cfg(test)]
mod tests {
    use std::task::Context;

    use super::*;

    #[test]
    fn the_parent_token_aborts_and_is_not_cancelled_by_it() {
        let parent = CancellationToken::new();
        let one = AbortHandle::new(&parent);
        one.abort();
        assert!(!parent.is_cancelled());
        let two = AbortHandle::new(&parent);
        parent.cancel();
        assert!(two.is_aborted());

        let three = AbortHandle::default();
        three.token().cancel();
        assert!(!three.is_aborted());
        let token = three.token();
        three.abort();
        assert!(token.is_cancelled());
    }

    #[tokio::test]
    async fn a_kill_is_also_a_stop_and_a_stop_is_no_kill() {
        for (kill, stopping) in [(false, Stopping::Graceful), (true, Stopping::Kill)] {
            assert_eq!(Stopping::kill_if(kill), stopping);
            assert_eq!(stopping.is_kill(), kill);
            let handle = AbortHandle::default();
            assert!(!handle.is_aborted());
            handle.stop(stopping);
            assert!(handle.is_aborted());
            handle.aborted().await;
            let killed = std::pin::pin!(handle.killed());
            let mut cx = Context::from_waker(std::task::Waker::noop());
            assert_eq!(killed.poll(&mut cx).is_ready(), kill);
        }
        assert_eq!(Stopping::default(), Stopping::Graceful);
    }
}
