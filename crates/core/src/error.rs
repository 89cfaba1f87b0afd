//! Errors: a stable code for the origin, and a kind for the recommended reaction.

mod detail;
#[cfg(test)]
mod tests;

use std::error::Error;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

pub use detail::{BudgetKind, ErrorDetail, NotRetried};

use crate::setters::setters;

/// An error of a run: the payload of an `error` event, and a [`std::error::Error`].
///
/// The message is for people; programs decide by the other fields.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct AgentError {
    /// Description for a person, with the next step where there is one.
    pub message: String,
    /// Origin of the error.
    #[serde(default)]
    pub code: ErrorCode,
    /// Classification: the basis for retry, fallback or giving up.
    pub kind: ErrorKind,
    /// True if the same request may succeed when repeated.
    pub retryable: bool,
    /// Backoff before a retry in milliseconds, if the service gave one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// Time at which a limit resets, in milliseconds since the Unix epoch.
    #[serde(rename = "resetsAt", default, skip_serializing_if = "Option::is_none")]
    pub resets_at_ms: Option<u64>,
    /// Details as data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<Box<ErrorDetail>>,
    /// The underlying error: that of the last attempt, or the one that put a provider on hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Box<AgentError>>,
    /// Shared by the copies of an error.
    #[serde(skip)]
    pub(crate) identity: Identity,
}

/// Identity of an error within this process. It is no part of the content that `==` compares.
#[derive(Clone, Copy)]
pub(crate) struct Identity(u64);

impl Default for Identity {
    fn default() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

impl PartialEq for Identity {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("_")
    }
}

setters! {
    #[doc(hidden)]
    AgentError {
        into message: String,
        set code: ErrorCode,
        set kind: ErrorKind,
        set retryable: bool,
        option retry_after_ms: u64,
        option resets_at_ms: u64,
    }
}

impl fmt::Display for AgentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

// Not derived: the source is to be an `AgentError`, not the box around it.
impl Error for AgentError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.cause.as_deref().map(|cause| cause as _)
    }
}

impl AgentError {
    /// Creates an error that is retryable if its kind is ([`ErrorKind::is_retryable`]).
    pub fn new(code: ErrorCode, kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            code,
            kind,
            retryable: kind.is_retryable(),
            retry_after_ms: None,
            resets_at_ms: None,
            detail: None,
            cause: None,
            identity: Identity::default(),
        }
    }

    /// Returns whether both are the same error: one is a copy of the other, even if it was changed since. Two errors
    /// of equal content are not, and nor is one that was deserialized.
    ///
    /// ```
    /// use teamster_core::{AgentError, ErrorCode, ErrorKind};
    ///
    /// let lost = || AgentError::new(ErrorCode::CliError, ErrorKind::Network, "connection lost");
    /// let (first, second) = (lost(), lost());
    /// assert!(first == second && !first.is_same(&second));
    /// assert!(first.is_same(&first.clone().retryable(false)));
    /// ```
    pub fn is_same(&self, other: &Self) -> bool {
        self.identity.0 == other.identity.0
    }

    /// Creates the error of an unsupported request: [`ErrorCode::InvalidParams`], [`ErrorKind::Invalid`]. If one
    /// parameter is wrong, use [`refused`](Self::refused).
    pub fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::InvalidParams, ErrorKind::Invalid, message)
    }

    /// Creates the error of a refused parameter, by its name in [`ExecuteParams`](crate::ExecuteParams):
    /// [`ErrorCode::InvalidParams`], [`ErrorKind::Invalid`] and [`ErrorDetail::Parameter`].
    ///
    /// ```
    /// use teamster_core::AgentError;
    ///
    /// let error = AgentError::refused("max_turns", "it must be at least 1");
    /// assert_eq!(error.message, "max_turns: it must be at least 1");
    /// assert_eq!(error.parameter(), Some("max_turns"));
    /// ```
    pub fn refused(parameter: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::refused_at(parameter.into(), None, problem.into())
    }

    /// Creates the error of a refused MCP server in [`mcp_servers`](crate::ExecuteParams).
    pub fn refused_server(server: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::refused_item("mcp_servers", server, problem)
    }

    /// Creates the error of a refused item of a list, such as a variable of [`env`](crate::ExecuteParams).
    pub fn refused_item(
        parameter: impl Into<String>,
        item: impl Into<String>,
        problem: impl Into<String>,
    ) -> Self {
        Self::refused_at(parameter.into(), Some(item.into()), problem.into())
    }

    fn refused_at(name: String, item: Option<String>, problem: String) -> Self {
        let message = match &item {
            Some(item) => format!("{name}: {item}: {problem}"),
            None => format!("{name}: {problem}"),
        };
        Self::invalid_params(message).detail(ErrorDetail::Parameter {
            name,
            item,
            problem,
            holder: None,
        })
    }

    /// Creates the error of [`AgentSession::steer`](crate::AgentSession::steer) while no turn is in progress:
    /// [`ErrorCode::NoTurn`], [`ErrorKind::Invalid`].
    pub fn no_turn() -> Self {
        Self::new(
            ErrorCode::NoTurn,
            ErrorKind::Invalid,
            "no turn is in progress: send the text as a turn",
        )
    }

    /// Creates the error of a session that another process works with, by the parameter that names it:
    /// [`ErrorCode::SessionInUse`], [`ErrorKind::Invalid`] and [`ErrorDetail::Parameter`]. The same request may
    /// succeed later.
    ///
    /// ```
    /// use teamster_core::{AgentError, ErrorCode};
    ///
    /// let error = AgentError::session_in_use("session_id", "run 7 works with session s1");
    /// assert_eq!((error.code, error.retryable), (ErrorCode::SessionInUse, true));
    /// assert_eq!(error.parameter(), Some("session_id"));
    /// ```
    pub fn session_in_use(parameter: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::refused(parameter, problem)
            .code(ErrorCode::SessionInUse)
            .retryable(true)
    }

    /// Sets the parameter that the message is about: [`ErrorDetail::Parameter`].
    #[must_use]
    pub fn about(self, parameter: impl Into<String>) -> Self {
        let problem = self.message.clone();
        self.detail(ErrorDetail::Parameter {
            name: parameter.into(),
            item: None,
            problem,
            holder: None,
        })
    }

    /// Sets the run that holds what the refused parameter names. An error that is about no parameter stays as it is.
    ///
    /// ```
    /// use teamster_core::AgentError;
    ///
    /// let error = AgentError::session_in_use("session_id", "run 7 works with session s1");
    /// assert_eq!(error.held_by("7").holder(), Some("7"));
    /// ```
    #[must_use]
    pub fn held_by(mut self, run_id: impl Into<String>) -> Self {
        if let Some(ErrorDetail::Parameter { holder, .. }) = self.detail.as_deref_mut() {
            *holder = Some(run_id.into());
        }
        self
    }

    /// Sets the subject of the error.
    #[doc(hidden)]
    #[must_use]
    pub fn detail(mut self, detail: ErrorDetail) -> Self {
        self.detail = Some(Box::new(detail));
        self
    }

    /// Sets the underlying error.
    #[doc(hidden)]
    #[must_use]
    pub fn cause(mut self, cause: AgentError) -> Self {
        self.cause = Some(Box::new(cause));
        self
    }

    /// Returns the name of the refused parameter.
    pub fn parameter(&self) -> Option<&str> {
        match self.detail.as_deref() {
            Some(ErrorDetail::Parameter { name, .. }) => Some(name),
            _ => None,
        }
    }

    /// Returns the id of the run that holds what the refused parameter names, such as a session.
    pub fn holder(&self) -> Option<&str> {
        match self.detail.as_deref() {
            Some(ErrorDetail::Parameter { holder, .. }) => holder.as_deref(),
            _ => None,
        }
    }

    /// Returns the exhausted budget of the run.
    pub fn budget(&self) -> Option<BudgetKind> {
        match self.detail.as_deref() {
            Some(ErrorDetail::Budget { budget, .. }) => Some(*budget),
            _ => None,
        }
    }
}

