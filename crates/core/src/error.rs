//! Errors: a stable code that says where it came from, a kind that says what to do next.

use derive_setters::Setters;
use serde::{Deserialize, Serialize};

use crate::setters::setters;

/// Something that went wrong in a run.
///
/// It is both the payload of an `error` event and an ordinary [`std::error::Error`]. The message is for
/// people; programs decide by the other fields, and never need to read it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, thiserror::Error, Setters)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[error("{message}")]
#[non_exhaustive]
pub struct AgentError {
    /// What happened, for a person, with the next step where there is one.
    #[setters(into)]
    pub message: String,
    /// Where the error was found.
    #[serde(default)]
    pub code: ErrorCode,
    /// What the error means: the basis for retry, fallback or giving up.
    pub kind: ErrorKind,
    /// Whether the same request may succeed when it is made again.
    pub retryable: bool,
    /// How long to wait before that, in milliseconds, where the service said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[setters(skip)]
    pub retry_after_ms: Option<u64>,
    /// When a limit resets, in milliseconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[setters(skip)]
    pub resets_at: Option<u64>,
    /// What the error is about, as data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[setters(skip)]
    pub detail: Option<Box<ErrorDetail>>,
    /// The error that led to this one: that of the last attempt, or the one that put a provider on hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[setters(skip)]
    pub cause: Option<Box<AgentError>>,
}

setters! { AgentError { retry_after_ms: u64, resets_at: u64 } }

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
            detail: None,
            cause: None,
        }
    }

    /// A request that cannot be honoured: [`ErrorCode::InvalidParams`], [`ErrorKind::Invalid`]. Where it
    /// is one parameter that is wrong, [`refused`](Self::refused) says which.
    pub fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::InvalidParams, ErrorKind::Invalid, message)
    }

    /// A parameter that cannot be honoured, by its name in [`ExecuteParams`](crate::ExecuteParams):
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

    /// The same for one MCP server of [`mcp_servers`](crate::ExecuteParams).
    pub fn refused_server(server: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::refused_item("mcp_servers", server, problem)
    }

    /// The same for one item of a list, such as a variable of [`env`](crate::ExecuteParams).
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
        })
    }

    /// A message to a turn ([`AgentSession::steer`](crate::AgentSession::steer)) while none is played:
    /// [`ErrorCode::NoTurn`], [`ErrorKind::Invalid`].
    pub fn no_turn() -> Self {
        Self::new(
            ErrorCode::NoTurn,
            ErrorKind::Invalid,
            "no turn is being played: send the text as a turn",
        )
    }

    /// Sets the parameter that the whole message is about: [`ErrorDetail::Parameter`].
    #[must_use]
    pub fn about(self, parameter: impl Into<String>) -> Self {
        let problem = self.message.clone();
        self.detail(ErrorDetail::Parameter {
            name: parameter.into(),
            item: None,
            problem,
        })
    }

    /// Sets what the error is about.
    #[must_use]
    pub fn detail(mut self, detail: ErrorDetail) -> Self {
        self.detail = Some(Box::new(detail));
        self
    }

    /// Sets the error that led to this one.
    #[must_use]
    pub fn cause(mut self, cause: AgentError) -> Self {
        self.cause = Some(Box::new(cause));
        self
    }

    /// The name of the parameter that was refused.
    pub fn parameter(&self) -> Option<&str> {
        match self.detail.as_deref() {
            Some(ErrorDetail::Parameter { name, .. }) => Some(name),
            _ => None,
        }
    }

    /// Which budget of the whole run is spent.
    pub fn budget(&self) -> Option<BudgetKind> {
        match self.detail.as_deref() {
            Some(ErrorDetail::Budget { budget, .. }) => Some(*budget),
            _ => None,
        }
    }
}

/// What an error is about, as data. One that only a newer version knows is read as
/// [`Other`](Self::Other).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(
    tag = "type",
    rename_all = "snake_case",
    rename_all_fields = "camelCase"
)]
#[non_exhaustive]
pub enum ErrorDetail {
    /// A parameter was refused.
    #[non_exhaustive]
    Parameter {
        /// The name in [`ExecuteParams`](crate::ExecuteParams), such as `mcp_servers`, or that of another
        /// setting, such as `provider`, `run_id` or `budget.usd`.
        name: String,
        /// Which item of a list, such as the name of an MCP server or of a variable.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        item: Option<String>,
        /// What is wrong with it, for a person: the message without these names.
        problem: String,
    },
    /// A budget of the whole run is spent, or the run cannot be held to it.
    #[non_exhaustive]
    Budget {
        /// Which one.
        budget: BudgetKind,
        /// How much it was: tokens, USD, seconds or turns.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<f64>,
    },
    /// The run ended although its policy would have tried again. `cause` is the error of the last
    /// attempt.
    #[non_exhaustive]
    NotRetried {
        /// What kept it from that.
        reason: NotRetried,
        /// The same for a person, with what to do.
        explanation: String,
    },
    /// The CLI's program is missing.
    #[non_exhaustive]
    MissingProgram {
        /// The name that was looked for.
        program: String,
        /// The command that installs it, which the message has too. Empty if none is known.
        install: String,
    },
    /// What only a newer version knows.
    #[serde(other)]
    #[cfg_attr(feature = "schema", schemars(skip))]
    Other,
}

impl ErrorDetail {
    /// A program that is missing, and the command that installs it.
    pub fn missing_program(program: impl Into<String>, install: impl Into<String>) -> Self {
        Self::MissingProgram {
            program: program.into(),
            install: install.into(),
        }
    }

    /// A budget of the whole run, and how much it was.
    pub fn budget(budget: BudgetKind, limit: Option<f64>) -> Self {
        Self::Budget { budget, limit }
    }

    /// What kept a run from another attempt.
    pub fn not_retried(reason: NotRetried, explanation: impl Into<String>) -> Self {
        Self::NotRetried {
            reason,
            explanation: explanation.into(),
        }
    }
}

/// A budget of a whole run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum BudgetKind {
    /// Time, in seconds.
    Time,
    /// Tokens of every sort together.
    Tokens,
    /// Cost in USD.
    Usd,
    /// Answers of the model.
    Turns,
    /// What only a newer version knows.
    #[serde(other)]
    #[cfg_attr(feature = "schema", schemars(skip))]
    Other,
}

/// Why a run was not tried again although its policy allows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum NotRetried {
    /// The time for attempts would be over.
    OutOfTime,
    /// No slot was free in the time for attempts.
    NoSlot,
    /// Something has been changed, or may have been, and it would be done twice.
    SideEffects,
    /// The session that was to be resumed is gone.
    SessionLost,
    /// What only a newer version knows.
    #[serde(other)]
    #[cfg_attr(feature = "schema", schemars(skip))]
    Other,
}

/// Where an error was found. The names are stable.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
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
    /// The process that had the run in hand was killed.
    Interrupted,
    /// The run was not begun, because the provider's limit has been reached by others.
    ProviderOnHold,
    /// A session was told something for a turn, and plays none.
    NoTurn,
    /// It is not known, or only to a newer version.
    #[default]
    #[serde(other)]
    Unknown,
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
    /// The process that had the run in hand was killed, or its machine went down. What was done until then is
    /// done.
    Interrupted,
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
