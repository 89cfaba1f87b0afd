//! Errors of the API: problem details (RFC 9457) with a stable code.

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, Response, StatusCode};
use axum::response::IntoResponse;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use teamster_core::ErrorKind;
use teamster_runner::{RefusalCode, RunsError};

use crate::BackendError;

/// An error of the API: problem details of RFC 9457.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
}

/// A stable error code of the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
    /// 404: no session has this id.
    SessionNotFound,
    /// 409: a turn of the session is in progress.
    SessionBusy,
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
    /// 409: the runner does not know this command.
    Unsupported,
    /// 500: the server failed.
    Internal,
}

impl ProblemCode {
    /// Returns the HTTP status of the code.
    pub fn status(self) -> StatusCode {
        match self {
            Self::Unauthorized => StatusCode::UNAUTHORIZED,
            Self::InsufficientScope
            | Self::OriginNotAllowed
            | Self::BypassNotAllowed
            | Self::CommandNotAllowed => StatusCode::FORBIDDEN,
            Self::HostNotAllowed => StatusCode::MISDIRECTED_REQUEST,
            Self::NotFound
            | Self::RunNotFound
            | Self::SessionNotFound
            | Self::RequestNotFound
            | Self::AgentNotFound => StatusCode::NOT_FOUND,
            Self::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Self::RunIdAmbiguous
            | Self::RunExists
            | Self::RunEnded
            | Self::RunLive
            | Self::SessionBusy
            | Self::NoTurn
            | Self::SessionEnding
            | Self::OverBudget
            | Self::OutOfTime
            | Self::AlreadyAnswered
            | Self::AgentRefused
            | Self::Unsupported => StatusCode::CONFLICT,
            Self::InvalidAnswer | Self::IdempotencyKeyReused | Self::InvalidParams => {
                StatusCode::UNPROCESSABLE_ENTITY
            }
            Self::InvalidBody => StatusCode::BAD_REQUEST,
            Self::BodyTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::BodyTimeout => StatusCode::REQUEST_TIMEOUT,
            Self::UnsupportedMediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::SupervisorNotRunning | Self::RunnerNotResponding | Self::TooManyConnections => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

impl Problem {
    /// Creates a problem with the status and title of its code.
    pub fn new(code: ProblemCode, detail: impl Into<String>) -> Self {
        let status = code.status();
        Self {
            r#type: "about:blank".to_owned(),
            title: status.canonical_reason().unwrap_or_default().to_owned(),
            status: status.as_u16(),
            code,
            detail: detail.into(),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response<Body> {
        let body = serde_json::to_vec(&self).unwrap_or_default();
        let mut response = Response::new(Body::from(body));
        *response.status_mut() = self.code.status();
        let headers = response.headers_mut();
        let media = HeaderValue::from_static("application/problem+json");
        headers.insert(CONTENT_TYPE, media);
        if self.code == ProblemCode::Unauthorized {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

impl From<RunsError> for Problem {
    fn from(error: RunsError) -> Self {
        let code = match &error {
            RunsError::NotFound { id } => {
                // The text of `RunsError` suggests terminal commands.
                let detail = format!("no detached run `{id}`");
                return Self::new(ProblemCode::RunNotFound, detail);
            }
            RunsError::Ended { id } => {
                return Self::new(ProblemCode::RunEnded, format!("run {id} has ended"));
            }
            RunsError::NotAnswering { .. } => ProblemCode::RunnerNotResponding,
            RunsError::Ambiguous { .. } => ProblemCode::RunIdAmbiguous,
            RunsError::Exists { .. } => ProblemCode::RunExists,
            RunsError::InvalidId { .. } => ProblemCode::InvalidParams,
            RunsError::Refused { code, .. } => match code {
                RefusalCode::AlreadyAnswered => ProblemCode::AlreadyAnswered,
                RefusalCode::UnknownRequest => ProblemCode::RequestNotFound,
                RefusalCode::InvalidAnswer => ProblemCode::InvalidAnswer,
                RefusalCode::Busy => ProblemCode::SessionBusy,
                RefusalCode::NoTurn => ProblemCode::NoTurn,
                RefusalCode::Ending => ProblemCode::SessionEnding,
                RefusalCode::OverBudget => ProblemCode::OverBudget,
                RefusalCode::OutOfTime => ProblemCode::OutOfTime,
                RefusalCode::KeyReused => ProblemCode::IdempotencyKeyReused,
                _ => ProblemCode::Unsupported,
            },
            _ => ProblemCode::Internal,
        };
        Self::new(code, error.to_string())
    }
}

impl From<BackendError> for Problem {
    fn from(error: BackendError) -> Self {
        let code = match &error {
            BackendError::Refused(error) if error.kind != ErrorKind::Internal => {
                return crate::start::refused(error);
            }
            BackendError::Invalid(_) => ProblemCode::InvalidParams,
            BackendError::NotFound(_) => ProblemCode::RunNotFound,
            BackendError::Ambiguous(_) => ProblemCode::RunIdAmbiguous,
            BackendError::Exists(_) => ProblemCode::RunExists,
            BackendError::Live(_) => ProblemCode::RunLive,
            BackendError::Refused(_) | BackendError::Failed(_) => ProblemCode::Internal,
        };
        Self::new(code, error.to_string())
    }
}
