//! The server.

mod answer;

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use std::{fmt, io};

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};

use crate::{Cli, Protocol, Script, Tokens};

/// Settings of the server.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct MockModelSettings {
    /// The port on `127.0.0.1`. Default: 0, which is any free port.
    pub port: u16,
    /// The time between two pieces of text. Default: 10 ms.
    pub pace: Duration,
    /// Working directory of the agent, for tools that require absolute paths. If unset, paths are as in the
    /// script.
    pub directory: Option<PathBuf>,
    /// The CLI whose tools are called if a request does not identify its CLI.
    pub cli: Option<Cli>,
}

impl Default for MockModelSettings {
    fn default() -> Self {
        Self {
            port: 0,
            pace: Duration::from_millis(10),
            directory: None,
            cli: None,
        }
    }
}

/// A request that the server received. Keys in headers are not kept.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Request {
    /// The HTTP method.
    pub method: String,
    /// The path, with its query.
    pub path: String,
    /// The protocol, if it is a request to a model.
    pub protocol: Option<Protocol>,
    /// The CLI that sent the request, if identified.
    pub cli: Option<Cli>,
    /// The requested model.
    pub model: Option<String>,
    /// The turn of the conversation, from 0; `None` for requests outside of it.
    pub turn: Option<usize>,
    /// Number of the attempt for this turn, from 0.
    pub attempt: Option<u32>,
    /// The body; null if it is missing or not JSON.
    pub body: Value,
    /// The HTTP status of the answer; 0 if there was none, because the script breaks the connection or
    /// stalls.
    pub status: u16,
    /// Tokens of the model's answer; `None` if there is none, as with an error.
    pub tokens: Option<Tokens>,
    /// True if the answer breaks off before its end.
    pub breaks_off: bool,
}

impl Request {
    /// Returns the request as JSON for a log. Turns and attempts count from 1.
    pub fn to_json(&self) -> Value {
        json!({
            "method": self.method,
            "path": self.path,
            "protocol": self.protocol.map(Protocol::name),
            "cli": self.cli.map(Cli::id),
            "model": self.model,
            "turn": self.turn.map(|turn| turn + 1),
            "attempt": self.attempt.map(|attempt| attempt + 1),
            "status": self.status,
            "body": self.body,
        })
    }
}

/// A running server, which listens on `127.0.0.1` only. Dropping it ends the server and its connections
/// immediately, even during an answer.
pub struct MockModel {
    address: SocketAddr,
    shared: Arc<Shared>,
    task: AbortHandle,
}

/// State shared by all connections.
struct Shared {
    script: Script,
    settings: MockModelSettings,
    seen: Mutex<RequestLog>,
    /// Changes with every request.
    count: watch::Sender<usize>,
}

#[derive(Default)]
struct RequestLog {
    requests: Vec<Request>,
    /// Number of requests for each turn, by conversation: a sub-agent's, or the main one.
    attempts: HashMap<(Option<usize>, usize), u32>,
}

impl MockModel {
    /// Starts a server with the default [`MockModelSettings`], on a free port.
    ///
    /// It requires a Tokio runtime with its I/O and time drivers.
    ///
    /// # Errors
    ///
    /// No port is free or permitted.
    pub async fn start(script: Script) -> io::Result<Self> {
        Self::start_with(script, MockModelSettings::default()).await
    }

    /// Starts a server with these settings.
    ///
    /// # Errors
    ///
    /// The port is in use or not permitted. The message has the address.
    pub async fn start_with(script: Script, settings: MockModelSettings) -> io::Result<Self> {
        let wanted = SocketAddr::from((Ipv4Addr::LOCALHOST, settings.port));
        let listener = TcpListener::bind(wanted)
            .await
            .map_err(|error| io::Error::new(error.kind(), format!("{wanted}: {error}")))?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            script,
            settings,
            seen: Mutex::default(),
            count: watch::Sender::new(0),
        });
        let task = tokio::spawn(accept(listener, Arc::clone(&shared))).abort_handle();
        Ok(Self {
            address,
            shared,
            task,
        })
    }

    /// Returns the address of the server.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the address as a URL without a path, such as `http://127.0.0.1:8787`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns all requests until now, in the order of their arrival.
    pub fn requests(&self) -> Vec<Request> {
        self.shared.seen().requests.clone()
    }

    /// Returns the requests after the first `count`, in the order of their arrival.
    pub fn requests_from(&self, count: usize) -> Vec<Request> {
        let seen = self.shared.seen();
        seen.requests.get(count..).unwrap_or_default().to_vec()
    }

    /// Waits until there were at least this many requests.
    pub async fn wait_for_requests(&self, count: usize) {
        let mut counted = self.shared.count.subscribe();
        // This cannot fail: `self` holds the sender.
        let _ = counted.wait_for(|requests| *requests >= count).await;
    }
}

impl fmt::Debug for MockModel {
    /// Omits the requests: prompts are long and private.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MockModel")
            .field("address", &self.address)
            .field("settings", &self.shared.settings)
            .field("requests", &self.shared.seen().requests.len())
            .finish_non_exhaustive()
    }
}

impl Drop for MockModel {
    fn drop(&mut self) {
        // The server's task owns the connections' tasks.
        self.task.abort();
    }
}

impl Shared {
    fn seen(&self) -> std::sync::MutexGuard<'_, RequestLog> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(serve(stream, Arc::clone(&shared)));
                }
                // For example too many open files, of which some will be closed.
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn serve(stream: TcpStream, shared: Arc<Shared>) {
    // Small pieces are sent immediately.
    let _ = stream.set_nodelay(true);
    let (alive, gone) = watch::channel(());
    let service = service_fn(move |request| {
        let shared = Arc::clone(&shared);
        let gone = gone.clone();
        async move { answer::answer(&shared, request, gone).await }
    });
    // The client detects errors of the connection. The timer limits the time until the head of a request is
    // complete.
    let _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .serve_connection(TokioIo::new(stream), service)
        .await;
    drop(alive);
}
