//! Attempts to deliver a message.

use axum::http::StatusCode;
use teamster_core::time::epoch_ms;
use tokio::time::sleep;

use super::secret::Secret;
use crate::outgoing::{Failure, Poster, delays};

/// Returns what a response means for a callback.
fn outcome(status: StatusCode) -> Result<(), Failure> {
    match status {
        status if status.is_success() => Ok(()),
        // The receiver wants no more callbacks.
        StatusCode::GONE => Err(Failure::Permanent(format!("HTTP {status}"))),
        status => Err(Failure::Transient(format!("HTTP {status}"))),
    }
}

/// The delivery of a message to one target.
pub(crate) struct Delivery {
    pub(crate) id: String,
    pub(crate) url: String,
    pub(crate) body: Vec<u8>,
    pub(crate) attempts: usize,
}

impl Delivery {
    /// Sends the message until it is taken, given up or refused.
    pub(crate) async fn send(&self, poster: &Poster, secret: &Secret) -> Result<(), String> {
        let mut delays = delays(self.attempts);
        loop {
            let at = (epoch_ms() / 1000).to_string();
            let headers = [
                ("content-type", "application/json".to_owned()),
                ("webhook-id", self.id.clone()),
                ("webhook-timestamp", at.clone()),
                ("webhook-signature", secret.sign(&self.id, &at, &self.body)),
            ];
            let status = poster.post(&self.url, &headers, self.body.clone()).await;
            match status.and_then(outcome) {
                Ok(()) => return Ok(()),
                Err(Failure::Permanent(error)) => return Err(error),
                Err(Failure::Transient(error)) => match delays.next() {
                    Some(delay) => sleep(delay).await,
                    None => return Err(error),
                },
            }
        }
    }
}
