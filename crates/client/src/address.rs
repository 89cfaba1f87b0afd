//! The address of a server, and connections to it: over TCP, TLS, a Unix socket or `ssh`.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::header::HeaderValue;
use hyper::http::uri::PathAndQuery;
use hyper::rt::{Read, Write};
use hyper::{Request, Response, Uri};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;
use tokio::time::timeout;
use tower_service::Service;

use crate::error::{ClientError, ClientErrorKind};
use crate::ssh::{self, Settings, Ssh, Target};

/// The time limit of a connection.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// A byte stream to a server.
trait Stream: Read + Write + Send + Unpin {}

impl<T: Read + Write + Send + Unpin> Stream for T {}

/// A connection to a server, for one request.
pub(crate) enum Connection {
    /// A connection of the request's own.
    Own(http1::SendRequest<Full<Bytes>>),
    /// The one of all requests.
    Shared(ssh::Sender),
}

impl Connection {
    /// Sends a request, and returns the head of the response.
    pub(crate) async fn send(
        &mut self,
        request: Request<Full<Bytes>>,
    ) -> hyper::Result<Response<Incoming>> {
        match self {
            Self::Own(sender) => sender.send_request(request).await,
            Self::Shared(sender) => sender.send_request(request).await,
        }
    }
}

/// The reason why there is no connection.
#[derive(Debug, Clone)]
pub(crate) struct ConnectError {
    pub(crate) kind: ClientErrorKind,
    /// For people.
    pub(crate) reason: String,
}

impl ConnectError {
    pub(crate) fn new(kind: ClientErrorKind, reason: String) -> Self {
        Self { kind, reason }
    }
}

impl From<String> for ConnectError {
    fn from(reason: String) -> Self {
        Self::new(ClientErrorKind::Unreachable, reason)
    }
}

/// The address of a server.
#[derive(Debug, Clone)]
pub(crate) enum Address {
    /// The base URL without a trailing slash.
    Url {
        uri: Uri,
        connector: Connector,
    },
    Unix(PathBuf),
    Ssh(Arc<Ssh>),
}

/// Transport of connections to a URL.
#[derive(Debug, Clone)]
pub(crate) enum Connector {
    Plain(HttpConnector),
    Tls(HttpsConnector<HttpConnector>),
}

impl Address {
    /// Reads a URL without a slash at its end: `http://`, `https://`, `unix:` or `ssh:`.
    pub(crate) fn new(url: &str, has_token: bool) -> Result<Self, ClientError> {
        let failed = |kind, parameter: &'static str, message: String| ClientError {
            parameter: Some(parameter.into()),
            ..ClientError::new(kind, message)
        };
        if let Some(rest) = url.strip_prefix("ssh:") {
            let ssh = Ssh::new(Target::parse(rest)?, Settings::default());
            return Ok(Self::Ssh(Arc::new(ssh)));
        }
        if url.contains(['#', '?', '@']) {
            let message =
                "others can read a token or password in a URL: pass the token apart from it";
            let kind = ClientErrorKind::SecretInUrl;
            return Err(failed(kind, "url", message.to_owned()));
        }
        let invalid_url = |message| failed(ClientErrorKind::InvalidUrl, "url", message);
        match url.strip_prefix("unix:") {
            Some("") => return Err(invalid_url("expected a path after `unix:`".to_owned())),
            Some(path) => return Ok(Self::Unix(path.into())),
            None => {}
        }
        let uri = url.parse::<Uri>().ok().filter(|uri| {
            matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some()
        });
        let uri = uri.ok_or_else(|| {
            invalid_url(format!(
                "{url:?} is not the URL of a server: expected https://HOST, ssh:HOST, http://127.0.0.1:7420 or unix:/path"
            ))
        })?;
        if !has_token {
            let message = format!("no token for {url}");
            return Err(failed(ClientErrorKind::NoToken, "token", message));
        }
        let connector = if uri.scheme_str() == Some("https") {
            Connector::Tls(tls()?)
        } else {
            Connector::Plain(tcp())
        };
        Ok(Self::Url { uri, connector })
    }

    /// Returns the URL of a request with this path and query, and the value of `Host`, which HTTP/2 has in the URL.
    pub(crate) fn target(
        &self,
        path: &str,
    ) -> Result<(Uri, Option<HeaderValue>), hyper::http::Error> {
        let (prefix, host) = match self {
            Self::Url { uri, .. } => (
                uri.path().trim_end_matches('/'),
                uri.authority().map_or("", |authority| authority.as_str()),
            ),
            Self::Unix(_) => ("", "localhost"),
            Self::Ssh(_) => {
                let uri = Uri::builder().scheme("http").authority("localhost");
                return Ok((uri.path_and_query(path).build()?, None));
            }
        };
        let path: PathAndQuery = format!("{prefix}{path}").parse()?;
        Ok((path.into(), Some(HeaderValue::from_str(host)?)))
    }

    /// Returns what the transport has reported of a connection that broke.
    pub(crate) fn failure(&self) -> Option<String> {
        match self {
            Self::Ssh(ssh) => ssh.failure(),
            Self::Url { .. } | Self::Unix(_) => None,
        }
    }

    /// Returns `true` if requests go unencrypted to another machine.
    pub(crate) fn is_unencrypted(&self) -> bool {
        match self {
            Self::Url { uri, .. } if uri.scheme_str() == Some("http") => {
                let host = uri.host().unwrap_or_default();
                let host = host.trim_start_matches('[').trim_end_matches(']');
                let address = host.parse::<std::net::IpAddr>();
                host != "localhost" && !address.is_ok_and(|address| address.is_loopback())
            }
            _ => false,
        }
    }

    /// Returns a connection for one request.
    pub(crate) async fn connect(&self) -> Result<Connection, ConnectError> {
        if let Self::Ssh(ssh) = self {
            return Ok(Connection::Shared(ssh.connection().await?));
        }
        let stream = timeout(CONNECT_LIMIT, self.open()).await;
        let stream = stream.map_err(|_| format!("no connection within {CONNECT_LIMIT:?}"))??;
        let (sender, connection) =
            (http1::handshake(stream).await).map_err(|error| reason(&error))?;
        // The task ends with the response. The body reports its errors.
        tokio::spawn(connection);
        Ok(Connection::Own(sender))
    }

    /// Opens a stream. The error is its reason, for people.
    async fn open(&self) -> Result<Box<dyn Stream>, String> {
        Ok(match self {
            Self::Url { uri, connector } => match connector.clone() {
                Connector::Plain(mut tcp) => {
                    let stream = tcp.call(uri.clone()).await;
                    Box::new(stream.map_err(|error| reason(&error))?)
                }
                Connector::Tls(mut tls) => {
                    let stream = tls.call(uri.clone()).await;
                    Box::new(stream.map_err(|error| reason(&*error))?)
                }
            },
            Self::Unix(path) => {
                let stream = UnixStream::connect(path).await;
                Box::new(TokioIo::new(stream.map_err(|error| error.to_string())?))
            }
            Self::Ssh(_) => return Err("it has no connection of its own".to_owned()),
        })
    }
}

