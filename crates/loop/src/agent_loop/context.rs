//! Clear and reset of the agent's context on the request of a flag.

use std::time::Duration;

use super::AgentLoop;
use crate::folder::Flag;

/// Time limit for emptying the context.
const CLEAR_LIMIT: Duration = Duration::from_secs(30);

impl AgentLoop {
    pub(super) async fn clear(&mut self) {
        if !self.take(Flag::ClearSession) {
            return;
        }
        self.log.line("clear-session: clearing the context");
        // A clear may start another process.
        self.refresh_params();
        let limit = self.clock.sleep(CLEAR_LIMIT);
        let cleared = tokio::select! {
            cleared = self.adapter.clear() => cleared.map_err(|error| error.message),
            () = limit => Err(format!("no answer within {} s", CLEAR_LIMIT.as_secs())),
            // The next loop starts a new session in any case.
            () = self.control.stopping() => return,
        };
        match cleared {
            Ok(()) => {
                self.machine.cleared(self.clock.elapsed());
                self.save_session(None);
            }
            Err(why) => {
                self.log.line(format!(
                    "cannot clear the context ({why}): restarting the agent"
                ));
                self.adapter.end().await;
                self.machine.not_cleared();
                self.save_session(None);
            }
        }
        self.done(Flag::ClearSession);
    }

    pub(super) async fn reset(&mut self) {
        if !self.take(Flag::ResetSession) {
            return;
        }
        self.log.line("reset-session: restarting the agent");
        // A new session has nothing to clear.
        let clear = self.take(Flag::ClearSession);
        self.adapter.end().await;
        self.machine.reset();
        self.save_session(None);
        self.done(Flag::ResetSession);
        if clear {
            self.done(Flag::ClearSession);
        }
    }
}
