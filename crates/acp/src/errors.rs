//! Classification of an agent's errors.

use serde::Deserialize;
use serde_json::Value;
use teamster_core::provider::json_line::or_default;
use teamster_core::{AgentError, ErrorCode, ErrorKind};

/// The request that an error responds to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RequestKind {
    /// Start of the connection, or of a new session.
    Start,
    /// Resuming a session.
    Resume,
    /// A prompt.
    Prompt,
    /// A change of the model, the mode or another setting.
    Setting,
}

/// A JSON-RPC error.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[non_exhaustive]
pub struct RpcError {
    /// Error code. JSON-RPC and the protocol use codes from -32000 downwards; some agents send the HTTP status.
    #[serde(default, deserialize_with = "or_default")]
    pub code: i64,
    /// Message for people.
    #[serde(default, deserialize_with = "or_default")]
    pub message: String,
    /// Additional data.
    #[serde(default, deserialize_with = "or_default")]
    pub data: Option<Value>,
}

impl RpcError {
    /// Creates an error without additional data.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            data: None,
        }
    }

    /// Returns the message, with details from the additional data if there are any.
    pub fn full_message(&self) -> String {
        let details = match &self.data {
            Some(Value::String(text)) => Some(text.as_str()),
            // The last two are errors of services in an agent's own.
            Some(data) => [
                "/details",
                "/message",
                "/error",
                "/error/message",
                "/error/data/message",
            ]
            .into_iter()
            .find_map(|place| data.pointer(place)?.as_str()),
            None => None,
        };
        match details.map(str::trim).filter(|it| !it.is_empty()) {
            Some(details) if self.message.contains(details) => self.message.clone(),
            Some(details) if self.message.is_empty() || self.message == "Internal error" => {
                details.to_owned()
            }
            Some(details) => format!("{}: {details}", self.message),
            None if self.message.is_empty() => {
                format!("the agent reported error {} without a message", self.code)
            }
            None => self.message.clone(),
        }
    }

    /// Converts the error. The kind comes from the message, else from the code.
    pub fn plain(&self, during: RequestKind) -> AgentError {
        let message = self.full_message();
        let kind = ErrorKind::of_message(&message).or_else(|| self.kind_of_code(during));
        AgentError::new(
            ErrorCode::CliError,
            kind.unwrap_or(ErrorKind::Internal),
            message,
        )
    }

    /// Classifies the code.
    pub fn kind_of_code(&self, during: RequestKind) -> Option<ErrorKind> {
        Some(match self.code {
            // Codes of the protocol: login required, resource not found.
            -32000 => ErrorKind::Auth,
            -32002 | -32602 if during == RequestKind::Resume => ErrorKind::SessionNotFound,
            -32002 => ErrorKind::NotFound,
            -32800 => ErrorKind::Aborted,
            -32700 | -32600 => ErrorKind::Protocol,
            -32601 | -32602 => ErrorKind::Invalid,
            code => ErrorKind::of_http_status(u16::try_from(code).ok()?)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn details_are_added_to_an_unspecific_message() {
        let mut error = RpcError::new(-32603, "Internal error");
        assert_eq!(error.full_message(), "Internal error");
        error.data = Some(json!({"details": "it rained"}));
        assert_eq!(error.full_message(), "it rained");
        error.data = Some(json!({"error": {"message": "429: it rained"}}));
        assert_eq!(error.full_message(), "429: it rained");
        error.data = Some(json!({"error": {"name": "APIError", "data": {"message": "wet"}}}));
        assert_eq!(error.full_message(), "wet");
        error.data = Some(json!({"error": {"code": 7}, "requestId": "r"}));
        assert_eq!(error.full_message(), "Internal error");
        error.data = Some(json!({"details": "it rained"}));
        error.message = "No way".into();
        assert_eq!(error.full_message(), "No way: it rained");
        error.message = "No way, it rained".into();
        assert_eq!(error.full_message(), "No way, it rained");
        assert_eq!(
            RpcError::new(-1, "").full_message(),
            "the agent reported error -1 without a message"
        );
    }

    #[test]
    fn words_tell_more_than_codes() {
        let kind = |code, message: &str, during| RpcError::new(code, message).plain(during).kind;
        assert_eq!(
            kind(429, "You exceeded your current quota", RequestKind::Prompt),
            ErrorKind::Quota
        );
        assert_eq!(kind(429, "x", RequestKind::Prompt), ErrorKind::RateLimit);
        assert_eq!(kind(-32000, "x", RequestKind::Start), ErrorKind::Auth);
        assert_eq!(
            kind(-32002, "x", RequestKind::Resume),
            ErrorKind::SessionNotFound
        );
        assert_eq!(kind(-32002, "x", RequestKind::Prompt), ErrorKind::NotFound);
        assert_eq!(kind(-32603, "x", RequestKind::Prompt), ErrorKind::Internal);
        assert_eq!(kind(7, "x", RequestKind::Prompt), ErrorKind::Internal);
    }
}
