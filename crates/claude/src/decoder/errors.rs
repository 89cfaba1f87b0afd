//! Classification of Claude Code's errors.

use teamster_core::{AgentError, ErrorCode, ErrorKind};

/// Information of the CLI about a failure.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Evidence<'a> {
    /// HTTP status of the service's response.
    pub(super) status: Option<u16>,
    /// The CLI's code, such as `rate_limit`.
    pub(super) word: Option<&'a str>,
    /// The CLI's more specific code, such as `connection_failed`. Absent in 2.1.197.
    pub(super) api_error: Option<&'a str>,
    /// The service's error type, such as `overloaded_error`. Absent in 2.1.197.
    pub(super) api_error_type: Option<&'a str>,
    /// `subtype` of the result.
    pub(super) subtype: Option<&'a str>,
    /// `terminal_reason` of the result.
    pub(super) terminal_reason: Option<&'a str>,
    /// `stop_reason` of the result.
    pub(super) stop_reason: Option<&'a str>,
    /// True if the CLI retries the request, which means a failure of the service or the connection.
    pub(super) is_retry: bool,
    /// Message for people.
    pub(super) text: &'a str,
}

impl Evidence<'_> {
    /// Returns the kind of error, from the strongest evidence to the weakest: fields, then text.
    pub(super) fn kind(&self) -> ErrorKind {
        match self.subtype {
            Some("error_max_turns") => return ErrorKind::MaxTurns,
            Some("error_max_budget_usd") => return ErrorKind::Budget,
            Some("error_max_structured_output_retries") => return ErrorKind::Invalid,
            _ => {}
        }
        match self.terminal_reason {
            Some("prompt_too_long") => return ErrorKind::ContextWindow,
            Some("max_turns") => return ErrorKind::MaxTurns,
            Some(reason) if reason.starts_with("aborted") => return ErrorKind::Aborted,
            _ => {}
        }
        if self.stop_reason == Some("refusal") {
            return ErrorKind::Invalid;
        }
        if let Some(kind) = self.api_error.and_then(kind_of_api_error) {
            return kind;
        }
        // A status or code may have several meanings; the text distinguishes them.
        // That of this subtype is the CLI's log, which may have errors of tools and MCP servers.
        let is_log = self.subtype == Some("error_during_execution");
        let of_text = if is_log {
            ErrorKind::by_patterns(self.text, PATTERNS)
        } else {
            kind_of_text(self.text)
        };
        if let Some(kind) = of_text {
            return kind;
        }
        match self.word {
            Some(
                "authentication_failed"
                | "oauth_org_not_allowed"
                | "account_on_hold"
                | "verification_required"
                | "cloud_credential_error",
            ) => return ErrorKind::Auth,
            Some("billing_error") => return ErrorKind::Quota,
            Some("rate_limit") => return ErrorKind::RateLimit,
            Some("overloaded") => return ErrorKind::Overloaded,
            Some("model_not_found") => return ErrorKind::ModelNotFound,
            Some("invalid_request" | "max_output_tokens") => return ErrorKind::Invalid,
            _ => {}
        }
        if let Some(kind) = self.status.and_then(ErrorKind::of_http_status) {
            return kind;
        }
        if let Some(kind) = self.api_error_type.and_then(kind_of_api_error_type) {
            return kind;
        }
        match self.word {
            // Without a status, the connection or the CLI failed.
            Some("server_error") => ErrorKind::Overloaded,
            // For a retry, it means that there was no response; for a result, that the CLI has no code.
            Some("unknown") if self.is_retry => ErrorKind::Network,
            _ if is_log => ErrorKind::Internal,
            _ => ErrorKind::of_message(self.text).unwrap_or(ErrorKind::Internal),
        }
    }

    /// Creates the error with `message` for people.
    pub(super) fn error(&self, message: String) -> AgentError {
        AgentError::new(ErrorCode::CliError, self.kind(), message)
    }
}

/// Classifies `api_error` according to the CLI's own description. Returns `None` for codes that add nothing to the
/// other fields.
fn kind_of_api_error(word: &str) -> Option<ErrorKind> {
    Some(match word {
        "connection_failed"
        | "no_response"
        | "stream_idle_timeout"
        | "computer_slept"
        | "network_edge_blocked"
        | "tls_untrusted_ca"
        | "tls_cert_signature_failure" => ErrorKind::Network,
        "gateway_content_type" => ErrorKind::Protocol,
        "stored_login_refused"
        | "oauth_refresh_store_refused"
        | "provider_credentials"
        | "gateway_signin_required"
        | "gateway_session_expired"
        | "api_key_auth_disabled"
        | "org_disabled_credential"
        | "invalid_credential_header"
        | "named_profile_unusable" => ErrorKind::Auth,
        "usage_limit_reached"
        | "usage_cap_reached"
        | "model_requires_usage_credits"
        | "long_context_credits_required" => ErrorKind::Quota,
        "message_over_context_limit" | "autocompact_thrashing" => ErrorKind::ContextWindow,
        _ => return None,
    })
}

