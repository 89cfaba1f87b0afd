//! The CLI's record of a session, `sessions/<directory>/<session>/agents/<agent>/wire.jsonl`.
//!
//! It has what the protocol does not report: the tokens of each request, and why a turn failed.

use std::borrow::Cow;

use serde::Deserialize;
use teamster_core::{AgentError, ErrorCode, ErrorKind, Usage};

/// Texts in the relevant lines.
pub(super) const LINES: &[&str] = &["\"usage.record\"", "\"turn.ended\""];

/// Name of the main agent.
const MAIN: &str = "main";

/// Record of a turn.
#[derive(Debug, Default)]
pub(super) struct Recorded {
    usage: Option<Usage>,
    failure: Option<AgentError>,
    has_begun: bool,
    has_ended: bool,
    /// True if the end of an earlier turn was not read yet. That turn was cancelled, and what is before its end is its own.
    is_behind: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound = "'de: 'a")]
struct Line<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    agent_id: Option<Cow<'a, str>>,
    reason: Option<Cow<'a, str>>,
    error: Option<Failure>,
    usage: Option<Tokens>,
}

#[derive(Deserialize)]
struct Failure {
    #[serde(default)]
    code: String,
    #[serde(default)]
    message: String,
    #[serde(default)]
    details: Details,
    retryable: Option<bool>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Details {
    status_code: Option<u16>,
}

/// The tokens of a request. Input excludes cache reads and writes.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Tokens {
    input_other: Option<u64>,
    output: Option<u64>,
    input_cache_read: Option<u64>,
    input_cache_creation: Option<u64>,
}

/// The CLI's words about an answer of the model without text and calls.
const EMPTY: &str = "returned an empty response";

impl Recorded {
    /// Returns the record of the turn after this one, which begins now.
    pub(super) fn next(&self) -> Self {
        Self {
            has_begun: true,
            is_behind: self.is_behind || self.has_begun && !self.has_ended,
            ..Self::default()
        }
    }

    pub(super) fn line(&mut self, line: &str) {
        let Ok(line) = serde_json::from_str::<Line<'_>>(line) else {
            return;
        };
        match &*line.kind {
            "usage.record" => {
                if let Some(tokens) = line.usage {
                    let usage = Usage::default()
                        .input_tokens(tokens.input_other)
                        .output_tokens(tokens.output)
                        .cache_read_tokens(tokens.input_cache_read)
                        .cache_write_tokens(tokens.input_cache_creation);
                    self.usage = Some(self.usage.map_or(usage, |sum| sum.plus(usage)));
                }
            }
            "turn.ended" if line.agent_id.as_deref().is_none_or(|agent| agent == MAIN) => {
                if self.is_behind && line.reason.as_deref() == Some("cancelled") {
                    (self.usage, self.is_behind) = (None, false);
                    return;
                }
                self.has_ended = true;
                self.failure = (line.error)
                    .filter(|_| line.reason.as_deref() == Some("failed"))
                    .map(Failure::error);
            }
            _ => {}
        }
    }

    /// Returns whether the end of the turn was recorded.
    pub(super) fn has_ended(&self) -> bool {
        self.has_ended
    }

    pub(super) fn take_usage(&mut self) -> Option<Usage> {
        self.usage.take()
    }

    pub(super) fn take_failure(&mut self) -> Option<AgentError> {
        self.failure.take()
    }
}

impl Failure {
    fn error(self) -> AgentError {
        let status = self.details.status_code;
        let of_status = status.and_then(ErrorKind::of_http_status);
        let of_code = match self.code.as_str() {
            "provider.filtered" => Some(ErrorKind::Invalid),
            code if code.starts_with("auth.") => Some(ErrorKind::Auth),
            _ if self.message.contains(EMPTY) => Some(ErrorKind::Protocol),
            _ => None,
        };
        let kind = ErrorKind::of_message(&self.message)
            .or(of_status)
            .or(of_code);
        let message = if self.message.is_empty() {
            self.code
        } else {
            self.message
        };
        // A service that breaks off is reported without a status, and as worth another try.
        let kind = kind.unwrap_or(match self.retryable {
            Some(true) => ErrorKind::Network,
            _ => ErrorKind::Internal,
        });
        AgentError::new(ErrorCode::CliError, kind, message)
    }
}
