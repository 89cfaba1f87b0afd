//! Checks the `Host` and `Origin` headers of every request, before its token.

use std::net::IpAddr;

use axum::extract::{Request, State};
use axum::http::header::{HOST, ORIGIN};
use axum::http::{HeaderMap, Method, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use teamster_api::ProblemCode;

use crate::ApiError;
use crate::state::Shared;
use crate::transport::Transport;

/// Rejects requests to other host names and state-changing requests from other origins.
///
/// After DNS rebinding, a page sends its own name in `Host`. IP addresses cannot be rebound, so they are allowed.
pub(crate) async fn check(
    State(shared): State<std::sync::Arc<Shared>>,
    request: Request,
    next: Next,
) -> Response {
    let transport = request.extensions().get::<Transport>();
    let is_user = transport.is_some_and(|transport| transport.user().is_some());
    let host = host_of(request.uri(), request.headers());
    if !is_user {
        let allowed = host.is_some_and(|host| is_allowed(name_of(host), &shared.config.hosts));
        if !allowed {
            return ApiError::new(
                ProblemCode::HostNotAllowed,
                "the name in the Host header is not allowed; allow it with `teamster serve --allow-host NAME`",
            )
            .into_response();
        }
    }
    let is_safe = matches!(*request.method(), Method::GET | Method::HEAD);
    if !is_safe && let Some(origin) = request.headers().get(ORIGIN) {
        let origin = origin.to_str().unwrap_or_default();
        if host.is_none_or(|host| !is_same(origin, host)) {
            return ApiError::new(
                ProblemCode::OriginNotAllowed,
                "this request comes from a page of another origin",
            )
            .into_response();
        }
    }
    next.run(request).await
}

/// Headers that proxies add.
const OF_PROXIES: [&str; 4] = ["forwarded", "via", "x-forwarded-for", "x-real-ip"];

/// Returns whether the client of a request is on the server's machine: the connection is from there, it is to `localhost` or
/// to the address of the connection, and it is not that of a proxy, which names its client. A tunnel that ends here, or a
/// proxy that adds no header, looks the same.
pub(crate) fn is_near(transport: Transport, uri: &Uri, headers: &HeaderMap) -> bool {
    let own = match transport {
        // A stream is the other end of `ssh`.
        Transport::Tcp { near: None, .. } | Transport::Stream => return false,
        Transport::Tcp { near, .. } => near,
        Transport::Unix => None,
    };
    // Of a forwarder of connections, it is that to which the client connects.
    let is_own = |name: &str| {
        let address = name.parse::<IpAddr>().map(|it| it.to_canonical());
        name.eq_ignore_ascii_case("localhost")
            || address.is_ok_and(|it| it.is_loopback() || Some(it) == own)
    };
    OF_PROXIES.iter().all(|name| !headers.contains_key(*name))
        && host_of(uri, headers).is_some_and(|host| is_own(name_of(host)))
}

fn host_of<'a>(uri: &'a Uri, headers: &'a HeaderMap) -> Option<&'a str> {
    let mut hosts = headers.get_all(HOST).iter();
    let only = hosts.next()?.to_str().ok()?;
    // Several `Host` headers are ambiguous.
    let same = |authority: &axum::http::uri::Authority| authority.as_str() == only;
    (hosts.next().is_none() && uri.authority().is_none_or(same)).then_some(only)
}

/// Returns the name in `NAME:PORT`.
fn name_of(host: &str) -> &str {
    if let Some(rest) = host.strip_prefix('[') {
        return rest.split_once(']').map_or("", |(address, _)| address);
    }
    host.split_once(':').map_or(host, |(name, _)| name)
}

fn is_allowed(name: &str, names: &[String]) -> bool {
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<IpAddr>().is_ok()
        || names
            .iter()
            .any(|allowed| allowed.eq_ignore_ascii_case(name))
}

/// Returns `true` if the origin has this host and port. A browser leaves out the usual port of a scheme, and a proxy may
/// add it.
fn is_same(origin: &str, host: &str) -> bool {
    [("http://", ":80"), ("https://", ":443")]
        .into_iter()
        .any(|(scheme, port)| {
            let of = origin.strip_prefix(scheme).unwrap_or_default();
            let [of, host] = [of, host].map(|name| name.strip_suffix(port).unwrap_or(name));
            !of.is_empty() && of.eq_ignore_ascii_case(host)
        })
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderName;

    use super::*;

    #[test]
    fn only_own_names_and_addresses_are_hosts() {
        let own = ["box.example".to_owned()];
        for (host, allowed) in [
            ("127.0.0.1:7420", true),
            ("localhost", true),
            ("LOCALHOST:1", true),
            ("[::1]:7420", true),
            ("192.168.1.5", true),
            ("box.example:443", true),
            ("evil.example", false),
            ("127.0.0.1.evil.example", false),
            ("localhost.evil.example:7420", false),
            ("[::1", false),
            ("", false),
            ("127.0.0.1@evil.example", false),
        ] {
            assert_eq!(is_allowed(name_of(host), &own), allowed, "{host}");
        }
    }

    #[test]
    fn client_is_near_only_without_a_proxy_in_between() {
        let is_near = |is_near: bool, headers: &[(&'static str, &str)]| {
            let headers = headers
                .iter()
                .map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap()));
            let near = is_near.then(|| "192.0.2.1".parse().unwrap());
            let transport = Transport::Tcp { port: 1, near };
            super::is_near(transport, &Uri::from_static("/"), &headers.collect())
        };
        assert!(is_near(true, &[("host", "127.0.0.1:7420")]));
        assert!(is_near(true, &[("host", "LOCALHOST:7420")]));
        assert!(is_near(true, &[("host", "[::1]:7420")]));
        assert!(!is_near(false, &[("host", "127.0.0.1:7420")]));
        assert!(is_near(true, &[("host", "192.0.2.1:7420")]));
        // As behind a forwarder of connections.
        assert!(!is_near(true, &[("host", "203.0.113.7:8080")]));
        // As behind nginx that passes the name on.
        assert!(!is_near(true, &[("host", "box.example")]));
        for name in OF_PROXIES {
            let headers = [("host", "127.0.0.1:7420"), (name, "203.0.113.7")];
            assert!(!is_near(true, &headers), "{name}");
        }
    }

    #[test]
    fn an_origin_is_the_same_if_its_host_and_port_are() {
        for (origin, same) in [
            ("http://127.0.0.1:7420", true),
            ("https://127.0.0.1:7420", true),
            ("http://127.0.0.1:7421", false),
            ("http://127.0.0.1", false),
            ("http://evil.example", false),
            ("null", false),
            ("", false),
            ("file://127.0.0.1:7420", false),
        ] {
            assert_eq!(is_same(origin, "127.0.0.1:7420"), same, "{origin}");
        }
        // As nginx passes on `$host:$server_port`.
        for (origin, host, same) in [
            ("https://box.example", "box.example:443", true),
            ("http://box.example", "box.example:80", true),
            ("https://box.example:443", "box.example", true),
            ("http://[::1]", "[::1]:80", true),
            ("http://box.example", "box.example:443", false),
            ("https://box.example", "box.example:80", false),
            ("https://box.example", "box.example:8443", false),
            ("https://", "", false),
        ] {
            assert_eq!(is_same(origin, host), same, "{origin} {host}");
        }
    }
}