/// Origin of an error. The names are stable.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[non_exhaustive]
pub enum ErrorCode {
    /// The CLI's program is missing or cannot be executed.
    CliNotFound,
    /// The CLI failed and gave the reason on stderr.
    CliStderr,
    /// The CLI failed without a message: only an exit code or a signal.
    CliExitError,
    /// The CLI reported the error itself, in its event stream.
    CliError,
    /// No output within the start-up limit.
    StartupTimeout,
    /// No output for longer than the limit of the phase.
    WatchdogTimeout,
    /// The caller stopped the run.
    Aborted,
    /// A parameter is wrong, or this provider cannot honour it.
    InvalidParams,
    /// The prompt, or another argument, is larger than the system or the CLI accepts.
    PromptTooLarge,
    /// The output ended without the CLI's final event.
    StreamEndedEarly,
    /// The consumer is too slow: unread output passed the limits of memory and disk.
    OutputLimit,
    /// A configuration file could not be leased or restored.
    ConfigLease,
    /// The process could not be started or read: a local failure.
    Io,
    /// A budget of the run was exhausted, so the run was stopped.
    BudgetExceeded,
    /// The process that drove the run was killed.
    Interrupted,
    /// The run did not start: the provider is on hold after other runs reached its limit.
    ProviderOnHold,
    /// A session got a message for a turn while none is in progress.
    NoTurn,
    /// The run did not start: another process works with the session that it would resume.
    SessionInUse,
    /// The commands that set the workspace up failed, so no agent was started.
    SetupFailed,
    /// Unknown, or known only to a newer version.
    #[default]
    #[serde(other)]
    Unknown,
}

/// The recommended reaction to an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ErrorKind {
    /// Credentials are missing, wrong or not allowed to do this.
    Auth,
    /// Throttled: wait for `retry_after_ms`.
    RateLimit,
    /// Exhausted until `resets_at`, or until the plan or balance changes.
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
    /// A budget set by the caller is exhausted.
    Budget,
    /// The caller's limit of turns is reached.
    MaxTurns,
    /// An MCP server failed.
    Mcp,
    /// A time limit was reached.
    Timeout,
    /// The run was stopped.
    Aborted,
    /// The process that drove the run was killed, or its machine went down. Changes made until then remain.
    Interrupted,
    /// A program or a file is missing.
    NotFound,
    /// The request is wrong, and a retry will not help.
    Invalid,
    /// Output of the CLI or service that cannot be read, or that ended too early.
    Protocol,
    /// The commands that set the workspace up failed.
    Setup,
    /// Anything else, including kinds that only a newer version knows.
    #[serde(other)]
    Internal,
}

impl ErrorKind {
    /// Returns whether an error of this kind usually disappears when the request is repeated.
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
