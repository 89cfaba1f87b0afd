//! An HTTP client with one connection per request, over TCP, TLS or a Unix socket.

use std::fmt::Display;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail};
use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderName, USER_AGENT};
use hyper::http::uri::PathAndQuery;
use hyper::rt::{Read, Write};
use hyper::{Method, Request, Response, StatusCode, Uri};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioIo;
use serde::Serialize;
use serde::de::DeserializeOwned;
use teamster_api::{Problem, ProblemCode};
use tokio::net::UnixStream;
use tokio::time::timeout;
use tower_service::Service;

/// The time limit of a connection.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// The time limit for the head of a response.
const RESPONSE_LIMIT: Duration = Duration::from_mins(1);
/// The maximum size of a response that is not a stream, in bytes.
const LARGEST_BODY: usize = 256 << 20;
/// The `User-Agent` header.
const AGENT: &str = concat!("teamster/", env!("CARGO_PKG_VERSION"));

/// A failed request.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The server could not be reached, or the connection was lost.
    #[error("cannot reach {url}: {reason}")]
    Unreachable { url: String, reason: String },
    /// The server rejected the request.
    #[error("{}", .0.detail)]
    Problem(Problem),
    /// The server is not `teamster serve`, or has an incompatible version.
    #[error(
        "{url} did not respond like `teamster serve` ({reason}): check the URL, and the versions of both sides"
    )]
    Unexpected { url: String, reason: String },
}

impl Failure {
    /// Returns the code of the server's problem.
    pub(crate) fn code(&self) -> Option<ProblemCode> {
        match self {
            Self::Problem(problem) => Some(problem.code),
            _ => None,
        }
    }
}

/// A byte stream to a server.
trait Connection: Read + Write + Send + Unpin {}

impl<T: Read + Write + Send + Unpin> Connection for T {}

/// The address of a server.
#[derive(Debug, Clone)]
enum Address {
    /// The base URL without a trailing slash.
    Url {
        uri: Uri,
        connector: HttpsConnector<HttpConnector>,
    },
    Unix(PathBuf),
}

/// An HTTP client of one server. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Http {
    address: Address,
    /// The URL as given, without trailing slashes.
    url: String,
    token: Option<String>,
}

/// The error for a URL with a secret: every user of the machine can read arguments.
const NO_SECRET: &str = "every user of this machine can read a token in the URL: put it into a file for --remote-token-file, or \
into TEAMSTER_REMOTE_TOKEN";

impl Http {
    /// Creates a client for a URL: `http://`, `https://` or `unix:`.
    pub(crate) fn new(url: &str, token: Option<String>) -> anyhow::Result<Self> {
        let url = url.trim_end_matches('/').to_owned();
        if url.contains(['#', '?', '@']) {
            bail!("{NO_SECRET}");
        }
        let address = match url.strip_prefix("unix:") {
            Some("") => bail!("expected a path after `unix:`"),
            Some(path) => Address::Unix(path.into()),
            None => {
                let uri: Uri = url.parse().ok().with_context(|| invalid_url(&url))?;
                if !matches!(uri.scheme_str(), Some("http" | "https")) || uri.host().is_none() {
                    bail!("{}", invalid_url(&url));
                }
                if token.is_none() {
                    bail!(
                        "no token for {url}: set TEAMSTER_REMOTE_TOKEN or --remote-token-file (`teamster token add NAME \
                        --scope SCOPE` on the server's machine creates a token)"
                    );
                }
                Address::Url {
                    uri,
                    connector: connector()?,
                }
            }
        };
        Ok(Self {
            address,
            url,
            token,
        })
    }

    /// Returns the server's URL.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Returns `true` if requests go unencrypted to another machine.
    pub(crate) fn is_unencrypted(&self) -> bool {
        match &self.address {
            Address::Url { uri, .. } if uri.scheme_str() == Some("http") => {
                let host = uri.host().unwrap_or_default();
                let host = host.trim_start_matches('[').trim_end_matches(']');
                let address = host.parse::<std::net::IpAddr>();
                host != "localhost" && !address.is_ok_and(|address| address.is_loopback())
            }
            _ => false,
        }
    }

    fn unreachable(&self, reason: &dyn Display) -> Failure {
        Failure::Unreachable {
            url: self.url.clone(),
            reason: reason.to_string(),
        }
    }

