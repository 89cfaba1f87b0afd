#![doc = include_str!("../README.md")]
#![warn(missing_docs)]

mod address;
mod call;
mod changes;
mod error;
mod follow;
mod http;
mod machine;
mod patience;
mod results;
mod runs;
mod service;
mod sessions;
mod sse;
mod ssh;
mod uploads;

use std::sync::Arc;
use std::time::Duration;

use hyper::header::HeaderValue;

pub use changes::Changes;
pub use error::{ClientError, ClientErrorKind};
pub use follow::Follow;
pub use machine::HistoryQuery;
pub use patience::ConnectionChange;
pub use sessions::{SessionChange, StartedTurn};

/// A client of one server. Cheap to clone.
///
/// Every call fails if the server refuses it, or cannot be reached. Those that are repeated by themselves fail if it
/// cannot be reached for too long.
#[derive(Debug, Clone)]
pub struct Client {
    http: Arc<http::Http>,
}

impl Client {
    /// Creates a client of the server at this URL: `https://HOST`, `http://127.0.0.1:7420` or `unix:/path`. It may be
    /// below a path of a host. Only a Unix socket needs no token.
    ///
    /// `ssh:HOST` and `ssh://USER@HOST:PORT` need neither a server nor a token: `ssh` starts the program `teamster` on
    /// that machine for this client, with the configuration and the keys of the user. A path behind the host is that of
    /// the program, with `~/` for the home folder there (`ssh:HOST/~/bin/teamster`). All requests share one connection.
    ///
    /// # Errors
    ///
    /// Fails if the URL or the token cannot be used, or the certificates of the system cannot be read.
    pub fn new(url: &str, token: Option<&str>) -> Result<Self, ClientError> {
        let http = Arc::new(http::Http::new(url, token)?);
        Ok(Self { http })
    }

    /// Sets the time without a server after which a stream or a start fails. Default: 10 minutes.
    #[must_use]
    pub fn with_reconnect_limit(mut self, limit: Duration) -> Self {
        Arc::make_mut(&mut self.http).limits.reconnect = limit;
        self
    }

    /// Sets the time without a byte after which a stream counts as broken. Default: 45 s, three heartbeats.
    #[must_use]
    pub fn with_silence_limit(mut self, limit: Duration) -> Self {
        Arc::make_mut(&mut self.http).limits.silence = limit;
        self
    }

    /// Sets the time limit for the head of a response, and the same again for its body. Default: 60 s.
    #[must_use]
    pub fn with_response_limit(mut self, limit: Duration) -> Self {
        Arc::make_mut(&mut self.http).limits.response = limit;
        self
    }

    /// Sets the place of the requests in a trace: the values of the headers `traceparent` and `tracestate` of the W3C. A server
    /// that lets runs set `TRACEPARENT` places the runs there that this client starts. A value that no header can have is
    /// left out.
    #[must_use]
    pub fn with_trace(mut self, parent: &str, state: Option<&str>) -> Self {
        let headers = [("traceparent", Some(parent)), ("tracestate", state)];
        let headers = headers
            .into_iter()
            .filter_map(|(name, value)| Some((name, HeaderValue::from_str(value?).ok()?)));
        Arc::make_mut(&mut self.http).trace = headers.collect();
        self
    }

    /// Sets a callback for changes of the connection: it is lost for some seconds, or back. It must not block.
    #[must_use]
    pub fn on_connection_change(
        mut self,
        observer: impl Fn(ConnectionChange<'_>) + Send + Sync + 'static,
    ) -> Self {
        Arc::make_mut(&mut self.http).observer = Some(Arc::new(observer));
        self
    }

    /// Sets the command that takes the place of `ssh`, as the shell reads it, such as `ssh -F config`. Its last two
    /// arguments are the machine and the command there.
    #[must_use]
    pub fn with_ssh_command(self, command: impl Into<String>) -> Self {
        let command = command.into();
        self.with_ssh(|settings| settings.command = Some(command))
    }

    /// Lets `ssh` ask the person at the terminal for a passphrase, or whether a host is the right one, at its first
    /// connection. Default: it asks nothing, and fails.
    #[must_use]
    pub fn with_questions(self, asks: bool) -> Self {
        self.with_ssh(|settings| settings.asks = asks)
    }

    fn with_ssh(mut self, change: impl FnOnce(&mut ssh::Settings)) -> Self {
        if let address::Address::Ssh(ssh) = &mut Arc::make_mut(&mut self.http).address {
            *ssh = Arc::new(ssh.with(change));
        }
        self
    }

    /// Returns the server's URL, without slashes at its end.
    pub fn url(&self) -> &str {
        self.http.url()
    }

    /// Returns whether requests, with their token, go unencrypted to another machine.
    pub fn is_unencrypted(&self) -> bool {
        self.http.is_unencrypted()
    }
}
