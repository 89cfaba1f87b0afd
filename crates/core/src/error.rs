//! Errors: a stable code that says where it came from, a kind that says what to do next.

use serde::{Deserialize, Serialize};

/// Something that went wrong in a run.
///
/// It is both the payload of an `error` event and an ordinary [`std::error::Error`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[error("{message}")]
pub struct AgentError {
    /// What happened, for a person, with the next step where there is one.
    pub message: String,
    /// Where the error was found.
    pub code: ErrorCode,
    /// What the error means: the basis for retry, fallback or giving up.
    pub kind: ErrorKind,
    /// Whether the same request may succeed when it is made again.
    pub retryable: bool,
    /// How long to wait before that, in milliseconds, where the service said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// When a limit resets, in milliseconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resets_at: Option<u64>,
}

impl AgentError {
    /// An error that is retryable if its kind usually is ([`ErrorKind::is_retryable`]).
    pub fn new(code: ErrorCode, kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            code,
            kind,
            retryable: kind.is_retryable(),
            retry_after_ms: None,
            resets_at: None,
        }
    }

    /// A parameter that cannot be honoured: [`ErrorCode::InvalidParams`], [`ErrorKind::Invalid`].
    pub fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::InvalidParams, ErrorKind::Invalid, message)
    }
}

/// Where an error was found. The names are stable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[non_exhaustive]
pub enum ErrorCode {
    /// The CLI's program is missing or cannot be executed.
    CliNotFound,
    /// The CLI failed and said why on stderr.
    CliStderr,
    /// The CLI failed without a word: an exit code or a signal is all there is.
    CliExitError,
    /// The CLI reported the error itself, in its event stream.
    CliError,
    /// No line came within the start-up limit.
    StartupTimeout,
    /// No line came for longer than the limit of the phase.
    WatchdogTimeout,
    /// The caller stopped the run.
    Aborted,
    /// A parameter is wrong, or this provider cannot honour it.
    InvalidParams,
    /// The prompt, or another argument, is larger than the system or the CLI accepts.
    PromptTooLarge,
    /// The output ended without the CLI's own end of the run.
    StreamEndedEarly,
    /// More output waits for the consumer than memory and disk may hold.
    OutputLimit,
    /// A configuration file could not be leased or restored.
    ConfigLease,
    /// The process could not be started or read, for a reason of this machine.
    Io,
    /// A budget for the whole run is spent, and the run was stopped for it.
    BudgetExceeded,
    /// The run was not begun, because the provider's limit has been reached by others.
    ProviderOnHold,
}

/// What an error means for what to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ErrorKind {
    /// Credentials are missing, wrong or not allowed to do this.
    Auth,
    /// Throttled: wait for `retry_after_ms`.
    RateLimit,
    /// Exhausted until `resets_at`, or until somebody pays.
    Quota,
    /// The service is overloaded or failing.
    Overloaded,
    /// The service cannot be reached, or the connection broke.
    Network,
    /// The conversation does not fit in the model's context window.
    ContextWindow,
    /// The model does not exist or is not available to this account.
    ModelNotFound,
    /// The session to resume does not exist.
    SessionNotFound,
    /// Something was not permitted.
    Permission,
    /// A budget that the caller set is spent.
    Budget,
    /// The limit of turns that the caller set is reached.
    MaxTurns,
    /// An MCP server failed.
    Mcp,
    /// A limit of time was reached.
    Timeout,
    /// The run was stopped.
    Aborted,
    /// A program or a file is missing.
    NotFound,
    /// The request is wrong and will stay wrong.
    Invalid,
    /// The CLI or the service said something that cannot be understood, or stopped half-way.
    Protocol,
    /// Anything else, also what only a newer version knows.
    #[serde(other)]
    Internal,
}

impl ErrorKind {
    /// Whether an error of this kind usually goes away when the request is made again.
    ///
    /// ```
    /// use teamster_core::ErrorKind;
    /// assert!(ErrorKind::Overloaded.is_retryable());
    /// assert!(!ErrorKind::Auth.is_retryable());
    /// ```
    pub fn is_retryable(self) -> bool {
        matches!(
            self,
            Self::RateLimit | Self::Overloaded | Self::Network | Self::Timeout | Self::Protocol
        )
    }
}
