//! The HTTP client for callbacks and push services.

use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::http::header::USER_AGENT;
use axum::http::{HeaderValue, Request, StatusCode, Uri};
use bytes::Bytes;
use http_body_util::Full;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::Name;
use hyper_util::rt::TokioExecutor;
use tokio::time::timeout;
use tower_service::Service;

use super::public_address::is_public;

/// The time limit of a request.
const LIMIT: Duration = Duration::from_secs(20);
/// The `User-Agent` header.
const AGENT: &str = concat!("teamster/", env!("CARGO_PKG_VERSION"));

/// An HTTP client that connects to public addresses only, unless private ones are allowed.
#[derive(Debug, Clone)]
pub(crate) struct Poster {
    client: Client<HttpsConnector<HttpConnector<Resolver>>, Full<Bytes>>,
    private: bool,
}

impl Poster {
    /// Creates a client. With `private`, it also connects to addresses that are not public.
    pub(crate) fn new(private: bool) -> Result<Self, String> {
        let mut http = HttpConnector::new_with_resolver(Resolver { private });
        http.enforce_http(false);
        http.set_connect_timeout(Some(LIMIT));
        let ring = rustls::crypto::ring::default_provider();
        let builder = HttpsConnectorBuilder::new()
            .with_provider_and_native_roots(ring)
            .map_err(|error| format!("cannot read the system's certificates: {error}"))?;
        let connector = builder.https_or_http().enable_http1().wrap_connector(http);
        // Callbacks are rare, so no connection is kept.
        let client = Client::builder(TokioExecutor::new())
            .pool_max_idle_per_host(0)
            .build(connector);
        Ok(Self { client, private })
    }

    /// Sends a request once, and returns the status of its response. It does not follow redirects, which could lead to a
    /// private address.
    pub(crate) async fn post(
        &self,
        url: &str,
        headers: &[(&'static str, String)],
        body: Vec<u8>,
    ) -> Result<StatusCode, Failure> {
        let uri = check_url(url).map_err(Failure::Permanent)?;
        // The resolver does not check IP addresses in the URL.
        if let Some(address) = address_of(&uri)
            && !self.private
            && !is_public(address)
        {
            return Err(Failure::Permanent(NOT_PUBLIC.to_owned()));
        }
        let mut request = Request::post(uri).header(USER_AGENT, AGENT);
        for (name, value) in headers {
            let value = HeaderValue::try_from(value)
                .map_err(|error| Failure::Permanent(error.to_string()))?;
            request = request.header(*name, value);
        }
        let request = request
            .body(Full::new(Bytes::from(body)))
            .map_err(|error| Failure::Permanent(error.to_string()))?;
        let sent = timeout(LIMIT, self.client.request(request)).await;
        let response = sent
            .map_err(|_| Failure::Transient(format!("no response within {LIMIT:?}")))?
            .map_err(|error| connection_failure(&error))?;
        Ok(response.status())
    }
}

/// The failure of a request.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Transient: retry later.
    Transient(String),
    /// Permanent: do not retry.
    Permanent(String),
}

const NOT_PUBLIC: &str =
    "this address is not public: `teamster serve --allow-private-callbacks` allows it";

fn connection_failure(error: &hyper_util::client::legacy::Error) -> Failure {
    let mut source: Option<&dyn std::error::Error> = Some(error);
    let mut text = error.to_string();
    while let Some(error) = source {
        text = error.to_string();
        if text == NOT_PUBLIC {
            return Failure::Permanent(text);
        }
        source = error.source();
    }
    Failure::Transient(text)
}

/// Validates the URL of a callback.
fn check_url(url: &str) -> Result<Uri, String> {
    let uri: Uri = url.parse().map_err(|_| "expected a URL".to_owned())?;
    let is_http = matches!(uri.scheme_str(), Some("http" | "https"));
    let host = uri.authority().map_or("", |authority| authority.as_str());
    match () {
        () if !is_http || host.is_empty() => Err("expected a URL of http or https".to_owned()),
        () if host.contains('@') => Err("expected a URL without a user and a password".to_owned()),
        () => Ok(uri),
    }
}

/// Validates the URL of a callback, and with `private` unset that its address is public. A name that cannot be resolved
/// now may have an address later.
pub(crate) async fn check_target(url: &str, private: bool) -> Result<(), String> {
    /// The time limit of a name's resolution.
    const RESOLUTION: Duration = Duration::from_secs(5);
    let uri = check_url(url)?;
    if private {
        return Ok(());
    }
    let not_public = || Err(NOT_PUBLIC.to_owned());
    if let Some(address) = address_of(&uri) {
        return if is_public(address) {
            Ok(())
        } else {
            not_public()
        };
    }
    let name = uri.host().unwrap_or_default();
    let found = timeout(RESOLUTION, tokio::net::lookup_host((name, 0))).await;
    let Ok(Ok(found)) = found else { return Ok(()) };
    let (public, others): (Vec<_>, Vec<_>) = found.partition(|address| is_public(address.ip()));
    if public.is_empty() && !others.is_empty() {
        return not_public();
    }
    Ok(())
}

/// Returns the address of a URL that has one instead of a name.
fn address_of(uri: &Uri) -> Option<IpAddr> {
    let host = uri.host().unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host.parse().ok()
}

/// Resolves names to allowed addresses. The client connects to the checked addresses themselves, so DNS rebinding
/// cannot bypass the check.
#[derive(Debug, Clone, Copy)]
struct Resolver {
    private: bool,
}

impl Service<Name> for Resolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, io::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), io::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let private = self.private;
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let (allowed, others): (Vec<_>, Vec<_>) =
                found.partition(|address| private || is_public(address.ip()));
            if allowed.is_empty() && !others.is_empty() {
                return Err(io::Error::other(NOT_PUBLIC));
            }
            Ok(allowed.into_iter())
        })
    }
}