/// Classifies the `type` of the service's error.
fn kind_of_api_error_type(word: &str) -> Option<ErrorKind> {
    Some(match word {
        "overloaded_error" | "api_error" => ErrorKind::Overloaded,
        "rate_limit_error" => ErrorKind::RateLimit,
        "authentication_error" | "permission_error" => ErrorKind::Auth,
        "billing_error" => ErrorKind::Quota,
        "not_found_error" => ErrorKind::ModelNotFound,
        "invalid_request_error" | "request_too_large" => ErrorKind::Invalid,
        "timeout_error" => ErrorKind::Network,
        _ => return None,
    })
}

/// Messages of the CLI that are more specific than the other fields. All were seen in its output or are in its program.
const PATTERNS: &[(&str, ErrorKind)] = &[
    ("No conversation found", ErrorKind::SessionNotFound),
    ("requires a valid session ID", ErrorKind::SessionNotFound),
    ("Prompt is too long", ErrorKind::ContextWindow),
    ("reached its context window limit", ErrorKind::ContextWindow),
    ("Credit balance is too low", ErrorKind::Quota),
    ("You've hit your", ErrorKind::Quota),
    ("You've reached your", ErrorKind::Quota),
    ("usage limit reached", ErrorKind::Quota),
    // The cap of an API key.
    ("reached your specified", ErrorKind::Quota),
    ("-hour limit reached", ErrorKind::Quota),
    ("eekly limit reached", ErrorKind::Quota),
    ("ession limit reached", ErrorKind::Quota),
    ("out of usage credits", ErrorKind::Quota),
    ("requires usage credits", ErrorKind::Quota),
    ("Usage credits required", ErrorKind::Quota),
    ("Usage credits ran out", ErrorKind::Quota),
    ("Your org is out of usage", ErrorKind::Quota),
    ("Your seat type doesn't include", ErrorKind::Quota),
    ("Your usage allocation has been disabled", ErrorKind::Quota),
    ("Usage is paused for your organization", ErrorKind::Quota),
    ("This service is disabled for your org", ErrorKind::Auth),
    // With the status of an invalid request.
    ("organization has been disabled", ErrorKind::Auth),
    ("Requires Claude Code v", ErrorKind::ModelNotFound),
    ("Not logged in", ErrorKind::Auth),
    ("Invalid API key", ErrorKind::Auth),
    ("Failed to authenticate", ErrorKind::Auth),
    ("Unable to connect to API", ErrorKind::Network),
    ("Connection closed mid-response", ErrorKind::Network),
    // "Connection dropped", "lost mid-response", "refused", with or without the system's error.
    ("API Error: Connection ", ErrorKind::Network),
    ("Connection to the API was lost", ErrorKind::Network),
    ("Request timed out", ErrorKind::Network),
    ("SSL certificate error", ErrorKind::Network),
    ("JSON Parse error", ErrorKind::Protocol),
    ("issue with the selected model", ErrorKind::ModelNotFound),
    (
        "is not available with the Claude Pro plan",
        ErrorKind::ModelNotFound,
    ),
];

/// Classifies a message of the CLI, or of the service through it.
fn kind_of_text(text: &str) -> Option<ErrorKind> {
    ErrorKind::by_patterns(text, PATTERNS).or_else(|| kind_of_service(text))
}

/// Classifies a message of the service by the words of what it reports with the status of an invalid request, too.
fn kind_of_service(text: &str) -> Option<ErrorKind> {
    ErrorKind::of_message(text).filter(|kind| {
        use ErrorKind::{ContextWindow, ModelNotFound, Quota};
        matches!(kind, ContextWindow | ModelNotFound | Quota)
    })
}

/// Classifies a failure that was only reported on stderr.
pub(super) fn kind_of_stderr(stderr: &str) -> Option<ErrorKind> {
    const OF_STDERR: &[(&str, ErrorKind)] = &[
        ("MCP config", ErrorKind::Mcp),
        ("error: unknown option", ErrorKind::Invalid),
        ("is already in use", ErrorKind::Invalid),
        ("Invalid session ID", ErrorKind::Invalid),
        ("can only be used with --", ErrorKind::Invalid),
        ("requires --", ErrorKind::Invalid),
        ("Settings file not found", ErrorKind::Invalid),
        ("Input must be provided", ErrorKind::Invalid),
        ("piped stdin input exceeds", ErrorKind::Invalid),
        ("cannot be used with root/sudo", ErrorKind::Permission),
    ];
    // A path or an argument may have words of the service.
    ErrorKind::by_patterns(stderr, PATTERNS)
        .or_else(|| ErrorKind::by_patterns(stderr, OF_STDERR))
        .or_else(|| kind_of_service(stderr))
}

#[cfg(test)]
mod tests;
