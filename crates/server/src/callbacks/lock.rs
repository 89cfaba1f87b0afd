//! The one of several servers with the same folder that delivers.

use std::fs::File;
use std::time::Duration;

use tokio::time::sleep;

use super::Callbacks;

/// The delay between two tries to be the server that delivers, and the number of them after which the reason is reported.
const RETRY: Duration = Duration::from_secs(1);
const TRIES: u32 = 3;

/// Waits until no other server delivers for the same folder, and returns the lock; `None` once the server ends. Both would
/// deliver each message.
pub(super) async fn only_sender(callbacks: &Callbacks) -> Option<File> {
    let mut tries = 0;
    loop {
        let problem = match callbacks.files.lock() {
            Ok(Some(lock)) => return Some(lock),
            Ok(None) => "another server with the same state folder sends callbacks and notifications; this one does so once \
                         that one has ended"
                .to_owned(),
            Err(error) => format!("callbacks: {error}"),
        };
        tries += 1;
        // The server before may be about to end.
        if tries == TRIES {
            callbacks.warn(&problem);
        }
        tokio::select! {
            () = sleep(RETRY) => {}
            () = callbacks.ending.cancelled() => return None,
        }
    }
}
