//! A server on the standard streams of a command on another machine, over `ssh`.
//!
//! All requests of a client share one connection: HTTP/2, because a log is followed while other requests are sent, and
//! each further `ssh` would log in again.

mod process;
mod target;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::sync::Mutex;
use tokio::time::timeout;

use crate::address::{ConnectError, reason};
use process::{Failures, Process};
pub(crate) use target::Target;

/// The time limit of a connection at which `ssh` may ask a person.
const ASKING_LIMIT: Duration = Duration::from_mins(3);
/// The time limit of any other connection. A login by way of other machines takes a while.
const CONNECT_LIMIT: Duration = Duration::from_secs(30);
/// The time without data after which a sign of life is requested of the other side.
const PING_INTERVAL: Duration = Duration::from_secs(15);
/// The time limit of that sign.
const PING_LIMIT: Duration = Duration::from_secs(20);
/// The bytes of one response that are on their way at most, while its reader is slow.
const STREAM_WINDOW: u32 = 1 << 20;
/// The same of all responses: so large that those of slow readers never hold up the others.
const CONNECTION_WINDOW: u32 = (1 << 31) - 1;

/// Sends requests over a connection.
pub(crate) type Sender = http2::SendRequest<Full<Bytes>>;

/// Command line of `ssh`.
#[derive(Debug, Clone, Default)]
pub(crate) struct Settings {
    /// A command of the shell in place of `ssh`.
    pub(crate) command: Option<String>,
    /// `ssh` may ask the person at the terminal.
    pub(crate) asks: bool,
}

/// A server behind `ssh`, with the connection that all requests share.
pub(crate) struct Ssh {
    target: Target,
    settings: Settings,
    connection: Mutex<Shared>,
    /// The number of attempts that have ended.
    attempts: AtomicU64,
    failures: Failures,
    /// A connection was made before, so a person expects no questions any more.
    has_connected: AtomicBool,
}

/// Outcome of the last attempt to connect.
#[derive(Default)]
struct Shared {
    sender: Option<Sender>,
    error: Option<ConnectError>,
}

teamster_core::debug_fields!(Ssh { target });

impl Ssh {
    pub(crate) fn new(target: Target, settings: Settings) -> Self {
        Self {
            target,
            settings,
            connection: Mutex::default(),
            attempts: AtomicU64::default(),
            failures: Failures::default(),
            has_connected: AtomicBool::default(),
        }
    }

    /// Returns the same server with changed settings, without a connection.
    pub(crate) fn with(&self, change: impl FnOnce(&mut Settings)) -> Self {
        let mut settings = self.settings.clone();
        change(&mut settings);
        Self::new(self.target.clone(), settings)
    }

    /// Returns what `ssh` last reported, if it did, to be added to the error of a connection that broke.
    pub(crate) fn failure(&self) -> Option<String> {
        self.failures.last()
    }

    /// Returns the connection. Makes it if there is none, or if it has broken. Requests that wait for one attempt share what
    /// it comes to: `ssh` asks a person once. Cancel-safe.
    pub(crate) async fn connection(&self) -> Result<Sender, ConnectError> {
        let known = self.attempts.load(Ordering::Acquire);
        let mut connection = self.connection.lock().await;
        if let Some(sender) = &connection.sender
            && !sender.is_closed()
        {
            return Ok(sender.clone());
        }
        if self.attempts.load(Ordering::Acquire) > known
            && let Some(error) = &connection.error
        {
            return Err(error.clone());
        }
        connection.sender = None;
        let is_asking = self.settings.asks && !self.has_connected.load(Ordering::Relaxed);
        let limit = if is_asking {
            ASKING_LIMIT
        } else {
            CONNECT_LIMIT
        };
        let connected = timeout(limit, self.connect(is_asking)).await;
        let connected = connected
            .map_err(|_| ConnectError::from(format!("no connection within {limit:?}")))
            .flatten();
        connection.sender = connected.as_ref().ok().cloned();
        connection.error = connected.as_ref().err().cloned();
        self.attempts.fetch_add(1, Ordering::Release);
        if connected.is_ok() {
            self.has_connected.store(true, Ordering::Relaxed);
        }
        connected
    }

    async fn connect(&self, is_asking: bool) -> Result<Sender, ConnectError> {
        let command = self.settings.command.as_deref();
        let arguments = self.target.arguments(is_asking);
        let process = Process::start(command, &arguments, &self.failures)?;
        let process = process.greeted().await?;
        let mut builder = http2::Builder::new(TokioExecutor::new());
        builder
            .timer(TokioTimer::new())
            .keep_alive_interval(PING_INTERVAL)
            .keep_alive_timeout(PING_LIMIT)
            .keep_alive_while_idle(true)
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW);
        let (sender, connection) = builder
            .handshake(TokioIo::new(process))
            .await
            .map_err(|error| ConnectError::from(reason(&error)))?;
        // It ends with the process, or once nothing sends requests any more. Responses report its errors.
        tokio::spawn(connection);
        Ok(sender)
    }
}
