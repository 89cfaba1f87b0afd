use super::*;

fn kind(status: Option<u16>, word: &str, text: &str) -> ErrorKind {
    Evidence {
        status,
        word: Some(word),
        text,
        ..Evidence::default()
    }
    .kind()
}

#[test]
fn kinds_of_the_errors_that_were_measured() {
    let cases = [
        (
            Some(401),
            "authentication_failed",
            "Invalid API key · Fix external API key",
            ErrorKind::Auth,
        ),
        (
            Some(403),
            "authentication_failed",
            "Failed to authenticate. API Error: 403",
            ErrorKind::Auth,
        ),
        (
            Some(400),
            "billing_error",
            "Credit balance is too low",
            ErrorKind::Quota,
        ),
        (
            Some(429),
            "rate_limit",
            "API Error: Request rejected (429) · Rate limited.",
            ErrorKind::RateLimit,
        ),
        (
            Some(500),
            "server_error",
            "API Error: 500 Internal server error.",
            ErrorKind::Overloaded,
        ),
        (Some(529), "overloaded", "", ErrorKind::Overloaded),
        (
            Some(400),
            "invalid_request",
            "API Error: 400 You have reached your specified API usage limits. You will regain access on 2027-01-01 at 00:00 UTC.",
            ErrorKind::Quota,
        ),
        (
            None,
            "unknown",
            "5-hour limit reached ∙ resets 3pm",
            ErrorKind::Quota,
        ),
        // Made by hand, as the next ones: the service's own words, through a gateway.
        (
            Some(400),
            "invalid_request",
            "API Error: 400 Your credit balance is too low to access the Anthropic API.",
            ErrorKind::Quota,
        ),
        (
            Some(400),
            "invalid_request",
            "API Error: 400 input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000",
            ErrorKind::ContextWindow,
        ),
        (
            None,
            "unknown",
            "You're out of extra usage · resets 5pm (UTC)",
            ErrorKind::Quota,
        ),
        (
            None,
            "unknown",
            "API Error: 429 rate_limit_error: slow down",
            ErrorKind::RateLimit,
        ),
        (
            None,
            "unknown",
            "OAuth token has expired. Please obtain a new token.",
            ErrorKind::Auth,
        ),
        // Made by hand: the service's message about a model that only newer versions can use.
        (
            Some(400),
            "invalid_request",
            "API Error: 400 claude-opus-6 requires a newer version of Claude Code. Run `claude update`.",
            ErrorKind::ModelNotFound,
        ),
        (
            None,
            "server_error",
            "API Error: Unable to connect to API (ConnectionRefused)",
            ErrorKind::Network,
        ),
        (None, "unknown", "something new", ErrorKind::Internal),
        (
            None,
            "unknown",
            "API Error: JSON Parse error: Unterminated string",
            ErrorKind::Protocol,
        ),
        (
            None,
            "server_error",
            "Request timed out",
            ErrorKind::Network,
        ),
        (
            None,
            "server_error",
            "API Error: Connection dropped (ECONNRESET)",
            ErrorKind::Network,
        ),
        (
            None,
            "server_error",
            "API Error: Connection lost mid-response. The response above may be incomplete.",
            ErrorKind::Network,
        ),
        (
            Some(404),
            "model_not_found",
            "There's an issue with the selected model (x).",
            ErrorKind::ModelNotFound,
        ),
        (
            Some(413),
            "invalid_request",
            "Request too large (max 32MB).",
            ErrorKind::Invalid,
        ),
        (
            None,
            "max_output_tokens",
            "API Error: The model has reached its context window limit.",
            ErrorKind::ContextWindow,
        ),
        (
            None,
            "max_output_tokens",
            "API Error: Claude's response exceeded the 64000 output token maximum.",
            ErrorKind::Invalid,
        ),
    ];
    for (status, word, text, expected) in cases {
        assert_eq!(
            kind(status, word, text),
            expected,
            "{status:?} {word} {text}"
        );
    }
}