    fn unexpected(&self, reason: &dyn Display) -> Failure {
        Failure::Unexpected {
            url: self.url.clone(),
            reason: reason.to_string(),
        }
    }

    async fn connect(&self) -> Result<Box<dyn Connection>, Failure> {
        let connecting = async {
            let connection: Box<dyn Connection> = match &self.address {
                Address::Url { uri, connector } => {
                    let stream = connector.clone().call(uri.clone()).await;
                    Box::new(stream.map_err(|error| reason(&*error))?)
                }
                Address::Unix(path) => {
                    let stream = UnixStream::connect(path).await;
                    Box::new(TokioIo::new(stream.map_err(|error| error.to_string())?))
                }
            };
            Ok::<_, String>(connection)
        };
        match timeout(CONNECT_LIMIT, connecting).await {
            Ok(connected) => connected.map_err(|error| self.unreachable(&error)),
            Err(_) => Err(self.unreachable(&format!("no connection within {CONNECT_LIMIT:?}"))),
        }
    }

    /// Sends a request and returns the response, whose body may be a stream. A status other than 2xx is an error.
    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(HeaderName, String)],
        body: Option<Vec<u8>>,
    ) -> Result<Response<Incoming>, Failure> {
        let (prefix, host) = match &self.address {
            Address::Url { uri, .. } => (
                uri.path().trim_end_matches('/'),
                uri.authority().map_or("", |authority| authority.as_str()),
            ),
            Address::Unix(_) => ("", "localhost"),
        };
        let target = format!("{prefix}{path}");
        let target: PathAndQuery = target.parse().map_err(|error| self.unexpected(&error))?;
        let mut request = Request::builder()
            .method(method)
            .uri(Uri::from(target))
            .header(HOST, host)
            .header(USER_AGENT, AGENT);
        if let Some(token) = &self.token {
            request = request.header(AUTHORIZATION, format!("Bearer {token}"));
        }
        if body.is_some() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let body = Full::new(Bytes::from(body.unwrap_or_default()));
        let request = request
            .body(body)
            .map_err(|error| self.unexpected(&error))?;

        let connection = self.connect().await?;
        let (mut sender, connection) = http1::handshake(connection)
            .await
            .map_err(|error| self.unreachable(&error))?;
        // The task ends with the response. The body reports its errors.
        tokio::spawn(connection);
        let sent = timeout(RESPONSE_LIMIT, sender.send_request(request)).await;
        let response = sent
            .map_err(|_| self.unreachable(&format!("no response within {RESPONSE_LIMIT:?}")))?
            .map_err(|error| self.unreachable(&reason(&error)))?;
        if response.status().is_success() {
            return Ok(response);
        }
        let status = response.status();
        let body = self.body(response).await?;
        let problem = serde_json::from_slice::<Problem>(&body);
        Err(match problem {
            Ok(problem) => Failure::Problem(self.with_next_step(problem)),
            Err(_) => self.unexpected(&format!("HTTP {status}")),
        })
    }

    /// Adds the client's next step to a problem.
    fn with_next_step(&self, mut problem: Problem) -> Problem {
        let url = &self.url;
        match problem.code {
            ProblemCode::Unauthorized => {
                problem.detail = format!(
                    "{url} rejected the token as invalid or revoked: check TEAMSTER_REMOTE_TOKEN or --remote-token-file"
                );
            }
            ProblemCode::InsufficientScope => {
                problem.detail = format!(
                    "{url}: {}; `teamster token add NAME --scope SCOPE` on its machine creates one",
                    problem.detail
                );
            }
            ProblemCode::HostNotAllowed => problem.detail = format!("{url}: {}", problem.detail),
            _ => {}
        }
        problem
    }

    async fn body(&self, response: Response<Incoming>) -> Result<Bytes, Failure> {
        let body = Limited::new(response.into_body(), LARGEST_BODY);
        let collected = body.collect().await;
        let collected = collected.map_err(|error| self.unreachable(&reason(&*error)))?;
        Ok(collected.to_bytes())
    }

    fn read<T: DeserializeOwned>(&self, body: &[u8]) -> Result<T, Failure> {
        serde_json::from_slice(body).map_err(|error| self.unexpected(&error))
    }

    /// Gets JSON.
    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        let response = self.send(Method::GET, path, &[], None).await?;
        self.read(&self.body(response).await?)
    }

    /// Gets text.
    pub(crate) async fn text(&self, path: &str) -> Result<Bytes, Failure> {
        let response = self.send(Method::GET, path, &[], None).await?;
        self.body(response).await
    }

    /// Sends JSON and returns the JSON of the response.
    pub(crate) async fn exchange<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        headers: &[(HeaderName, String)],
        body: &impl Serialize,
    ) -> Result<T, Failure> {
        let json = serde_json::to_vec(body).map_err(|error| self.unexpected(&error))?;
        let response = self.send(method, path, headers, Some(json)).await?;
        self.read(&self.body(response).await?)
    }

    /// Sends JSON and ignores the body of the response.
    pub(crate) async fn command(
        &self,
        method: Method,
        path: &str,
        body: &impl Serialize,
    ) -> Result<(), Failure> {
        let json = serde_json::to_vec(body).map_err(|error| self.unexpected(&error))?;
        let response = self.send(method, path, &[], Some(json)).await?;
        self.body(response).await.map(drop)
    }

    /// Gets a stream; `None` for status 204.
    pub(crate) async fn stream(
        &self,
        path: &str,
        headers: &[(HeaderName, String)],
    ) -> Result<Option<Incoming>, Failure> {
        let response = self.send(Method::GET, path, headers, None).await?;
        let is_empty = response.status() == StatusCode::NO_CONTENT;
        Ok((!is_empty).then(|| response.into_body()))
    }
}

