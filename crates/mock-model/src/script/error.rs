//! Errors of a model service in a script.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};

/// HTTP error instead of an answer.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct HttpError {
    /// Kind of the error, which each protocol maps to a status and body.
    pub kind: ErrorKind,
    /// HTTP status that overrides the protocol's.
    #[serde(default)]
    pub status: Option<u16>,
    /// Message that overrides the protocol's.
    #[serde(default)]
    pub message: Option<String>,
    /// Headers, such as `retry-after`.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// Body that overrides the protocol's.
    #[serde(default)]
    pub body: Option<String>,
}

impl HttpError {
    /// Creates an error with the protocol's status and body.
    pub fn new(kind: ErrorKind) -> Self {
        Self {
            kind,
            status: None,
            message: None,
            headers: BTreeMap::new(),
            body: None,
        }
    }
}

/// Kind of a model service's error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ErrorKind {
    /// Invalid key: 401 or 400, depending on the protocol.
    Authentication,
    /// The key lacks the permission: 403.
    Permission,
    /// Too many requests: 429.
    RateLimit,
    /// Quota exhausted: 429 or 402, depending on the protocol.
    Quota,
    /// The service failed: 500.
    Server,
    /// The service is overloaded: 529 or 503, depending on the protocol.
    Overloaded,
    /// Unknown model: 404.
    UnknownModel,
    /// The conversation exceeds the model's context: 400 in most protocols.
    ContextTooLong,
    /// Invalid request: 400.
    InvalidRequest,
}

/// Reads an error as a table, or as the kind alone.
pub(super) fn error_or_its_kind<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<HttpError>, D::Error> {
    #[derive(Deserialize)]
    #[serde(
        untagged,
        expecting = "the kind of an error, or a table with its `kind`"
    )]
    enum KindOrWhole {
        Kind(ErrorKind),
        Whole(HttpError),
    }
    Ok(Some(match KindOrWhole::deserialize(deserializer)? {
        KindOrWhole::Kind(kind) => HttpError::new(kind),
        KindOrWhole::Whole(error) => error,
    }))
}
