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
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};

use crate::{Cli, Protocol, Script};

/// Settings of the server.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Settings {
    /// The port on `127.0.0.1`. 0, the default, is any that is free.
    pub port: u16,
    /// The time between two pieces of text. 10 ms.
    pub pace: Duration,
    /// Where the agent works, for tools that take absolute paths only. Unset, paths stay as the
    /// script has them.
    pub directory: Option<PathBuf>,
    /// The CLI whose tools are called if a request does not identify its own.
    pub cli: Option<Cli>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            port: 0,
            pace: Duration::from_millis(10),
            directory: None,
            cli: None,
        }
    }
}

/// A request that the server was asked. Keys in headers are not kept.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Request {
    /// The HTTP method.
    pub method: String,
    /// The path, with its query.
    pub path: String,
    /// The protocol, if it is a request to a model.
    pub protocol: Option<Protocol>,
    /// The CLI that sent the request, if it can be identified.
    pub cli: Option<Cli>,
    /// The requested model.
    pub model: Option<String>,
    /// The turn of the conversation, from 0; absent for what the CLI asks beside it.
    pub turn: Option<usize>,
    /// Which attempt it was to get an answer for this turn, from 0.
    pub attempt: Option<u32>,
    /// The body; null if there was none or it was no JSON.
    pub body: Value,
    /// The HTTP status of the answer; 0 if there was none, because the script breaks the connection
    /// or lets it stall.
    pub status: u16,
}

/// A running server. It listens on `127.0.0.1` only. When this is dropped it ends, and so do its
/// connections, even in the middle of an answer.
pub struct MockModel {
    address: SocketAddr,
    shared: Arc<Shared>,
    task: AbortHandle,
}

/// State shared by all connections.
struct Shared {
    script: Script,
    settings: Settings,
    seen: Mutex<RequestLog>,
    /// Changes with every request.
    count: watch::Sender<usize>,
}

#[derive(Default)]
struct RequestLog {
    requests: Vec<Request>,
    /// How often each turn was requested, by conversation: that of a sub-agent, or the main one.
    attempts: HashMap<(Option<usize>, usize), u32>,
}

impl MockModel {
    /// Starts a server with the default [`Settings`], on a free port.
    ///
    /// Needs a Tokio runtime with its I/O and time drivers.
    ///
    /// # Errors
    ///
    /// There is no free port, or none may be used.
    pub async fn start(script: Script) -> io::Result<Self> {
        Self::start_with(script, Settings::default()).await
    }

    /// Starts a server.
    ///
    /// # Errors
    ///
    /// The port is taken, or may not be used. The message has the address.
    pub async fn start_with(script: Script, settings: Settings) -> io::Result<Self> {
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

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its address as a URL without a path, such as `http://127.0.0.1:8787`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// All requests until now, in the order in which they came.
    pub fn requests(&self) -> Vec<Request> {
        self.shared.seen().requests.clone()
    }

    /// The requests after the first so many, in the order in which they came.
    pub fn requests_from(&self, count: usize) -> Vec<Request> {
        let seen = self.shared.seen();
        seen.requests.get(count..).unwrap_or_default().to_vec()
    }

    /// Waits until there were at least so many requests.
    pub async fn wait_for_requests(&self, count: usize) {
        let mut counted = self.shared.count.subscribe();
        // It cannot fail: we hold the sender.
        let _ = counted.wait_for(|requests| *requests >= count).await;
    }
}

impl fmt::Debug for MockModel {
    /// Without the request: prompts are long and private.
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
        // Its connections are tasks of a set that goes with it.
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
                // Too many open files, say: some will be closed.
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn serve(stream: TcpStream, shared: Arc<Shared>) {
    // Small pieces shall arrive as such.
    let _ = stream.set_nodelay(true);
    let (alive, gone) = watch::channel(());
    let service = service_fn(move |request| {
        let shared = Arc::clone(&shared);
        let gone = gone.clone();
        async move { answer::answer(&shared, request, gone).await }
    });
    // What goes wrong with a connection is the client's to notice. The timer bounds the time in
    // which the head of a request must be there.
    let _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .serve_connection(TokioIo::new(stream), service)
        .await;
    drop(alive);
}