fn invalid_url(url: &str) -> String {
    format!(
        "{url:?} is not the URL of a server: expected https://HOST, http://127.0.0.1:7420 or unix:/path"
    )
}

fn connector() -> anyhow::Result<HttpsConnector<HttpConnector>> {
    let mut http = HttpConnector::new();
    http.enforce_http(false);
    http.set_nodelay(true);
    let ring = rustls::crypto::ring::default_provider();
    let builder = HttpsConnectorBuilder::new()
        .with_provider_and_native_roots(ring)
        .context(
            "cannot read the system's certificates (set SSL_CERT_FILE to a file of certificates)",
        )?;
    Ok(builder.https_or_http().enable_http1().wrap_connector(http))
}

/// Returns the message of the innermost source of an error, which is the most precise.
fn reason(error: &(dyn std::error::Error + 'static)) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    let mut text = innermost.to_string();
    if let Some(error) = innermost.downcast_ref::<io::Error>() {
        text = match error.get_ref() {
            Some(inner) => reason(inner),
            None => text,
        };
    }
    if text.contains("UnknownIssuer") {
        text += "; if the certificate is signed by a private CA, set SSL_CERT_FILE to the CA's certificate";
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_urls_and_urls_with_secrets_are_rejected() {
        let token = || Some("0123456789abcdef".to_owned());
        for url in [
            "http://127.0.0.1:7420",
            "https://box.example/teamster/",
            "unix:/run/t.sock",
        ] {
            let http = Http::new(url, token()).unwrap();
            assert_eq!(http.url(), url.trim_end_matches('/'));
        }
        for (url, why) in [
            ("127.0.0.1:7420", "is not the URL of a server"),
            ("ftp://box.example", "is not the URL of a server"),
            ("unix:", "expected a path"),
            ("http://127.0.0.1:7420/#token=x", "every user"),
            ("https://me:x@box.example", "every user"),
        ] {
            let error = Http::new(url, token()).unwrap_err().to_string();
            assert!(error.contains(why), "{url}: {error}");
        }
        let error = Http::new("http://127.0.0.1:7420", None).unwrap_err();
        assert!(error.to_string().contains("--remote-token-file"), "{error}");
        assert!(Http::new("unix:/s", None).is_ok());
    }

    #[test]
    fn only_plain_http_to_another_machine_is_unencrypted() {
        for (url, unencrypted) in [
            ("http://127.0.0.1:1", false),
            ("http://[::1]:1", false),
            ("http://localhost", false),
            ("https://box.example", false),
            ("unix:/s", false),
            ("http://box.example", true),
            ("http://10.0.0.1:7420", true),
        ] {
            let http = Http::new(url, Some("0123456789abcdef".to_owned())).unwrap();
            assert_eq!(http.is_unencrypted(), unencrypted, "{url}");
        }
    }
}
