//! Requests to model services.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue, USER_AGENT};
use hyper::{Request, Response};
use hyper_rustls::{ConfigBuilderExt, HttpsConnector};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use jiff::Timestamp;
use rustls::ClientConfig;
use teamster_core::ErrorKind;
use teamster_core::provider::without_credentials;

use crate::model::Target;
use crate::proxy::{Proxies, Route};
use crate::wire::{Failure, http_failure};

pub(crate) const CONNECT_LIMIT: Duration = Duration::from_secs(20);
/// Time that an idle connection is kept.
const IDLE: Duration = Duration::from_mins(1);
/// Maximum bytes read from the body of an error response.
const MOST_ERROR: usize = 256 << 10;

/// HTTP client for all requests of a run or session. It reuses connections.
#[derive(Debug, Clone)]
pub(crate) struct Http {
    client: Client<HttpsConnector<Route>, Full<Bytes>>,
    proxies: Proxies,
}

impl Http {
    /// Creates a client. `variable` reads the environment. Loads the system's certificates once per process.
    pub(crate) fn new(variable: impl Fn(&str) -> Option<String>) -> Result<Self, Failure> {
        static TLS: OnceLock<Result<Arc<ClientConfig>, String>> = OnceLock::new();
        let tls = TLS.get_or_init(|| {
            // Use an explicit provider: the process may or may not have a default one.
            let ring = Arc::new(rustls::crypto::ring::default_provider());
            let builder = ClientConfig::builder_with_provider(ring)
                .with_safe_default_protocol_versions()
                .map_err(|error| error.to_string())?;
            let builder = builder
                .with_native_roots()
                .map_err(|error| error.to_string())?;
            Ok(Arc::new(builder.with_no_client_auth()))
        });
        let tls = tls.clone().map_err(|error| {
            let message = format!("the system's certificates cannot be read: {error}");
            Failure::new(ErrorKind::Network, message)
        })?;
        let mut direct = HttpConnector::new();
        direct.enforce_http(false);
        direct.set_nodelay(true);
        direct.set_connect_timeout(Some(CONNECT_LIMIT));
        let proxies = Proxies::new(variable);
        let route = Route {
            to_proxy: HttpsConnector::from((direct.clone(), tls.clone())),
            direct,
            proxies: proxies.clone(),
        };
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .build(HttpsConnector::from((route, tls)));
        Ok(Self { client, proxies })
    }

    /// Sends a request. Returns a response whose body is a stream, and the address that answered, without
    /// credentials. An HTTP error status is a failure.
    pub(crate) async fn post(
        &self,
        target: &Target,
        body: Vec<u8>,
    ) -> Result<(Response<Incoming>, String), Failure> {
        let wire = target.wire().wire();
        let url = target.url();
        let shown = without_credentials(&url);
        let invalid = |what: &str| {
            Failure::new(
                ErrorKind::Invalid,
                format!("{what} of {shown} is not valid"),
            )
        };
        let mut request = Request::post(&url)
            .body(Full::new(Bytes::from(body)))
            .map_err(|_| invalid("the address"))?;
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
        for (name, value) in wire.headers(target.key.as_deref()) {
            let mut value = HeaderValue::try_from(value).map_err(|_| invalid("the key"))?;
            value.set_sensitive(true);
            headers.insert(HeaderName::from_static(name), value);
        }
        let response = self.send(request, &shown).await?;
        let status = response.status().as_u16();
        if response.status().is_success() {
            return Ok((response, shown));
        }
        let (head, body) = response.into_parts();
        let body = Limited::new(body, MOST_ERROR).collect().await;
        let body = body
            .map(http_body_util::Collected::to_bytes)
            .unwrap_or_default();
        let header = |name: &str| Some(head.headers.get(name)?.to_str().ok()?.to_owned());
        let body = String::from_utf8_lossy(&body);
        let mut failure = http_failure(status, &header, &body, Timestamp::now());
        let variables = target.service.url_variables.join(" or ");
        let is_about_a_model = || {
            let body = body.to_lowercase();
            // Azure has deployments of models.
            let words = ["model", "deployment"];
            words.iter().any(|word| body.contains(word)) || ErrorKind::of_message(&body).is_some()
        };
        if status == 404 && !is_about_a_model() {
            failure.kind = ErrorKind::Invalid;
            failure.message = format!(
                "{}: the service is not at this address; correct {variables}",
                failure.message
            );
        }
        if head.status.is_redirection() {
            // The request has the key, which is not for another address.
            let location = header("location").unwrap_or_default();
            failure = Failure::new(
                ErrorKind::Invalid,
                redirected(&location, &url, &wire.path(&target.model), &variables),
            );
        }
        failure.message = format!("{} (HTTP {status} from {shown})", failure.message);
        Err(failure)
    }

