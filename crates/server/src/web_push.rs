//! Web Push: notifications on the browsers that subscribed, also while the page is closed (RFC 8030).
//!
//! A message goes to the push service of the browser's maker, encrypted for the browser: the service sees that, when and
//! to which browser something is sent, and about how much.

mod encryption;
mod subscriptions;
mod vapid;

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use axum::http::{StatusCode, Uri};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;
use teamster_api::ProblemCode;
use teamster_core::sync::lock;
use teamster_core::time::epoch_ms;
use tokio::time::sleep;

use crate::keys::{Key, Keys};
use crate::outgoing::{Failure, Poster, check_target, delays};
use crate::token::hash;
use crate::{ApiError, ServerConfig};
use encryption::{AUTH, PUBLIC, encrypt};
use subscriptions::{Subscription, Subscriptions};
use vapid::Vapid;

/// The prefix of the targets that are browsers, among the addresses of callbacks, which begin with `http`. The id of the
/// subscription follows.
pub(crate) const BROWSER: &str = "web-push:";
/// The maximum length of the address of a subscription, in bytes.
const LONGEST: usize = 2048;

/// The browsers that a server notifies.
#[derive(Debug)]
pub(crate) struct WebPush {
    folder: PathBuf,
    subscriptions: Subscriptions,
    keys: Arc<Keys>,
    /// Push services may be at addresses that are not public, and without TLS.
    private: bool,
    /// Read when it is needed first.
    vapid: Mutex<Option<Arc<Vapid>>>,
}

/// What a browser shows of a message. It has nothing of the prompt but the title.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Notification {
    pub(crate) run_id: String,
    /// The request that waits; `None` for the end of a run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) request_id: Option<String>,
    /// The title of the run.
    pub(crate) title: String,
    /// What happened.
    pub(crate) text: String,
    /// The time for which it is worth showing, in seconds.
    #[serde(skip)]
    pub(crate) ttl: u64,
}

impl WebPush {
    pub(crate) fn new(config: &ServerConfig, keys: Arc<Keys>) -> Self {
        let folder = config.tokens.folder().to_owned();
        Self {
            subscriptions: Subscriptions::at(&folder),
            folder,
            keys,
            private: config.allow_private_callbacks,
            vapid: Mutex::default(),
        }
    }

    /// Returns the server's public key, as URL-safe Base64.
    pub(crate) fn key(&self) -> Result<String, ApiError> {
        Ok(self.vapid().map_err(|error| internal(&error))?.public())
    }

    fn vapid(&self) -> io::Result<Arc<Vapid>> {
        let mut known = lock(&self.vapid);
        if let Some(vapid) = &*known {
            return Ok(vapid.clone());
        }
        let vapid = Arc::new(Vapid::read_or_make(&self.folder)?);
        *known = Some(vapid.clone());
        Ok(vapid)
    }

    /// Stores the subscription of a browser, and returns its id.
    pub(crate) async fn subscribe(
        &self,
        endpoint: String,
        p256dh: &str,
        auth: &str,
        token: Option<Key>,
    ) -> Result<String, ApiError> {
        let is_https = endpoint.starts_with("https://");
        if endpoint.len() > LONGEST || !(is_https || self.private) {
            let problem = format!("expected an address with https of up to {LONGEST} bytes");
            return Err(ApiError::refused("endpoint", problem));
        }
        let public = check_target(&endpoint, self.private).await;
        public.map_err(|error| ApiError::refused("endpoint", error))?;
        let p256dh = p256dh.trim_end_matches('=').to_owned();
        let auth = auth.trim_end_matches('=').to_owned();
        let subscription = Subscription {
            endpoint,
            p256dh,
            auth,
            token,
        };
        if sealed(&subscription, b"").is_none() {
            let problem = format!(
                "expected a point of the curve P-256 of {PUBLIC} bytes (`p256dh`) and {AUTH} bytes (`auth`), as \
                URL-safe Base64"
            );
            return Err(ApiError::refused("keys", problem));
        }
        let id = subscription.id();
        let added = self.subscriptions.add(subscription);
        added.map_err(|error| internal(&error))?;
        Ok(id)
    }

    /// Removes the subscription with this id.
    pub(crate) fn unsubscribe(&self, id: &str) -> Result<(), ApiError> {
        let removed = self.subscriptions.remove(|one| one.id() == id);
        removed.map_err(|error| internal(&error))
    }

    /// Returns the targets of messages that are browsers.
    pub(crate) fn targets(&self) -> io::Result<Vec<String>> {
        let list = self.subscriptions.list()?.into_iter();
        Ok(list.map(|one| format!("{BROWSER}{}", one.id())).collect())
    }

