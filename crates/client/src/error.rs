//! The error of this crate.

use std::borrow::Cow;
use std::time::Duration;

use teamster_api::{Problem, ProblemCode, ServiceError, with_field_names};

/// Error of a client or of one of its requests.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct ClientError {
    /// Kind of the failure.
    pub kind: ClientErrorKind,
    /// Error code of the API; `None` if the server did not refuse the request, or its code is of a later version.
    pub code: Option<ProblemCode>,
    /// The argument at fault, such as `url` or `key`, of an error before any request, or the field that the server refused.
    pub parameter: Option<Cow<'static, str>>,
    /// The same request may succeed later: the server, or a proxy in front of it, was not ready.
    pub retryable: bool,
    /// The delay before the next attempt that the server requested (`Retry-After`).
    pub retry_after: Option<Duration>,
    /// The message, for people.
    pub message: String,
    /// This client repeats a request with a key by itself: the server or a proxy was not ready, or the connection failed.
    pub(crate) is_transient: bool,
}

/// Kind of a client's error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClientErrorKind {
    /// The URL is not one of a server.
    InvalidUrl,
    /// The URL contains a password or token, which logs and lists of processes would show.
    SecretInUrl,
    /// An address other than a Unix socket needs a token.
    NoToken,
    /// An argument cannot be sent, such as an empty id. No request was made.
    InvalidArgument,
    /// The certificates of the system cannot be read.
    NoCertificates,
    /// No connection to the server: the request was not sent.
    Unreachable,
    /// `ssh` cannot log in. It is not tried again.
    LoginFailed,
    /// The connection broke after the request was sent, so the server may have carried it out.
    Disconnected,
    /// No response, or no data of a stream, in time. The server may have carried out the request.
    TimedOut,
    /// The machine behind `ssh` has no program that serves this client: none, or one of another version.
    NoProgram,
    /// The server refused the request; `code` has the reason.
    Refused,
    /// The response is not one of this API: another program, a proxy, or an incompatible version.
    Unexpected,
}

impl ClientErrorKind {
    /// Returns whether the connection failed.
    pub(crate) fn is_connection(self) -> bool {
        matches!(
            self,
            Self::Unreachable | Self::Disconnected | Self::TimedOut
        )
    }
}

impl ClientError {
    pub(crate) fn new(kind: ClientErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            code: None,
            parameter: None,
            retryable: kind.is_connection(),
            is_transient: kind.is_connection(),
            retry_after: None,
            message: message.into(),
        }
    }

    /// Creates the error for an argument that cannot be sent.
    pub(crate) fn argument(parameter: &'static str, message: impl Into<String>) -> Self {
        Self {
            parameter: Some(parameter.into()),
            ..Self::new(ClientErrorKind::InvalidArgument, message)
        }
    }

    /// Creates the error of a response with this status, which is not 2xx, and body.
    pub(crate) fn of_response(url: &str, status: u16, body: &[u8]) -> Self {
        if let Ok(problem) = serde_json::from_slice::<Problem>(body) {
            let names_server = matches!(
                problem.code,
                ProblemCode::InsufficientScope | ProblemCode::HostNotAllowed
            );
            let message = match problem.code {
                ProblemCode::Unauthorized => {
                    format!("{url} rejected the token as invalid or revoked")
                }
                _ if names_server => format!("{url}: {}", problem.detail),
                _ => problem.detail,
            };
            return Self {
                code: Some(problem.code),
                parameter: problem.parameter.map(Cow::Owned),
                retryable: problem.code.is_retryable(),
                is_transient: problem.code == ProblemCode::TooManyConnections,
                ..Self::new(ClientErrorKind::Refused, message)
            };
        }
        // A problem of a later version.
        let detail = serde_json::from_slice::<Detail>(body);
        if let Ok(Detail { detail, code: _ }) = detail {
            return Self::new(ClientErrorKind::Refused, detail);
        }
        Self {
            retryable: TRANSIENT.contains(&status),
            is_transient: TRANSIENT.contains(&status),
            ..Self::unexpected(url, &format!("HTTP {status}"))
        }
    }

    /// Creates the error for a response that is not one of the API.
    pub(crate) fn unexpected(url: &str, reason: &str) -> Self {
        Self::new(
            ClientErrorKind::Unexpected,
            format!(
                "{url} did not respond like a teamster server ({reason}): check the URL, and the versions of both sides"
            ),
        )
    }
}

impl From<ClientError> for ServiceError {
    fn from(error: ClientError) -> Self {
        let code = match error.kind {
            ClientErrorKind::InvalidArgument => Some(ProblemCode::InvalidParams),
            _ => error.code,
        };
        let mut service = match code {
            Some(code) => Self::new(code, error.message),
            None => Self::unreachable(error.message),
        };
        service.parameter = error.parameter.map(Cow::into_owned);
        if error.kind == ClientErrorKind::Refused
            && let Some(name) = &service.parameter
            && let Some(problem) = service.message.strip_prefix(&**name)
        {
            // As a service of this machine names it.
            let field = name.strip_prefix("trusted.").unwrap_or(name);
            let field = with_field_names(&format!("`{field}`")).replace('`', "");
            service.message = format!("{field}{}", with_field_names(problem));
            service.parameter = Some(field);
        }
        service.retryable = error.retryable;
        service.retry_after = error.retry_after;
        service
    }
}

/// Statuses of a proxy in front of a server that is not ready.
const TRANSIENT: [u16; 6] = [408, 429, 500, 502, 503, 504];

/// A problem whose code this version does not know.
#[derive(serde::Deserialize)]
struct Detail {
    detail: String,
    #[expect(dead_code, reason = "only a problem of the API has one")]
    code: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_a_service_has_the_same_fields() {
        // Made by hand: the server's problem, and a page of a proxy.
        let problem = r#"{"type":"about:blank","title":"","status":503,"code":"TOO_MANY_CONNECTIONS","detail":"full"}"#;
        let mut full = ClientError::of_response("http://s", 503, problem.as_bytes());
        full.retry_after = Some(Duration::from_secs(3));
        let full = ServiceError::from(full);
        assert_eq!(full.code, Some(ProblemCode::TooManyConnections));
        assert_eq!((&*full.message, full.retryable), ("full", true));
        assert_eq!(full.retry_after, Some(Duration::from_secs(3)));

        let page = ServiceError::from(ClientError::of_response("http://s", 404, b"<html>"));
        assert_eq!((page.code, page.retryable), (None, false));
        let id = ServiceError::from(ClientError::argument("id", "not an id"));
        assert_eq!((id.parameter.as_deref(), id.retryable), (Some("id"), false));
    }

    #[test]
    fn refused_field_has_its_name_in_rust() {
        // Made by hand: the server's problems.
        for (field, problem, name, message) in [
            (
                "newSession",
                "needs `sessionKey`",
                "new_session",
                "needs `session_key`",
            ),
            ("trusted.mcpServers", "not here", "mcp_servers", "not here"),
        ] {
            let problem = format!(
                r#"{{"type":"about:blank","title":"","status":422,"code":"INVALID_PARAMS","detail":"{field}: {problem}","parameter":"{field}"}}"#
            );
            let refused = ClientError::of_response("http://s", 422, problem.as_bytes());
            let refused = ServiceError::from(refused);
            assert_eq!(refused.message, format!("{name}: {message}"));
            assert_eq!(refused.parameter.as_deref(), Some(name));
        }
    }
}
