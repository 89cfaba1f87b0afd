//! Requests, each on a connection of its own, or all on the one of `ssh`.

use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::header::{
    ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderMap, HeaderValue, RETRY_AFTER, USER_AGENT,
};
use hyper::{Request, Response, StatusCode};
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use crate::address::{Address, reason};
use crate::call::Call;
use crate::error::{ClientError, ClientErrorKind};
use crate::patience::{ConnectionChange, Patience};

/// The maximum size of a response that is not a stream, and of an event of a stream, in bytes.
pub(crate) const LARGEST_BODY: usize = 256 << 20;
/// The `User-Agent` header.
const AGENT: &str = concat!("teamster/", env!("CARGO_PKG_VERSION"));

/// The time limits of a client.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Of the head of a response, and of a body that is not a stream.
    pub(crate) response: Duration,
    /// Without data, after which a stream counts as broken.
    pub(crate) silence: Duration,
    /// Without a server, after which a call that is repeated fails.
    pub(crate) reconnect: Duration,
}

/// A callback for changes of the connection.
type Observer = Arc<dyn Fn(ConnectionChange<'_>) + Send + Sync>;

/// An HTTP client of one server.
#[derive(Clone)]
pub(crate) struct Http {
    pub(crate) address: Address,
    /// The URL as given, without trailing slashes.
    url: String,
    /// The value of `Authorization`.
    token: Option<HeaderValue>,
    /// Headers with the place of requests in a trace.
    pub(crate) trace: Vec<(&'static str, HeaderValue)>,
    pub(crate) limits: Limits,
    pub(crate) observer: Option<Observer>,
    /// A server with this API has responded, so it is only away for a while if it cannot be reached.
    has_responded: Arc<AtomicBool>,
}

teamster_core::debug_fields!(Http { url });

impl Http {
    /// Creates a client for a URL: `http://`, `https://`, `unix:` or `ssh:`.
    pub(crate) fn new(url: &str, token: Option<&str>) -> Result<Self, ClientError> {
        let url = url.trim().trim_end_matches('/').to_owned();
        let address = Address::new(&url, token.is_some())?;
        // `ssh` has its own way to log in: the token is that of another server.
        let token = token.filter(|_| !matches!(address, Address::Ssh(_)));
        // The message does not show it.
        let token = token.map(|token| {
            let value = HeaderValue::from_str(&format!("Bearer {}", token.trim()));
            let mut value = value.map_err(|_| {
                ClientError::argument("token", "the token has characters that no token has")
            })?;
            value.set_sensitive(true);
            Ok(value)
        });
        Ok(Self {
            address,
            url,
            token: token.transpose()?,
            trace: Vec::new(),
            limits: Limits {
                response: Duration::from_mins(1),
                silence: Duration::from_secs(45),
                reconnect: Duration::from_mins(10),
            },
            observer: None,
            has_responded: Arc::default(),
        })
    }

    /// Returns the server's URL.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn has_responded(&self) -> bool {
        self.has_responded.load(Ordering::Relaxed)
    }

    /// Records that a server with this API has responded.
    pub(crate) fn set_responded(&self) {
        self.has_responded.store(true, Ordering::Relaxed);
    }

    pub(crate) fn report(&self, change: ConnectionChange<'_>) {
        if let Some(observer) = &self.observer {
            observer(change);
        }
    }

    pub(crate) fn is_unencrypted(&self) -> bool {
        self.address.is_unencrypted()
    }

    /// Creates the error of a connection to the server.
    pub(crate) fn lost(&self, kind: ClientErrorKind, reason: &dyn Display) -> ClientError {
        ClientError::new(kind, format!("cannot reach {}: {reason}", self.url))
    }

    pub(crate) fn unexpected(&self, reason: &dyn Display) -> ClientError {
        ClientError::unexpected(&self.url, &reason.to_string())
    }

    fn late(&self) -> ClientError {
        let limit = self.limits.response;
        self.lost(
            ClientErrorKind::TimedOut,
            &format!("no response within {limit:?}"),
        )
    }

    pub(crate) fn broken(&self, error: &hyper::Error) -> ClientError {
        if error.is_parse() {
            return self.unexpected(&reason(error));
        }
        let mut reason = reason(error);
        if let Some(failure) = self.address.failure() {
            reason = format!("{reason} ({failure})");
        }
        self.lost(ClientErrorKind::Disconnected, &reason)
    }

    /// Sends a request and returns the response, whose body may be a stream. A status other than 2xx is an error.
    pub(crate) async fn send(&self, call: &Call) -> Result<Response<Incoming>, ClientError> {
        let target = self.address.target(&call.target);
        let (uri, host) = target.map_err(|error| self.unexpected(&error))?;
        let mut request = Request::builder()
            .method(call.method.clone())
            .uri(uri)
            .header(USER_AGENT, AGENT)
            .header(ACCEPT, call.media.name());
        if let Some(host) = host {
            request = request.header(HOST, host);
        }
        if let Some(token) = &self.token {
            request = request.header(AUTHORIZATION, token);
        }
        let body = match &call.body {
            Some((media, body)) => {
                request = request.header(CONTENT_TYPE, media.name());
                body.clone()
            }
            None => Bytes::new(),
        };
        if let Some(key) = &call.key {
            request = request.header("idempotency-key", key);
        }
        for (name, value) in &self.trace {
            request = request.header(*name, value);
        }
        let request = request
            .body(Full::new(body))
            .map_err(|error| self.unexpected(&error))?;

        let connection = self.address.connect().await;
        let mut connection = connection.map_err(|error| self.lost(error.kind, &error.reason))?;
        let response = timeout(self.limits.response, connection.send(request))
            .await
            .map_err(|_| self.late())?
            .map_err(|error| self.broken(&error))?;
        let status = response.status();
        if !status.is_success() {
            let retry_after = retry_after(response.headers());
            // Without a body, the status decides.
            let body = self.body(response).await.unwrap_or_default();
            let mut error = ClientError::of_response(&self.url, status.as_u16(), &body);
            if error.kind == ClientErrorKind::Refused {
                self.set_responded();
            }
            if [
                StatusCode::TOO_MANY_REQUESTS,
                StatusCode::SERVICE_UNAVAILABLE,
            ]
            .contains(&status)
            {
                error.retry_after = retry_after;
            }
            return Err(error);
        }
        let media = response.headers().get(CONTENT_TYPE);
        let media = media
            .and_then(|media| media.to_str().ok())
            .unwrap_or_default();
        let media = media.split(';').next().unwrap_or_default().trim();
        if status != StatusCode::NO_CONTENT && !media.eq_ignore_ascii_case(call.media.name()) {
            let found = if media.is_empty() {
                "no media type"
            } else {
                media
            };
            let expected = call.media.name();
            return Err(self.unexpected(&format!("{found} in place of {expected}")));
        }
        self.set_responded();
        Ok(response)
    }

    async fn body(&self, response: Response<Incoming>) -> Result<Bytes, ClientError> {
        let body = Limited::new(response.into_body(), LARGEST_BODY);
        let collected = timeout(self.limits.response, body.collect()).await;
        let collected = collected
            .map_err(|_| self.late())?
            .map_err(|error| match error.downcast_ref::<hyper::Error>() {
                Some(error) => self.broken(error),
                None => self.unexpected(&error),
            })?;
        Ok(collected.to_bytes())
    }

    /// Sends a request and returns the body of the response.
    pub(crate) async fn bytes(&self, call: &Call) -> Result<Bytes, ClientError> {
        self.body(self.send(call).await?).await
    }

    /// Sends a request and returns the JSON of the response.
    pub(crate) async fn json<T: DeserializeOwned>(&self, call: &Call) -> Result<T, ClientError> {
        self.read(&self.bytes(call).await?)
    }

    pub(crate) fn read<T: DeserializeOwned>(&self, json: &[u8]) -> Result<T, ClientError> {
        serde_json::from_slice(json).map_err(|error| self.unexpected(&error))
    }

    /// Sends a request, and repeats it after transient failures if its effect happens once. Returns the JSON of the
    /// response, and whether the effect is that of an earlier request.
    pub(crate) async fn once<T: DeserializeOwned>(
        self: &Arc<Self>,
        call: &Call,
    ) -> Result<(T, bool), ClientError> {
        let (body, is_new) = self.patiently(call, call.happens_once()).await?;
        Ok((self.read(&body)?, !is_new))
    }

    /// Sends a request without a response, and repeats it after transient failures if its effect happens once.
    pub(crate) async fn put(self: &Arc<Self>, call: &Call) -> Result<(), ClientError> {
        self.patiently(call, call.happens_once()).await.map(drop)
    }

    /// Sends a request that only reads, and repeats it after transient failures. Returns the body of the response.
    pub(crate) async fn patiently_read(
        self: &Arc<Self>,
        call: &Call,
    ) -> Result<Bytes, ClientError> {
        Ok(self.patiently(call, true).await?.0)
    }

    /// Returns the body of the response, and whether something was created.
    async fn patiently(
        self: &Arc<Self>,
        call: &Call,
        repeats: bool,
    ) -> Result<(Bytes, bool), ClientError> {
        let mut patience = Patience::new(self.clone());
        loop {
            match self.answer(call).await {
                Err(error) if repeats => patience.wait(error).await?,
                result => {
                    patience.connected();
                    return result;
                }
            }
        }
    }

    async fn answer(&self, call: &Call) -> Result<(Bytes, bool), ClientError> {
        let response = self.send(call).await?;
        let is_new = response.status() == StatusCode::CREATED;
        Ok((self.body(response).await?, is_new))
    }
}

/// Returns the delay that the server asks for: a number of seconds, or a date.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // A number that is too large is a long wait.
        return Some(Duration::from_secs(text.parse().unwrap_or(u64::MAX)));
    }
    let at = httpdate::parse_http_date(text).ok()?;
    // A time in the past is no wait.
    Some(at.duration_since(SystemTime::now()).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_is_in_no_output() {
        let http = Http::new("http://localhost", Some("0123456789abcdef")).unwrap();
        assert_eq!(
            format!("{http:?}"),
            r#"Http { url: "http://localhost", .. }"#
        );
        let error = Http::new("unix:/s", Some("secret\nx")).unwrap_err();
        assert_eq!(error.parameter.as_deref(), Some("token"));
        assert!(!error.to_string().contains("secret"), "{error}");
    }

    #[test]
    fn a_retry_after_is_a_number_of_seconds_or_a_date() {
        let read = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, HeaderValue::from_str(text).unwrap());
            retry_after(&headers)
        };
        assert_eq!(read("3"), Some(Duration::from_secs(3)));
        assert_eq!(
            read("99999999999999999999"),
            Some(Duration::from_secs(u64::MAX))
        );
        assert_eq!(read("Fri, 27 Nov 2020 00:00:00 GMT"), Some(Duration::ZERO));
        let at = SystemTime::now() + Duration::from_secs(90);
        let wait = read(&httpdate::fmt_http_date(at)).unwrap();
        assert!((80..=90).contains(&wait.as_secs()), "{wait:?}");
        for text in ["", "soon", "-1", "1.5"] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
