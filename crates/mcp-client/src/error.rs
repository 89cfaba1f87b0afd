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
    /// `initialize`: the first one.
    Initialize,
    /// `server/discover`, and `initialize` where a server does not know that.
    Discover,
    /// `tools/list`.
    ListTools,
    /// `tools/call`.
    CallTool,
}

impl Method {
    /// Its name in the protocol.
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

/// Error of a server or a request. "It" in the texts is the server.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// It is reached by HTTP with server-sent events, the transport before Streamable HTTP.
    #[error("the transport `sse` is not supported: use `http` if the server has it")]
    UnsupportedTransport,
    /// A header that HTTP does not allow, or that the transport sets itself.
    #[error("headers: {name} cannot be set")]
    InvalidHeader {
        /// Its name.
        name: String,
    },
    /// There is no connection to its address.
    #[error("it cannot be reached: {message}")]
    Unreachable {
        /// The reason: name resolution, connection, or TLS.
        message: String,
    },
    /// It requires credentials, or more than those it got.
    #[error("it refused the credentials (HTTP {status}): set a token in its `headers`")]
    Unauthorized {
        /// 401 without valid credentials, 403 without the needed rights.
        status: u16,
    },
    /// Its HTTP response is not one of the protocol.
    #[error("`{method}` failed: {message}")]
    Http {
        /// The request.
        method: Method,
        /// The status and the beginning of the body, in one line and shortened.
        message: String,
    },
    /// Its `cwd` is no directory.
    #[error("cwd: there is no directory {}", path.display())]
    NoDirectory {
        /// Where it should be.
        path: PathBuf,
    },
    /// There is no such program, or it cannot be executed.
    #[error(transparent)]
    NoProgram(Box<AgentError>),
    /// The system refused to start it.
    #[error("it cannot be started: {message}")]
    NotStarted {
        /// The reason.
        kind: io::ErrorKind,
        /// The same for a person.
        message: String,
    },
    /// It did not answer in time.
    #[error("it did not answer `{method}` within {limit:?}")]
    TimedOut {
        /// The request that was open.
        method: Method,
        /// The limit for it and what came before it.
        limit: Duration,
    },
    /// It ended, or closed its output, before it answered.
    #[error("{}", ended(*method, *status))]
    Ended {
        /// The request that was open.
        method: Method,
        /// How the process ended, if it did so by itself.
        status: Option<ExitStatus>,
    },
    /// It answered with an error.
    #[error("it answered `{method}` with the error {code}: {message}")]
    Refused {
        /// The request.
        method: Method,
        /// The code of JSON-RPC.
        code: i32,
        /// The server's words, in one line and shortened.
        message: String,
    },
    /// Its answer is not one of the protocol.
    #[error("its answer to `{method}` is not one")]
    Malformed {
        /// The request.
        method: Method,
    },
    /// Its list of tools does not come to an end.
    #[error("its list of tools has no end")]
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

    /// Whether the server ended, or answered as it should not, when it was asked which versions it speaks.
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

    /// The same without what `hide` takes out of the server's words.
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