    /// Sends a notification to the browser with this subscription until it is taken, given up or refused. A subscription
    /// that is gone, or whose token is not valid any more, is removed.
    pub(crate) async fn send(
        &self,
        poster: &Poster,
        id: &str,
        notification: &Notification,
        attempts: usize,
    ) -> Result<(), String> {
        let mut delays = delays(attempts);
        loop {
            match self.attempt(poster, id, notification).await {
                Ok(()) => return Ok(()),
                Err(Failure::Permanent(error)) => return Err(error),
                Err(Failure::Transient(error)) => match delays.next() {
                    Some(delay) => sleep(delay).await,
                    None => return Err(error),
                },
            }
        }
    }

    /// Sends a notification once, unless the subscription has ended, which it may have since the last attempt.
    async fn attempt(
        &self,
        poster: &Poster,
        id: &str,
        notification: &Notification,
    ) -> Result<(), Failure> {
        let local = |error: io::Error| Failure::Transient(error.to_string());
        let Some(subscription) = self.valid(id).map_err(local)? else {
            return Ok(());
        };
        let vapid = self.vapid().map_err(local)?;
        let origin = origin(&subscription.endpoint)
            .ok_or_else(|| Failure::Permanent("expected a URL".to_owned()))?;
        // Only the push service is named: the rest of the address is a secret.
        let refused = |error: String| format!("{origin} did not take a message: {error}");
        let posted = post(poster, &vapid, &subscription, &origin, notification);
        let status = match posted.await {
            Ok(status) => status,
            Err(Failure::Transient(error)) => return Err(Failure::Transient(refused(error))),
            Err(Failure::Permanent(error)) => return Err(Failure::Permanent(refused(error))),
        };
        let is_transient = status.is_server_error()
            || matches!(
                status,
                StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT
            );
        match status {
            status if status.is_success() => Ok(()),
            StatusCode::NOT_FOUND | StatusCode::GONE => {
                let removed = self.subscriptions.remove(|one| one.id() == id);
                removed.map_err(local)
            }
            status if is_transient => Err(Failure::Transient(refused(format!("HTTP {status}")))),
            status => Err(Failure::Permanent(refused(format!("HTTP {status}")))),
        }
    }

    /// Returns the subscription with this id while its token is valid, and removes one whose token was revoked.
    fn valid(&self, id: &str) -> io::Result<Option<Subscription>> {
        let mut list = self.subscriptions.list()?.into_iter();
        let Some(subscription) = list.find(|one| one.id() == id) else {
            return Ok(None);
        };
        if let Some(key) = &subscription.token {
            let is_valid = self.keys.is_valid(key);
            if !is_valid.map_err(io::Error::other)? {
                // The browser may have subscribed with another token meanwhile.
                self.subscriptions.remove(|one| *one == subscription)?;
                return Ok(None);
            }
        }
        Ok(Some(subscription))
    }
}

fn internal(error: &io::Error) -> ApiError {
    ApiError::new(ProblemCode::Internal, error.to_string())
}

/// Returns the topic of a run's messages: of those that a push service keeps, the newest one replaces the others
/// (RFC 8030, 5.4). It has at most 32 characters, and tells nothing of the run.
fn topic(run_id: &str) -> String {
    let mut topic = hash(&format!("web-push {run_id}"));
    topic.truncate(32);
    topic
}

/// Encrypts a message for a browser. `None` if its keys are not valid.
fn sealed(subscription: &Subscription, message: &[u8]) -> Option<Vec<u8>> {
    let decode = |text: &str, length: usize| {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        (bytes.len() == length).then_some(bytes)
    };
    let public = decode(&subscription.p256dh, PUBLIC)?;
    let auth = decode(&subscription.auth, AUTH)?;
    encrypt(&public, &auth, message).ok()
}

fn origin(url: &str) -> Option<String> {
    let uri: Uri = url.parse().ok()?;
    Some(format!("{}://{}", uri.scheme_str()?, uri.authority()?))
}

/// Sends a notification to the push service of this origin, once.
async fn post(
    poster: &Poster,
    vapid: &Vapid,
    subscription: &Subscription,
    origin: &str,
    notification: &Notification,
) -> Result<StatusCode, Failure> {
    let failed = |error: String| Failure::Permanent(error);
    let message = serde_json::to_vec(notification).map_err(|error| failed(error.to_string()))?;
    let authorization = vapid.authorization(origin, epoch_ms() / 1000);
    let is_urgent = notification.request_id.is_some();
    let headers = [
        (
            "authorization",
            authorization.map_err(|error| failed(error.to_string()))?,
        ),
        ("content-encoding", "aes128gcm".to_owned()),
        ("content-type", "application/octet-stream".to_owned()),
        ("ttl", notification.ttl.to_string()),
        ("topic", topic(&notification.run_id)),
        (
            "urgency",
            if is_urgent { "high" } else { "normal" }.to_owned(),
        ),
    ];
    let body = sealed(subscription, &message);
    let body = body.ok_or_else(|| failed("cannot encrypt the message".to_owned()))?;
    poster.post(&subscription.endpoint, &headers, body).await
}
