use std::fmt;
use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

use rmcp::service::{ClientInitializeError, ServiceError};
use teamster_core::AgentError;

use crate::{http, output};

/// A request to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Method {
    /// `initialize`, the first request.
    Initialize,
    /// `server/discover`, or `initialize` if a server does not know it.
    Discover,
    /// `tools/list`.
    ListTools,
    /// `tools/call`.
    CallTool,
}

impl Method {
    /// Returns the name of the method in the protocol.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Initialize => "initialize",
            Self::Discover => "server/discover",
            Self::ListTools => "tools/list",
            Self::CallTool => "tools/call",
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Error of a server or a request. "It" in the messages is the server.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The server uses HTTP with server-sent events, the transport before Streamable HTTP.
    #[error("the transport `sse` is not supported: use `http` if the server has it")]
    UnsupportedTransport,
    /// A header is not valid in HTTP, or the transport sets it itself.
    #[error("headers: {name} cannot be set")]
    InvalidHeader {
        /// Name of the header.
        name: String,
    },
    /// The server cannot be reached.
    #[error("it cannot be reached: {message}")]
    Unreachable {
        /// The reason: name resolution, connection, or TLS.
        message: String,
    },
    /// The server requires credentials, or more rights than the given ones have.
    #[error("it refused the credentials (HTTP {status}): set a token in its `headers`")]
    Unauthorized {
        /// 401 without valid credentials, 403 without the needed rights.
        status: u16,
    },
    /// The HTTP response does not conform to the protocol.
    #[error("`{method}` failed: {message}")]
    Http {
        /// The request.
        method: Method,
        /// The status and the beginning of the body, in one line and shortened.
        message: String,
    },
    /// The `cwd` is not a directory.
    #[error("cwd: no such directory: {}", path.display())]
    NoDirectory {
        /// Path of the missing directory.
        path: PathBuf,
    },
    /// The program does not exist or cannot be executed.
    #[error(transparent)]
    NoProgram(Box<AgentError>),
    /// The system could not start the server.
    #[error("it cannot be started: {message}")]
    NotStarted {
        /// The reason.
        kind: io::ErrorKind,
        /// The reason as text.
        message: String,
    },
    /// The server did not answer in time.
    #[error("it did not answer `{method}` within {}s", limit.as_secs_f64())]
    TimedOut {
        /// The request that was open.
        method: Method,
        /// The limit for it and what came before it.
        limit: Duration,
    },
    /// The server ended, or closed its output, before it answered.
    #[error("{}", ended(*method, *status))]
    Ended {
        /// The request that was open.
        method: Method,
        /// Exit status, if the process ended by itself.
        status: Option<ExitStatus>,
    },
    /// The server answered with an error.
    #[error("it answered `{method}` with the error {code}: {message}")]
    Refused {
        /// The request.
        method: Method,
        /// The code of JSON-RPC.
        code: i32,
        /// The server's words, in one line and shortened.
        message: String,
    },
    /// The answer does not conform to the protocol.
    #[error("its response to `{method}` is malformed")]
    Malformed {
        /// The request.
        method: Method,
    },
    /// The list of tools does not end.
    #[error("its list of tools does not end")]
    EndlessTools,
}

fn ended(method: Method, status: Option<ExitStatus>) -> String {
    match status {
        Some(status) => format!("it ended before it answered `{method}` ({status})"),
        None => format!("it closed its output before it answered `{method}`"),
    }
}

impl ClientError {
    pub(crate) fn of_initialize(method: Method, error: ClientInitializeError) -> Self {
        match error {
            ClientInitializeError::TransportError { error, .. } => {
                http::failure(method, &*error.error).unwrap_or_else(|| Self::closed(method))
            }
            ClientInitializeError::ConnectionClosed(_) => Self::closed(method),
            ClientInitializeError::JsonRpcError(error) => Self::refused(method, &error),
            _ => Self::Malformed { method },
        }
    }

    pub(crate) fn of(method: Method, error: &ServiceError) -> Self {
        match error {
            ServiceError::McpError(error) => Self::refused(method, error),
            ServiceError::TransportSend(error) => {
                http::failure(method, &*error.error).unwrap_or_else(|| Self::closed(method))
            }
            ServiceError::TransportClosed => Self::closed(method),
            _ => Self::Malformed { method },
        }
    }

    /// Returns whether the server ended or answered incorrectly at `server/discover`.
    pub(crate) fn is_of_discover(&self) -> bool {
        matches!(
            self,
            Self::Ended { method, .. }
                | Self::Refused { method, .. }
                | Self::Malformed { method }
                | Self::Http { method, .. }
                if *method == Method::Discover
        )
    }

    fn closed(method: Method) -> Self {
        Self::Ended {
            method,
            status: None,
        }
    }

    fn refused(method: Method, error: &rmcp::ErrorData) -> Self {
        Self::Refused {
            method,
            code: error.code.0,
            message: output::text(&error.message),
        }
    }

    /// Applies `hide` to the texts of the server.
    pub(crate) fn hidden(mut self, hide: impl Fn(&str) -> String) -> Self {
        if let Self::Refused { message, .. }
        | Self::Unreachable { message }
        | Self::Http { message, .. } = &mut self
        {
            *message = hide(message);
        }
        self
    }
}
