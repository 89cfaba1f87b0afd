//! Protocol errors.

use agent_client_protocol_schema::v1::{Error, ErrorCode};
use serde_json::json;
use teamster_core::{AgentError, ErrorKind};

/// Converts an agent's error to a protocol error, with the whole error in `data.teamster`.
pub(crate) fn from_agent(error: &AgentError) -> Error {
    let code = match error.kind {
        ErrorKind::Auth => ErrorCode::AuthRequired,
        ErrorKind::SessionNotFound | ErrorKind::NotFound => ErrorCode::ResourceNotFound,
        ErrorKind::Invalid => ErrorCode::InvalidParams,
        ErrorKind::Aborted => ErrorCode::RequestCancelled,
        _ => ErrorCode::InternalError,
    };
    Error::new(i32::from(code), error.message.clone()).data(json!({"teamster": error}))
}

pub(crate) fn invalid(problem: impl Into<String>) -> Error {
    Error::new(i32::from(ErrorCode::InvalidParams), problem)
}

pub(crate) fn unknown_session(id: &str) -> Error {
    let id = teamster_core::text::excerpt(id, 100);
    let problem = format!("no session {id}; session/list lists the existing ones");
    Error::new(i32::from(ErrorCode::ResourceNotFound), problem)
}

pub(crate) fn cancelled() -> Error {
    Error::new(
        i32::from(ErrorCode::RequestCancelled),
        "the request was cancelled",
    )
}
