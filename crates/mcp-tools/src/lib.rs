//! Functions of this process as tools for its agents, by MCP over HTTP on loopback.
//!
//! A [`ToolServer`] serves the tools of any [`ServerHandler`], which the macros of `rmcp` (`#[tool_router]`, `#[tool]`)
//! make of a type's functions; an application depends on `rmcp` 3 with the features `macros` and `server` for them. The
//! server goes into [`ExecuteParams::mcp_servers`](teamster_core::ExecuteParams) like any other, so every agent that
//! takes servers over HTTP ([`McpSupport`](teamster_core::McpSupport)) can call them.
#![warn(missing_docs)]

use std::convert::Infallible;
use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt;
use http_body_util::combinators::BoxBody;
use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, HeaderValue, WWW_AUTHENTICATE};
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use teamster_core::McpServer;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::sleep;
use uuid::Uuid;

/// The time limit for a request's head, including the wait for its first byte: other users can connect as well.
const HEAD_LIMIT: Duration = Duration::from_secs(30);
/// The pause after `accept` failed, for example without free file descriptors.
const PAUSE: Duration = Duration::from_millis(100);

type Tools<H> = TowerToHyperService<StreamableHttpService<H, LocalSessionManager>>;

/// Tools of this process for its agents. Dropping it ends the server and all calls.
#[derive(Debug)]
#[must_use = "dropping it ends the server"]
pub struct ToolServer {
    server: McpServer,
    listener: AbortHandle,
}

impl ToolServer {
    /// Starts to serve the tools of `handler` on a free port of 127.0.0.1, as a task of the Tokio runtime. Each session
    /// of a client gets a clone of the handler.
    ///
    /// Other users of the machine can reach the port, but are refused without the token.
    ///
    /// # Errors
    ///
    /// Fails if no port can be bound.
    ///
    /// # Panics
    ///
    /// Panics outside of a Tokio runtime with I/O and time.
    pub async fn start<H: ServerHandler + Clone>(
        name: impl Into<String>,
        handler: H,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let url = format!("http://{}/mcp", listener.local_addr()?);
        let token = format!(
            "Bearer {}{}",
            Uuid::new_v4().simple(),
            Uuid::new_v4().simple()
        );
        let server = McpServer::http(name, url).header("Authorization", token.as_str());
        let tools = StreamableHttpService::new(
            move || Ok(handler.clone()),
            Arc::<LocalSessionManager>::default(),
            StreamableHttpServerConfig::default(),
        );
        let tools = TowerToHyperService::new(tools);
        let serving = tokio::spawn(serve(listener, tools, token.into()));
        Ok(Self {
            server,
            listener: serving.abort_handle(),
        })
    }

    /// Returns the server for [`ExecuteParams::mcp_servers`](teamster_core::ExecuteParams), with its token.
    pub fn server(&self) -> McpServer {
        self.server.clone()
    }
}

impl Drop for ToolServer {
    fn drop(&mut self) {
        self.listener.abort();
    }
}

async fn serve<H: ServerHandler>(listener: TcpListener, tools: Tools<H>, token: Arc<str>) {
    // Connections end with the listener.
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                if let Ok((stream, _)) = accepted {
                    connections.spawn(connection(stream, tools.clone(), token.clone()));
                } else {
                    sleep(PAUSE).await;
                }
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn connection<H: ServerHandler>(stream: TcpStream, tools: Tools<H>, token: Arc<str>) {
    let service = service_fn(move |request: Request<Incoming>| {
        let tools = tools.clone();
        let is_allowed = has_token(request.headers().get(AUTHORIZATION), &token);
        async move {
            if is_allowed {
                tools.call(request).await
            } else {
                Ok(unauthorized())
            }
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_LIMIT)
        .serve_connection(TokioIo::new(stream), service);
    // The client has disconnected, sent what is no HTTP, or nothing.
    let _ = connection.await;
}

/// Compares all bytes, so that the time does not depend on where they differ.
fn has_token(given: Option<&HeaderValue>, token: &str) -> bool {
    let given = given.map_or(&[][..], HeaderValue::as_bytes);
    let differences = given
        .iter()
        .zip(token.as_bytes())
        .fold(0, |all, (a, b)| all | (a ^ b));
    given.len() == token.len() && differences == 0
}

fn unauthorized() -> Response<BoxBody<Bytes, Infallible>> {
    let mut response = Response::new(http_body_util::Empty::new().boxed());
    *response.status_mut() = StatusCode::UNAUTHORIZED;
    let scheme = HeaderValue::from_static("Bearer");
    response.headers_mut().insert(WWW_AUTHENTICATE, scheme);
    response
}

/// Compiles and runs the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(test)]
mod tests;
