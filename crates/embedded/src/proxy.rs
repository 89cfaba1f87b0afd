//! Connections to model services, through the user's proxy where there is one.

use std::error::Error;
use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use hyper::Uri;
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tower_service::Service;

use crate::http::CONNECT_LIMIT;

/// Proxies of the environment. They are used for HTTPS, and never for this machine.
#[derive(Debug, Clone)]
pub(crate) struct Proxies {
    matcher: Arc<Matcher>,
    /// Why requests that would go through the proxy are refused: without it they could be unwanted.
    pub(crate) refused: Option<String>,
}

/// Proxy in place of one that cannot be used.
const REFUSED: &str = "http://refused.invalid";

impl Proxies {
    /// Reads `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY`, in upper or lower case. A value that is not the address of an
    /// HTTP proxy refuses the requests that would use it.
    pub(crate) fn new(variable: impl Fn(&str) -> Option<String>) -> Self {
        let first = |names: [&str; 2]| {
            let mut values = names
                .into_iter()
                .map(|name| Some((name.to_owned(), variable(name)?)));
            values.find_map(|found| found.filter(|(_, value)| !value.is_empty()))
        };
        let proxy =
            first(["HTTPS_PROXY", "https_proxy"]).or_else(|| first(["ALL_PROXY", "all_proxy"]));
        let mut matcher = Matcher::builder();
        let mut refused = None;
        if let Some((name, value)) = proxy {
            let any = Uri::from_static("https://service.example");
            let found = Matcher::builder()
                .https(value.clone())
                .build()
                .intercept(&any);
            let is_http =
                |proxy: &Intercept| matches!(proxy.uri().scheme_str(), Some("http" | "https"));
            matcher = if found.as_ref().is_some_and(is_http) {
                matcher.https(value)
            } else {
                refused = Some(format!(
                    "{name} is not the address of an HTTP proxy: set one such as http://proxy.example:3128, or unset it"
                ));
                matcher.https(REFUSED)
            };
        }
        if let Some((_, value)) = first(["NO_PROXY", "no_proxy"]) {
            matcher = matcher.no(value);
        }
        Self {
            matcher: Arc::new(matcher.build()),
            refused,
        }
    }

    /// Returns the proxy for requests to this address.
    pub(crate) fn of(&self, to: &Uri) -> Option<Intercept> {
        self.matcher
            .intercept(to)
            .filter(|_| !to.host().is_some_and(is_this_machine))
    }
}

fn is_this_machine(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches([']', '.']);
    match host.parse::<IpAddr>() {
        Ok(address) => address.is_loopback(),
        Err(_) => {
            let host = host.to_ascii_lowercase();
            host == "localhost" || host.ends_with(".localhost")
        }
    }
}

/// Connector to a service, or to its proxy, which connects to the service (`CONNECT`). TLS with the service is left to
/// the connector around it.
#[derive(Debug, Clone)]
pub(crate) struct Route {
    pub(crate) direct: HttpConnector,
    /// For a proxy that speaks TLS itself.
    pub(crate) to_proxy: HttpsConnector<HttpConnector>,
    pub(crate) proxies: Proxies,
}

type BoxError = Box<dyn Error + Send + Sync>;
type Connection = MaybeHttpsStream<TokioIo<TcpStream>>;

