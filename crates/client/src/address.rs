//! The address of a server, and connections to it: over TCP, TLS or a Unix socket.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use hyper::Uri;
use hyper::rt::{Read, Write};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;
use tokio::time::timeout;
use tower_service::Service;

use crate::error::{ClientError, ClientErrorKind};

/// The time limit of a connection.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// A byte stream to a server.
pub(crate) trait Connection: Read + Write + Send + Unpin {}

impl<T: Read + Write + Send + Unpin> Connection for T {}

/// The address of a server.
#[derive(Debug, Clone)]
pub(crate) enum Address {
    /// The base URL without a trailing slash.
    Url {
        uri: Uri,
        connector: Connector,
    },
    Unix(PathBuf),
}

/// How connections to a URL are made.
#[derive(Debug, Clone)]
pub(crate) enum Connector {
    Plain(HttpConnector),
    Tls(HttpsConnector<HttpConnector>),
}

impl Address {
    /// Reads a URL without a slash at its end: `http://`, `https://` or `unix:`.
    pub(crate) fn new(url: &str, has_token: bool) -> Result<Self, ClientError> {
        let failed = |kind, parameter, message: String| ClientError {
            parameter: Some(parameter),
            ..ClientError::new(kind, message)
        };
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
                "{url:?} is not the URL of a server: expected https://HOST, http://127.0.0.1:7420 or unix:/path"
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

    /// Returns the path before that of each request, and the value of `Host`.
    pub(crate) fn prefix_and_host(&self) -> (&str, &str) {
        match self {
            Self::Url { uri, .. } => (
                uri.path().trim_end_matches('/'),
                uri.authority().map_or("", |authority| authority.as_str()),
            ),
            Self::Unix(_) => ("", "localhost"),
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

    /// Makes a connection. The error is its reason, for people.
    pub(crate) async fn connect(&self) -> Result<Box<dyn Connection>, String> {
        let connecting = async {
            let connection: Box<dyn Connection> = match self {
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
            };
            Ok::<_, String>(connection)
        };
        match timeout(CONNECT_LIMIT, connecting).await {
            Ok(connected) => connected,
            Err(_) => Err(format!("no connection within {CONNECT_LIMIT:?}")),
        }
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

/// Returns the message of the innermost source of an error, which is the most precise.
pub(crate) fn reason(error: &(dyn std::error::Error + 'static)) -> String {
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
        for url in [
            "http://127.0.0.1:7420",
            "https://box.example/teamster/",
            "unix:/run/t.sock",
        ] {
            assert!(Address::new(url, true).is_ok(), "{url}");
        }
        for (url, why) in [
            ("127.0.0.1:7420", "is not the URL of a server"),
            ("ftp://box.example", "is not the URL of a server"),
            ("unix:", "expected a path"),
            ("http://127.0.0.1:7420/#token=x", "others can read"),
            ("https://me:x@box.example", "others can read"),
        ] {
            let error = Address::new(url, true).unwrap_err().to_string();
            assert!(error.contains(why), "{url}: {error}");
        }
        let error = Address::new("http://127.0.0.1:7420", false).unwrap_err();
        assert_eq!(error.kind, ClientErrorKind::NoToken, "{error}");
        assert!(Address::new("unix:/s", false).is_ok());
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
            let address = Address::new(url, true).unwrap();
            assert_eq!(address.is_unencrypted(), unencrypted, "{url}");
        }
    }
}