// Made by hand after the messages in the program of 2.1.330, and of 2.1.197 for the last three.
#[test]
fn messages_about_limits_of_the_account_are_quotas() {
    use ErrorKind::{Auth, Invalid, ModelNotFound, Network, Overloaded, Quota, RateLimit};
    for (status, word, text, expected) in [
        (
            Some(429),
            "rate_limit",
            "API Error: Server is temporarily limiting requests (not your usage limit) · this may be a temporary capacity issue.",
            RateLimit,
        ),
        (
            Some(429),
            "rate_limit",
            "API Error: Server is temporarily limiting requests (not your usage limit) · spend limit reached · resets Jan 5",
            Quota,
        ),
        (
            Some(429),
            "rate_limit",
            "API Error: Extra usage is required for 1M context · enable extra usage at claude.ai/settings/usage, or use --model to switch to standard context",
            Quota,
        ),
        (
            Some(429),
            "rate_limit",
            "Your org is out of usage · contact your admin",
            Quota,
        ),
        (
            Some(429),
            "rate_limit",
            "Your seat type doesn't include usage credits",
            Quota,
        ),
        (
            Some(429),
            "rate_limit",
            "Your usage allocation has been disabled by your admin",
            Quota,
        ),
        (
            Some(429),
            "rate_limit",
            "Your group's usage limit is set to $0",
            Quota,
        ),
        (
            Some(429),
            "rate_limit",
            "Usage is paused for your organization. For help, please contact support.",
            Quota,
        ),
        (
            Some(429),
            "rate_limit",
            "This service is disabled for your org",
            Auth,
        ),
        (
            None,
            "unknown",
            "API Error: Usage credits ran out before the response was finished.",
            Quota,
        ),
        (
            Some(400),
            "unknown",
            "API Error: 400 This organization has been disabled.",
            Auth,
        ),
        (
            Some(400),
            "invalid_request",
            "API Error: 400 messages.1: the tool has been disabled",
            Invalid,
        ),
        (
            Some(429),
            "rate_limit",
            "API Error: Usage credits required for 1M context · run /usage-credits to turn them on",
            Quota,
        ),
        (
            Some(400),
            "invalid_request",
            "Claude Opus is not available with the Claude Pro plan. If you have updated your subscription plan recently, run /logout and /login for the plan to take effect.",
            ModelNotFound,
        ),
        (
            None,
            "server_error",
            "API Error: SSL certificate error (CERT_HAS_EXPIRED). If you are behind a corporate proxy, set NODE_EXTRA_CA_CERTS",
            Network,
        ),
        (
            None,
            "server_error",
            "API Error: a certificate of the tool",
            Overloaded,
        ),
    ] {
        assert_eq!(kind(status, word, text), expected, "{word} {text}");
    }
}

#[test]
fn the_closer_word_shows_that_there_was_no_answer() {
    let refused = Evidence {
        word: Some("server_error"),
        api_error: Some("connection_failed"),
        text: "API Error: the model server cannot be found",
        ..Evidence::default()
    };
    assert_eq!(refused.kind(), ErrorKind::Network);
    // An unknown code is ignored.
    let unknown = Evidence {
        api_error: Some("new"),
        ..refused
    };
    assert_eq!(unknown.kind(), ErrorKind::Overloaded);
}

#[test]
fn the_word_of_the_service_counts_where_there_is_no_status() {
    let evidence = Evidence {
        word: Some("unknown"),
        api_error_type: Some("invalid_request_error"),
        ..Evidence::default()
    };
    assert_eq!(evidence.kind(), ErrorKind::Invalid);
}

// Made by hand.
#[test]
fn errors_in_the_log_are_not_those_of_the_service() {
    for error in ["tiny: connect ECONNREFUSED", "billing: daily limit"] {
        let evidence = Evidence {
            subtype: Some("error_during_execution"),
            text: error,
            ..Evidence::default()
        };
        assert_eq!(evidence.kind(), ErrorKind::Internal, "{error}");
    }
}

#[test]
fn fields_beat_text() {
    let evidence = Evidence {
        subtype: Some("error_max_turns"),
        text: "Invalid API key",
        ..Evidence::default()
    };
    assert_eq!(evidence.kind(), ErrorKind::MaxTurns);
}

#[test]
fn stderr() {
    assert_eq!(
        kind_of_stderr("No conversation found with session ID: 1"),
        Some(ErrorKind::SessionNotFound)
    );
    assert_eq!(
        kind_of_stderr("Error: Session ID 1 is already in use."),
        Some(ErrorKind::Invalid)
    );
    // `--resume` also prints this for an id that is not a UUID. It matches "requires" too.
    assert_eq!(
        kind_of_stderr(
            "Error: --resume requires a valid session ID or session title when used with --print."
        ),
        Some(ErrorKind::SessionNotFound)
    );
    // Made by hand: the folder is the user's.
    assert_eq!(
        kind_of_stderr(
            "Error: Invalid MCP configuration: MCP config file not found: /billing/mcp.json"
        ),
        Some(ErrorKind::Mcp)
    );
    assert_eq!(kind_of_stderr("something else"), None);
}