fn tcp() -> HttpConnector {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp
}

fn tls() -> Result<HttpsConnector<HttpConnector>, ClientError> {
    let ring = rustls::crypto::ring::default_provider();
    let builder = HttpsConnectorBuilder::new().with_provider_and_native_roots(ring);
    let builder = builder.map_err(|error| {
        let message = format!(
            "cannot read the system's certificates (set SSL_CERT_FILE to a file of certificates): {error}"
        );
        ClientError::new(ClientErrorKind::NoCertificates, message)
    })?;
    Ok(builder.https_only().enable_http1().wrap_connector(tcp()))
}

/// Returns the message of the innermost source of an error, which is the most precise, with the next step if it is about
/// TLS.
pub(crate) fn reason(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = innermost(error);
    if text.contains("UnknownIssuer") {
        text += "; if the certificate is signed by a private CA, set SSL_CERT_FILE to the CA's certificate";
    }
    if text.contains("InvalidContentType") {
        text += "; the server does not use TLS there: use http://, or the port of its TLS proxy";
    }
    text
}

fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    let mut last = error;
    while let Some(source) = last.source() {
        last = source;
    }
    let wrapped = last.downcast_ref::<io::Error>();
    match wrapped.and_then(io::Error::get_ref) {
        Some(inner) => innermost(inner),
        None => last.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reason_of_a_server_without_tls_has_the_next_step() {
        let error = io::Error::other("received corrupt message of type InvalidContentType");
        assert_eq!(
            reason(&error),
            "received corrupt message of type InvalidContentType; the server does not use TLS there: use http://, or \
             the port of its TLS proxy"
        );
    }

    #[test]
    fn invalid_urls_and_urls_with_secrets_are_rejected() {
        for url in [
            "http://127.0.0.1:7420",
            "https://box.example/teamster/",
            "unix:/run/t.sock",
            "ssh:box",
            "ssh://me@box:2222",
        ] {
            assert!(Address::new(url, true).is_ok(), "{url}");
        }
        for (url, why) in [
            ("127.0.0.1:7420", "is not the URL of a server"),
            ("ftp://box.example", "is not the URL of a server"),
            ("unix:", "expected a path"),
            ("http://127.0.0.1:7420/#token=x", "others can read"),
            ("https://me:x@box.example", "others can read"),
            ("ssh:", "is not the address of a machine"),
        ] {
            let error = Address::new(url, true).unwrap_err().to_string();
            assert!(error.contains(why), "{url}: {error}");
        }
        let error = Address::new("http://127.0.0.1:7420", false).unwrap_err();
        assert_eq!(error.kind, ClientErrorKind::NoToken, "{error}");
        assert!(Address::new("unix:/s", false).is_ok());
        assert!(Address::new("ssh:box", false).is_ok());
    }

    #[test]
    fn only_plain_http_to_another_machine_is_unencrypted() {
        for (url, unencrypted) in [
            ("http://127.0.0.1:1", false),
            ("http://[::1]:1", false),
            ("http://localhost", false),
            ("https://box.example", false),
            ("unix:/s", false),
            ("ssh:box", false),
            ("http://box.example", true),
            ("http://10.0.0.1:7420", true),
        ] {
            let address = Address::new(url, true).unwrap();
            assert_eq!(address.is_unencrypted(), unencrypted, "{url}");
        }
    }
}
