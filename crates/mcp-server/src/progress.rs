//! Progress notifications of a tool call.

use std::sync::Mutex;
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::{Peer, RequestContext};
use teamster_core::sync::lock;
use teamster_core::text::one_line;
use tokio::time::{Instant, sleep_until};

/// The minimum interval of notifications.
const INTERVAL: Duration = Duration::from_millis(500);
/// The time without a notification after which the last one is repeated. Clients end a call that is silent, many of
/// them after 60 s.
const HEARTBEAT: Duration = Duration::from_secs(5);

/// The progress of a call, for a client that requested it.
pub(crate) struct Progress {
    token: Option<ProgressToken>,
    peer: Peer<RoleServer>,
    state: Mutex<State>,
}

/// Current activity of the call.
struct State {
    doing: String,
    since: Instant,
    sent: Option<Instant>,
    count: f64,
}

impl Progress {
    /// Creates the progress of a call. `doing` is what it does until the first report.
    pub(crate) fn new(doing: &str, context: &RequestContext<RoleServer>) -> Self {
        let state = State {
            doing: one_line(doing),
            since: Instant::now(),
            sent: None,
            count: 0.0,
        };
        Self {
            token: context.meta.get_progress_token(),
            peer: context.peer.clone(),
            state: Mutex::new(state),
        }
    }

    /// Reports what the call does now. Notifications that follow too fast are omitted.
    pub(crate) async fn report(&self, words: String) {
        let is_due = {
            let mut state = lock(&self.state);
            state.doing.clone_from(&words);
            state.since = Instant::now();
            state.sent.is_none_or(|at| at.elapsed() >= INTERVAL)
        };
        if is_due {
            self.send(words).await;
        }
    }

    /// Repeats what the call does while nothing else is reported. Never ends.
    pub(crate) async fn repeat(&self) -> std::convert::Infallible {
        loop {
            let last = {
                let state = lock(&self.state);
                state.sent.unwrap_or(state.since)
            };
            sleep_until(last + HEARTBEAT).await;
            let words = {
                let state = lock(&self.state);
                if state.sent.is_some_and(|at| at > last) {
                    continue;
                }
                format!("{} ({} s)", state.doing, state.since.elapsed().as_secs())
            };
            self.send(words).await;
        }
    }

    async fn send(&self, words: String) {
        let count = {
            let mut state = lock(&self.state);
            state.sent = Some(Instant::now());
            state.count += 1.0;
            state.count
        };
        if let Some(token) = &self.token {
            let progress = ProgressNotificationParam::new(token.clone(), count).with_message(words);
            // The client may have disconnected.
            let _ = self.peer.notify_progress(progress).await;
        }
    }
}