impl Service<Uri> for Route {
    type Response = Connection;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Connection, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        // Neither connector waits for anything.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        let Some(proxy) = self.proxies.of(&to) else {
            let connecting = self.direct.call(to);
            return Box::pin(async { Ok(MaybeHttpsStream::Http(connecting.await?)) });
        };
        let mut tunnel = Tunnel::new(proxy.uri().clone(), self.to_proxy.clone());
        if let Some(auth) = proxy.basic_auth() {
            tunnel = tunnel.with_auth(auth.clone());
        }
        let connecting = tunnel.call(to);
        Box::pin(async {
            match timeout(CONNECT_LIMIT, connecting).await {
                Ok(connected) => Ok(connected?),
                Err(_) => Err(io::Error::from(io::ErrorKind::TimedOut).into()),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use teamster_core::ErrorKind;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;
    use crate::http::Http;
    use crate::wire::Failure;

    fn environment(variables: &[(&str, &str)]) -> impl Fn(&str) -> Option<String> {
        |name| {
            let found = variables.iter().find(|(known, _)| *known == name)?;
            Some(found.1.to_owned())
        }
    }

    async fn failure(http: &Http, url: &str) -> Failure {
        let request = hyper::Request::post(url).body(Vec::new().into()).unwrap();
        http.send(request, url).await.unwrap_err()
    }

    #[test]
    fn the_proxy_of_an_address() {
        let all = [
            ("HTTPS_PROXY", ""),
            ("https_proxy", "http://me:s3cr3t@proxy.example:3128"),
            ("ALL_PROXY", "http://other.example"),
            ("NO_PROXY", "inside.example, 10.0.0.0/8"),
        ];
        let proxies = Proxies::new(environment(&all));
        for (address, is_proxied) in [
            ("https://api.example/v1", true),
            ("http://api.example/v1", false),
            ("https://api.inside.example", false),
            ("https://10.1.2.3", false),
            ("https://localhost:8443", false),
            ("https://model.localhost", false),
            ("https://127.0.0.1", false),
            ("https://[::1]:8443", false),
        ] {
            let found = proxies.of(&Uri::from_static(address));
            let found = found.map(|proxy| proxy.uri().to_string());
            let expected = is_proxied.then_some("http://proxy.example:3128/");
            assert_eq!(found.as_deref(), expected, "{address}");
        }
        let direct = Proxies::new(environment(&[]));
        assert!(
            direct
                .of(&Uri::from_static("https://api.example"))
                .is_none()
        );
    }

    #[tokio::test]
    async fn invalid_http_proxy_is_refused_where_it_would_be_used() {
        for value in [
            "socks5://me:s3cr3t@proxy.example",
            "ftp://me:s3cr3t@x",
            "me:s3cr3t@",
        ] {
            let all = [("ALL_PROXY", value), ("NO_PROXY", "0.0.0.0")];
            let http = Http::new(environment(&all)).unwrap();
            let refused = failure(&http, "https://service.example").await;
            assert_eq!(refused.kind, ErrorKind::Invalid);
            let expected = "ALL_PROXY is not the address of an HTTP proxy: ";
            assert!(refused.message.starts_with(expected), "{}", refused.message);
            assert!(!refused.message.contains("s3cr3t"), "{}", refused.message);
            // This machine, an address in `NO_PROXY`, and a service without TLS.
            for url in [
                "https://127.0.0.1:1",
                "https://0.0.0.0:1",
                "http://0.0.0.0:1",
            ] {
                let reached = failure(&http, url).await;
                assert_eq!(reached.kind, ErrorKind::Network, "{}", reached.message);
            }
        }
    }

    #[tokio::test]
    async fn request_through_a_proxy_keeps_tls_to_the_service() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let variable = format!("http://me:s3cr3t@{address}");
        let http = Http::new(|name| (name == "HTTPS_PROXY").then(|| variable.clone())).unwrap();
        for (answer, expected) in [
            ("HTTP/1.1 407 No\r\n\r\n", "proxy authorization required"),
            ("HTTP/1.1 200 Connected\r\n\r\n", ""),
        ] {
            let url = "https://api.example/v1/messages".to_owned();
            let asked = http.send(
                hyper::Request::post(&url).body(Vec::new().into()).unwrap(),
                &url,
            );
            let proxy = async {
                let (mut client, _) = listener.accept().await.unwrap();
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(client.read_u8().await.unwrap());
                }
                client.write_all(answer.as_bytes()).await.unwrap();
                // A handshake: https://www.rfc-editor.org/rfc/rfc8446#section-5.1
                let first = client.read_u8().await.ok();
                (String::from_utf8(head).unwrap(), first)
            };
            let (asked, (head, first)) = tokio::join!(asked, proxy);
            assert!(
                head.starts_with("CONNECT api.example:443 HTTP/1.1\r\n"),
                "{head}"
            );
            let auth = "Proxy-Authorization: Basic bWU6czNjcjN0\r\n";
            assert!(head.contains(auth), "{head}");
            assert_eq!(first.is_some_and(|byte| byte == 22), expected.is_empty());
            let failure = asked.unwrap_err();
            assert_eq!(failure.kind, ErrorKind::Network);
            let shown = format!("cannot reach {url} through the proxy http://{address}/: ");
            assert!(failure.message.starts_with(&shown), "{}", failure.message);
            assert!(failure.message.contains(expected), "{}", failure.message);
            assert!(!failure.message.contains("s3cr3t"), "{}", failure.message);
        }
    }
}
