//! Errors of the API: problem details (RFC 9457) with a stable code.

use serde::{Deserialize, Serialize};

use crate::RefusalCode;

/// An error of the API: problem details of RFC 9457.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[non_exhaustive]
pub struct Problem {
    /// Always `about:blank`; `code` has the error type.
    pub r#type: String,
    /// The reason phrase of the status.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// The error code, for programs.
    pub code: ProblemCode,
    /// The error message, for people.
    pub detail: String,
    /// The field that was refused, with which `detail` begins; absent if the error is about none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameter: Option<String>,
}

/// A stable error code of the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[non_exhaustive]
pub enum ProblemCode {
    /// 401: the token is missing or not valid.
    Unauthorized,
    /// 403: the token lacks the scope.
    InsufficientScope,
    /// 421: the `Host` header has a name that the server does not allow.
    HostNotAllowed,
    /// 403: the request comes from a page of another origin.
    OriginNotAllowed,
    /// 403: the server or the token does not allow the permission `bypass`.
    BypassNotAllowed,
    /// 403: the server does not allow agents that are named by a command.
    CommandNotAllowed,
    /// 404: there is no such path.
    NotFound,
    /// 405: the path does not have this method.
    MethodNotAllowed,
    /// 404: no run has this id.
    RunNotFound,
    /// 409: the id prefix matches several runs.
    RunIdAmbiguous,
    /// 409: a run with this id exists.
    RunExists,
    /// 409: the run has ended.
    RunEnded,
    /// 409: the run has not ended.
    RunLive,
    /// 404: the run has no file or part with this name.
    FileNotFound,
    /// 422: a part of a file is not the one of the manifest.
    FileDamaged,
    /// 409: the run has no workspace of its own, or nothing is left of it.
    NoWorkspace,
    /// 409: the changes of the run do not fit the files that are to take them, or the workspace was changed since the end of
    /// the run. Nothing was done.
    ChangesConflict,
    /// 507: the files that runs take along have reached the limit of the machine.
    OverQuota,
    /// 404: no session has this id.
    SessionNotFound,
    /// 409: a turn of the session is in progress.
    SessionBusy,
    /// 409: another process works with the agent's session, or begins that of the key.
    SessionInUse,
    /// 409: no turn of the session is in progress.
    NoTurn,
    /// 409: the session is ending.
    SessionEnding,
    /// 409: the budget of the session in USD, tokens or turns is spent.
    OverBudget,
    /// 409: the time budget of the session is spent.
    OutOfTime,
    /// 404: no request has this id.
    RequestNotFound,
    /// 409: the request was already answered or withdrawn.
    AlreadyAnswered,
    /// 422: the answer does not fit the request.
    InvalidAnswer,
    /// 422: the key was used with another body.
    IdempotencyKeyReused,
    /// 400: the body is not JSON, or incomplete.
    InvalidBody,
    /// 422: a field or parameter is not valid.
    InvalidParams,
    /// 413: the body is too large.
    BodyTooLarge,
    /// 408: the body did not arrive in time.
    BodyTimeout,
    /// 415: the body is not declared as JSON.
    UnsupportedMediaType,
    /// 404: no agent has this id.
    AgentNotFound,
    /// 409: the supervisor refused the command.
    AgentRefused,
    /// 503: no supervisor is running.
    SupervisorNotRunning,
    /// 503: the run's runner does not reply.
    RunnerNotResponding,
    /// 503: all connections are in use.
    TooManyConnections,
    /// 409: the streams of the fleet were not made.
    FleetNotInitialized,
    /// 409: the service, or the runner, cannot do this.
    Unsupported,
    /// 500: the server failed.
    Internal,
}

impl ProblemCode {
    /// Returns the HTTP status of the code.
    pub fn status(self) -> u16 {
        match self {
            Self::Unauthorized => 401,
            Self::InsufficientScope
            | Self::OriginNotAllowed
            | Self::BypassNotAllowed
            | Self::CommandNotAllowed => 403,
            Self::HostNotAllowed => 421,
            Self::NotFound
            | Self::RunNotFound
            | Self::FileNotFound
            | Self::SessionNotFound
            | Self::RequestNotFound
            | Self::AgentNotFound => 404,
            Self::MethodNotAllowed => 405,
            Self::RunIdAmbiguous
            | Self::RunExists
            | Self::RunEnded
            | Self::RunLive
            | Self::SessionBusy
            | Self::SessionInUse
            | Self::NoTurn
            | Self::SessionEnding
            | Self::OverBudget
            | Self::OutOfTime
            | Self::AlreadyAnswered
            | Self::AgentRefused
            | Self::NoWorkspace
            | Self::ChangesConflict
            | Self::FleetNotInitialized
            | Self::Unsupported => 409,
            Self::InvalidAnswer
            | Self::IdempotencyKeyReused
            | Self::InvalidParams
            | Self::FileDamaged => 422,
            Self::InvalidBody => 400,
            Self::BodyTooLarge => 413,
            Self::BodyTimeout => 408,
            Self::UnsupportedMediaType => 415,
            Self::SupervisorNotRunning | Self::RunnerNotResponding | Self::TooManyConnections => {
                503
            }
            Self::OverQuota => 507,
            Self::Internal => 500,
        }
    }

    /// Returns whether the same request can succeed later.
    pub fn is_retryable(self) -> bool {
        matches!(self.status(), 408 | 503)
    }

    /// Returns the reason phrase of the status, as in RFC 9110.
    fn title(self) -> &'static str {
        match self.status() {
            400 => "Bad Request",
            401 => "Unauthorized",
            403 => "Forbidden",
            404 => "Not Found",
            405 => "Method Not Allowed",
            408 => "Request Timeout",
            409 => "Conflict",
            413 => "Payload Too Large",
            415 => "Unsupported Media Type",
            421 => "Misdirected Request",
            422 => "Unprocessable Entity",
            503 => "Service Unavailable",
            507 => "Insufficient Storage",
            _ => "Internal Server Error",
        }
    }
}

impl Problem {
    /// Creates a problem with the status and title of its code.
    pub fn new(code: ProblemCode, detail: impl Into<String>) -> Self {
        Self {
            r#type: "about:blank".to_owned(),
            title: code.title().to_owned(),
            status: code.status(),
            code,
            detail: detail.into(),
            parameter: None,
        }
    }
}

impl From<RefusalCode> for ProblemCode {
    fn from(code: RefusalCode) -> Self {
        match code {
            RefusalCode::AlreadyAnswered => Self::AlreadyAnswered,
            RefusalCode::UnknownRequest => Self::RequestNotFound,
            RefusalCode::InvalidAnswer => Self::InvalidAnswer,
            RefusalCode::Busy => Self::SessionBusy,
            RefusalCode::NoTurn => Self::NoTurn,
            RefusalCode::Ending => Self::SessionEnding,
            RefusalCode::OverBudget => Self::OverBudget,
            RefusalCode::OutOfTime => Self::OutOfTime,
            RefusalCode::KeyReused => Self::IdempotencyKeyReused,
            RefusalCode::Unsupported | RefusalCode::Other => Self::Unsupported,
        }
    }
}