    /// Sends a request to the address that is shown so.
    pub(crate) async fn send(
        &self,
        request: Request<Full<Bytes>>,
        shown: &str,
    ) -> Result<Response<Incoming>, Failure> {
        let proxy = self.proxies.of(request.uri());
        if let (Some(_), Some(why)) = (&proxy, &self.proxies.refused) {
            return Err(Failure::new(ErrorKind::Invalid, why.clone()));
        }
        self.client.request(request).await.map_err(|error| {
            let through = proxy.map_or_else(String::new, |proxy| {
                format!(" through the proxy {}", proxy.uri())
            });
            Failure::new(
                ErrorKind::Network,
                format!("cannot reach {shown}{through}: {}", innermost(&error)),
            )
        })
    }
}

/// Returns the message about a redirect of a request. `path` is what every address of the service has, at the end of this
/// `url` or before the query of the user's own.
fn redirected(location: &str, url: &str, path: &str, variables: &str) -> String {
    let host = url.find("://").map_or(0, |at| at + 3);
    let origin = &url[..url[host..].find('/').map_or(url.len(), |at| host + at)];
    let to = if location.starts_with('/') && !location.starts_with("//") {
        format!("{origin}{location}")
    } else {
        location.to_owned()
    };
    let plain_to = to.split('?').next().unwrap_or_default();
    let plain_path = path.split('?').next().unwrap_or_default();
    if let Some(base) = plain_to.strip_suffix(plain_path) {
        let base = without_credentials(base);
        let query = if url.ends_with(path) {
            ""
        } else {
            ", with the query that it has"
        };
        return format!("the service has moved to {base}: set {variables} to that{query}");
    }
    let to = match &*to {
        "" => "an address that it does not name".to_owned(),
        to => without_credentials(to),
    };
    format!(
        "the request is redirected to {to}, not to another address of the service: correct {variables}, or sign in to \
         the network"
    )
}

/// Value of the `User-Agent` header.
const AGENT: &str = concat!("teamster-embedded/", env!("CARGO_PKG_VERSION"));

/// Returns the next chunk of a body. `None` at its end.
pub(crate) async fn next_piece(body: &mut Incoming) -> Option<Result<Bytes, Failure>> {
    loop {
        match body.frame().await? {
            Ok(frame) => {
                if let Ok(data) = frame.into_data() {
                    return Some(Ok(data));
                }
            }
            Err(error) => {
                let mut failure = Failure::broken_off();
                failure.message = format!("{}: {}", failure.message, innermost(&error));
                return Some(Err(failure));
            }
        }
    }
}

/// Returns the innermost error, which has the cause, such as `Connection refused`.
fn innermost(error: &dyn std::error::Error) -> String {
    let mut last: &dyn std::error::Error = error;
    while let Some(source) = last.source() {
        last = source;
    }
    last.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirect_names_the_address_to_set_or_where_it_goes() {
        let message = |location: &str, path: &str| {
            redirected(
                location,
                &format!("http://me:pw@h:1/v1{path}"),
                path,
                "X_URL",
            )
        };
        let gemini = "/m:stream?alt=sse";
        for (location, path, expected) in [
            ("/v2/chat", "/chat", "http://h:1/v2: set X_URL"),
            (
                "https://h/v1/m:stream?alt=sse",
                gemini,
                "https://h/v1: set X_URL",
            ),
        ] {
            let message = message(location, path);
            let expected = format!("the service has moved to {expected} to that");
            assert_eq!(message, expected);
        }
        let of_azure = "http://h:1/v1/chat?api-version=1";
        assert_eq!(
            redirected(
                "https://h/v2/chat?api-version=1",
                of_azure,
                "/chat",
                "X_URL"
            ),
            "the service has moved to https://h/v2: set X_URL to that, with the query that it has"
        );
        for (location, expected) in [
            (
                "https://login.example/?from=secret",
                "https://login.example/?…",
            ),
            ("", "an address that it does not name"),
        ] {
            let message = message(location, "/chat");
            let expected = format!("the request is redirected to {expected}, not to");
            assert!(message.starts_with(&expected), "{message}");
        }
    }
}
