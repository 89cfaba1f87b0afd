//! Delays between attempts, until the server was unreachable for too long.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::error::{ClientError, ClientErrorKind};
use crate::http::Http;

/// The first and the longest delay between two attempts.
const PAUSES: [Duration; 2] = [Duration::from_millis(50), Duration::from_secs(2)];
/// The time without a connection after which the loss is reported.
const UNREPORTED: Duration = Duration::from_secs(5);
/// The time in which a server that has never responded may break connections: it may be another program.
const STRANGER_LIMIT: Duration = Duration::from_secs(5);

/// A change of the connection to a server, for the user to know why nothing happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConnectionChange<'a> {
    /// There has been no connection for some seconds. The client continues to try.
    Lost {
        /// The message of the last error.
        reason: &'a str,
    },
    /// The connection is back.
    Restored,
}

/// The attempts of one call.
#[derive(Debug)]
pub(crate) struct Patience {
    http: Arc<Http>,
    /// The time of the first failure since the last response.
    lost: Option<Instant>,
    is_reported: bool,
    pause: Duration,
}

impl Patience {
    pub(crate) fn new(http: Arc<Http>) -> Self {
        Self {
            http,
            lost: None,
            is_reported: false,
            pause: PAUSES[0],
        }
    }

    /// The server has responded.
    pub(crate) fn connected(&mut self) {
        self.lost = None;
        if std::mem::take(&mut self.is_reported) {
            self.http.report(ConnectionChange::Restored);
        }
    }

    /// The call has advanced, so the next failure is a new one.
    pub(crate) fn advanced(&mut self) {
        self.pause = PAUSES[0];
    }

    /// Waits before the next attempt, at least as long as the server requested. Returns the error if no further attempt
    /// is to be made. Cancel-safe.
    pub(crate) async fn wait(&mut self, error: ClientError) -> Result<(), ClientError> {
        let is_stranger = error.kind.is_connection() && !self.http.has_responded();
        if !error.is_transient || (is_stranger && error.kind == ClientErrorKind::Unreachable) {
            return Err(error);
        }
        let limit = if is_stranger {
            STRANGER_LIMIT.min(self.http.limits.reconnect)
        } else {
            self.http.limits.reconnect
        };
        let lost = *self.lost.get_or_insert_with(Instant::now);
        let asked = error.retry_after.unwrap_or_default();
        let until_next = lost.elapsed().saturating_add(asked);
        if until_next > limit {
            return Err(error);
        }
        if until_next > UNREPORTED && !std::mem::replace(&mut self.is_reported, true) {
            self.http.report(ConnectionChange::Lost {
                reason: &error.message,
            });
        }
        sleep(self.pause.max(asked)).await;
        self.pause = (self.pause * 2).min(PAUSES[1]);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// Returns the attempts of a call to a server that has responded before, and what is reported of them.
    fn patience(limit: Duration) -> (Patience, Arc<Mutex<Vec<String>>>) {
        let mut http = Http::new("unix:/s", None).unwrap();
        http.limits.reconnect = limit;
        http.set_responded();
        let reports = Arc::new(Mutex::new(Vec::new()));
        let seen = reports.clone();
        http.observer = Some(Arc::new(move |change: ConnectionChange<'_>| {
            seen.lock().unwrap().push(format!("{change:?}"));
        }));
        (Patience::new(Arc::new(http)), reports)
    }

    fn lost() -> ClientError {
        ClientError::new(ClientErrorKind::Unreachable, "gone")
    }

    #[tokio::test(start_paused = true)]
    async fn pauses_grow_to_two_seconds_until_the_limit() {
        let (mut patience, reports) = patience(Duration::from_secs(20));
        let begin = Instant::now();
        let mut pauses = Vec::new();
        let error = loop {
            let before = Instant::now();
            if let Err(error) = patience.wait(lost()).await {
                break error;
            }
            pauses.push(before.elapsed().as_millis());
        };
        assert_eq!(pauses[..8], [50, 100, 200, 400, 800, 1600, 2000, 2000]);
        assert_eq!((error, begin.elapsed().as_secs()), (lost(), 21));
        assert_eq!(*reports.lock().unwrap(), [r#"Lost { reason: "gone" }"#]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_loss_of_some_seconds_is_reported_and_so_is_its_end() {
        let (mut patience, reports) = patience(Duration::from_mins(1));
        // Short ones are not.
        for _ in 0..9 {
            patience.wait(lost()).await.unwrap();
            patience.connected();
            patience.advanced();
        }
        assert!(reports.lock().unwrap().is_empty());
        // The user need not wait to know of a long delay that the server requested.
        let mut busy = lost();
        busy.retry_after = Some(Duration::from_secs(30));
        let begin = Instant::now();
        patience.wait(busy.clone()).await.unwrap();
        assert_eq!(begin.elapsed(), Duration::from_secs(30));
        assert_eq!(patience.wait(busy.clone()).await, Ok(()));
        assert_eq!(patience.wait(busy.clone()).await, Err(busy));
        patience.connected();
        assert_eq!(
            *reports.lock().unwrap(),
            [r#"Lost { reason: "gone" }"#, "Restored"]
        );
    }

    #[tokio::test(start_paused = true)]
    async fn unreachable_server_without_a_response_is_another_program() {
        let http = Arc::new(Http::new("unix:/s", None).unwrap());
        let mut patience = Patience::new(http);
        assert_eq!(patience.wait(lost()).await, Err(lost()));
        let broken = || ClientError::new(ClientErrorKind::Disconnected, "broken");
        let begin = Instant::now();
        while patience.wait(broken()).await.is_ok() {}
        assert_eq!(begin.elapsed().as_secs(), 5);
    }
}
