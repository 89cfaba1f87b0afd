//! Classification of a run's error messages. The CLI gives no codes, only messages.
//!
//! In a session the CLI adds a code (`codexErrorInfo`): that table is in `session/errors.rs`. Statuses and messages
//! of model services are classified in `crates/core/src/provider/classify.rs`.

use std::borrow::Cow;

use teamster_core::provider::json_line::whole;
use teamster_core::{AgentError, ErrorCode, ErrorKind};

use crate::wire::Object;

/// Kinds of the CLI's own messages, more specific ones first. All were seen in the output of the real program, or are
/// among the messages in its binary.
const PATTERNS: &[(&str, ErrorKind)] = &[
    ("no rollout found", ErrorKind::SessionNotFound),
    ("Session not found", ErrorKind::SessionNotFound),
    // The lock of a process that was just killed. It passes, and the session is intact.
    ("already has an active writer", ErrorKind::Overloaded),
    ("required MCP servers failed", ErrorKind::Mcp),
    ("Missing environment variable", ErrorKind::Auth),
    ("could not be refreshed", ErrorKind::Auth),
    ("sign in again", ErrorKind::Auth),
    ("out of credits", ErrorKind::Quota),
    ("hit your usage limit", ErrorKind::Quota),
    ("ran out of room in the model", ErrorKind::ContextWindow),
    ("Input exceeds the maximum length", ErrorKind::Invalid),
    ("Incomplete response returned", ErrorKind::Invalid),
    ("Invalid prompt", ErrorKind::Invalid),
    ("This request was blocked", ErrorKind::Invalid),
    ("flagged for possible", ErrorKind::Invalid),
    ("capacity is unavailable", ErrorKind::Overloaded),
    ("rate limit exceeded", ErrorKind::RateLimit),
    ("request timed out", ErrorKind::Network),
];

/// Kinds of messages that appear only on stderr.
const PATTERNS_OF_STDERR: &[(&str, ErrorKind)] = &[
    ("Not inside a trusted directory", ErrorKind::Permission),
    ("No prompt provided", ErrorKind::Invalid),
    ("input is not valid UTF-8", ErrorKind::Invalid),
    ("Error loading config", ErrorKind::Invalid),
    ("Error parsing -c overrides", ErrorKind::Invalid),
    ("Unknown feature flag", ErrorKind::Invalid),
    ("Refusing to start the interactive TUI", ErrorKind::Invalid),
    ("CODEX_HOME", ErrorKind::NotFound),
    ("No such file or directory", ErrorKind::NotFound),
];

/// Lines of stderr that are no evidence of a failure: the stdin notice, refused tool calls of the model (the model
/// got the reason), missing features of MCP servers, and failed writes after SIGINT.
const NOISE: &[&str] = &[
    "Reading additional input from stdin...",
    "Reading prompt from stdin...",
    "WARNING: proceeding, even though",
    "warning: Untrusted project-local configuration",
];
/// The same for log lines, after their time and level. Lines below the level of errors appear if `RUST_LOG` is set,
/// and are no evidence either.
const LOGS: &[&str] = &[
    "codex_core::tools::router: ",
    "rmcp::",
    "codex_core::session: failed to record rollout items: ",
    "codex_app_server: Codex could not find bubblewrap on PATH",
];

/// Prefix of the reason for which the CLI gave up a stream.
const DISCONNECTED: &str = "stream disconnected before completion: ";

/// Returns the error for a failure that the CLI reports in its events.
pub(crate) fn of_message(message: &str) -> AgentError {
    let mut kind = kind_of(message);
    let mut text = Cow::Borrowed(message);
    if message.trim().is_empty() {
        // A response of 400 without a body has no message.
        text = "Codex reports that its turn failed, without a reason".into();
    } else if let Some(body) = Object::parse(message) {
        if kind == ErrorKind::Internal {
            kind = ErrorKind::Invalid;
        }
        text = words_of(&body).unwrap_or(text);
    }
    AgentError::new(ErrorCode::CliError, kind, text).retry_after_ms(retry_after_ms(message))
}

/// Returns the service's message in the body of a 400 response. The CLI passes on the whole body if it does not know
/// its form; of other statuses it extracts the message itself.
fn words_of<'a>(body: &Object<'a>) -> Option<Cow<'a, str>> {
    let error = body.object("error");
    error
        .and_then(|error| error.text("message"))
        .or_else(|| body.text("error"))
        .or_else(|| body.text("message"))
        .or_else(|| body.text("detail"))
        .filter(|words| !words.trim().is_empty())
}

/// Returns the error for which the CLI asks the model again. Without an explanation it is the connection: the CLI
/// would give up otherwise.
pub(crate) fn of_reconnect(reason: &str) -> AgentError {
    let error = of_message(reason);
    if error.kind == ErrorKind::Internal {
        return AgentError::new(ErrorCode::CliError, ErrorKind::Network, reason);
    }
    error
}

/// Returns the error of a turn that ended before the model was asked. `why` is the hook's message, or empty.
pub(crate) fn held_back(why: &str) -> AgentError {
    let mut message = "the model was not asked: a hook held the prompt back".to_owned();
    if !why.trim().is_empty() {
        message = format!("{message}: {}", why.trim());
    }
    AgentError::new(ErrorCode::CliError, ErrorKind::Permission, message)
}

/// Returns the model's stop reason, if a failure has one.
pub(crate) fn stop_reason(message: &str) -> Option<&str> {
    // The CLI repeats the request after an answer that a filter stopped, as after a broken connection.
    let message = message.strip_prefix(DISCONNECTED).unwrap_or(message);
    let reason = message.strip_prefix("Incomplete response returned, reason: ")?;
    Some(reason.trim())
}

/// Classifies a failure that was explained only on stderr.
pub(crate) fn kind_of_stderr(stderr: &str) -> Option<ErrorKind> {
    // Refused arguments, as the CLI's argument parser reports them.
    if stderr.lines().any(|line| line.starts_with("error: ")) {
        return Some(ErrorKind::Invalid);
    }
    ErrorKind::by_patterns(stderr, PATTERNS)
        .or_else(|| ErrorKind::by_patterns(stderr, PATTERNS_OF_STDERR))
        .or_else(|| kind_of_service(stderr))
}

/// Returns stderr without its noise.
pub(crate) fn evidence(stderr: &str) -> String {
    let is_noise = |line: &&str| {
        NOISE.iter().any(|noise| line.starts_with(noise))
            || log_line(line).is_some_and(|(level, rest)| {
                level != "ERROR" || LOGS.iter().any(|noise| rest.starts_with(noise))
            })
    };
    let lines: Vec<_> = stderr.lines().filter(|line| !is_noise(line)).collect();
    lines.join("\n").trim().to_owned()
}

/// Splits a line of the CLI's log, such as `2026-11-21T21:00:33.363870Z  WARN target: …`, into its level and the
/// rest.
pub(super) fn log_line(line: &str) -> Option<(&str, &str)> {
    let (time, rest) = line.split_once(' ')?;
    let is_time = time.ends_with('Z') && time.contains('T') && time.starts_with("20");
    let (level, rest) = rest.trim_start().split_once(' ')?;
    let is_level = matches!(level, "ERROR" | "WARN" | "INFO" | "DEBUG" | "TRACE");
    (is_time && is_level).then_some((level, rest))
}

fn kind_of(message: &str) -> ErrorKind {
    if let Some(kind) =
        ErrorKind::by_patterns(message, PATTERNS).or_else(|| kind_of_service(message))
    {
        return kind;
    }
    // The connection broke, unless the rest is more specific.
    if message.starts_with("stream disconnected") {
        return ErrorKind::Network;
    }
    ErrorKind::Internal
}

/// Classifies the service's own message, which the CLI passes on.
fn kind_of_service(text: &str) -> Option<ErrorKind> {
    let lower = text.to_lowercase();
    // Not `Unsupported value: 'low' is not supported with the 'gpt-5-codex' model.`
    let about_a_model = ["does not exist", "is not supported"].iter().any(|words| {
        let subject = lower.split_once(words).map(|(subject, _)| subject);
        subject.is_some_and(|subject| subject.contains("model"))
    });
    if about_a_model {
        return Some(ErrorKind::ModelNotFound);
    }
    ErrorKind::of_message(text).or_else(|| match http_status(text)? {
        // Without the name of a model, it is the service's address that was not found.
        404 if !names_a_model(text) => Some(ErrorKind::Invalid),
        status => ErrorKind::of_http_status(status),
    })
}

/// Returns whether the service's message mentions a model. The URL that the CLI adds is ignored.
fn names_a_model(text: &str) -> bool {
    let message = text.split(", url: ").next().unwrap_or(text);
    message.to_lowercase().contains("model")
}

/// Returns the HTTP status in `unexpected status 529 …` or `last status: 429 …`.
fn http_status(text: &str) -> Option<u16> {
    let (_, rest) = text
        .split_once("unexpected status ")
        .or_else(|| text.split_once("last status: "))?;
    rest.get(..3)?.parse().ok()
}

/// Returns the time to wait, in milliseconds, if the service reports `try again in 1.5s`.
fn retry_after_ms(message: &str) -> Option<u64> {
    const AGAIN: &str = "try again in ";
    let at = message.to_ascii_lowercase().find(AGAIN)?;
    let mut rest = &message[at + AGAIN.len()..];
    let mut total = None;
    loop {
        let digits = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(rest.len());
        let Ok(number) = rest[..digits].parse::<f64>() else {
            break;
        };
        rest = rest[digits..].trim_start();
        let letters = rest
            .find(|c: char| !c.is_ascii_alphabetic())
            .unwrap_or(rest.len());
        let Some(unit) = unit_ms(&rest[..letters]) else {
            break;
        };
        *total.get_or_insert(0.0) += number * unit;
        rest = rest[letters..].trim_start_matches([' ', ',']);
        rest = rest.strip_prefix("and ").unwrap_or(rest);
    }
    whole(total?)
}

fn unit_ms(unit: &str) -> Option<f64> {
    Some(match unit {
        "ms" => 1.0,
        "s" | "sec" | "second" | "seconds" => 1000.0,
        "m" | "min" | "minute" | "minutes" => 60_000.0,
        "h" | "hour" | "hours" => 3_600_000.0,
        "d" | "day" | "days" => 86_400_000.0,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_the_messages_that_were_measured() {
        let cases = [
            (
                "unexpected status 401 Unauthorized: Incorrect API key provided: sk-test-000., url: http://127.0.0.1:18080/v1/responses",
                ErrorKind::Auth,
            ),
            (
                "unexpected status 403 Forbidden: Country not supported, url: http://127.0.0.1:18080/v1/responses",
                ErrorKind::Auth,
            ),
            (
                "exceeded retry limit, last status: 429 Too Many Requests",
                ErrorKind::RateLimit,
            ),
            (
                "Quota exceeded. Check your plan and billing details.",
                ErrorKind::Quota,
            ),
            (
                "You’ve hit your usage limit. Upgrade to Pro (https://chatgpt.com/explore/pro), visit https://chatgpt.com/settings/usage to purchase more credits or try again at 9:44 PM.",
                ErrorKind::Quota,
            ),
            (
                "We’re currently experiencing high demand, which may cause temporary errors.",
                ErrorKind::Overloaded,
            ),
            (
                "unexpected status 529 <unknown status code>: Overloaded, url: http://127.0.0.1:18080/v1/responses",
                ErrorKind::Overloaded,
            ),
            (
                "thread 01a20991-faba-76a0-b463-2853df86d3c9 already has an active writer",
                ErrorKind::Overloaded,
            ),
            (
                "Selected model is at capacity. Please try a different model.",
                ErrorKind::Overloaded,
            ),
            (
                "The requested model 'gpt-5.5' does not exist.",
                ErrorKind::ModelNotFound,
            ),
            (
                "Codex ran out of room in the model's context window. Start a new thread or clear earlier history before retrying.",
                ErrorKind::ContextWindow,
            ),
            (
                "rate limit exceeded: Rate limit reached for gpt in organization org-x on tokens per min (TPM): Limit 30000. Please try again in 1.5s.",
                ErrorKind::RateLimit,
            ),
            (
                "stream disconnected before completion: internal stream failure",
                ErrorKind::Network,
            ),
            (
                "stream disconnected before completion: idle timeout waiting for SSE",
                ErrorKind::Network,
            ),
            (
                "Incomplete response returned, reason: max_output_tokens",
                ErrorKind::Invalid,
            ),
            ("Invalid prompt: flagged.", ErrorKind::Invalid),
            (
                "Connection failed: error sending request",
                ErrorKind::Network,
            ),
            ("Missing environment variable: `MOCK_KEY`.", ErrorKind::Auth),
            ("something new", ErrorKind::Internal),
            // Not measured.
            ("request timed out", ErrorKind::Network),
            (
                "This request has been flagged for possible cybersecurity risk.",
                ErrorKind::Invalid,
            ),
            (
                "Policy-restricted capacity is unavailable. Please try again later.",
                ErrorKind::Overloaded,
            ),
            (
                "To use Codex with your ChatGPT plan, upgrade to Plus: https://chatgpt.com/explore/plus.",
                ErrorKind::Quota,
            ),
            (
                "{\"detail\":\"The 'gpt-5.1' model is not supported when using Codex with a ChatGPT account.\"}",
                ErrorKind::ModelNotFound,
            ),
            (
                "{\"error\":{\"message\":\"Unsupported value: 'low' is not supported with the 'gpt-5-codex' model. Supported values are: 'medium'.\",\"code\":\"unsupported_value\"}}",
                ErrorKind::Invalid,
            ),
            (
                "{\"detail\":\"Model is not supported\"}",
                ErrorKind::ModelNotFound,
            ),
            (
                "{\"error\":{\"message\":\"An input of this kind is not supported by this model.\"}}",
                ErrorKind::Invalid,
            ),
            (
                "{\"error\":{\"message\":\"Unsupported parameter: 'temperature' is not supported with this model.\"}}",
                ErrorKind::Invalid,
            ),
            (
                "unexpected status 404 Not Found: 404 page not found, url: http://x/models/responses",
                ErrorKind::Invalid,
            ),
            (
                "unexpected status 404 Not Found: Model m is not here, url: http://x/responses",
                ErrorKind::ModelNotFound,
            ),
        ];
        for (message, kind) in cases {
            assert_eq!(of_message(message).kind, kind, "{message}");
        }
    }

    #[test]
    fn error_body_gives_the_message_and_is_a_bad_request() {
        for (body, expected) in [
            (
                r#"{"error":{"message":"Invalid request.","type":"invalid_request_error","param":null,"code":null}}"#,
                "Invalid request.",
            ),
            (
                "{\n  \"error\": {\n    \"message\": \"Unsupported parameter: x\"\n  }\n}",
                "Unsupported parameter: x",
            ),
            (r#"{"detail":"Unsupported value"}"#, "Unsupported value"),
            // Not measured.
            (r#"{"error":"no","message":"x"}"#, "no"),
            (r#"{"message":"no"}"#, "no"),
            (
                r#"{"error":{"message":" "}}"#,
                r#"{"error":{"message":" "}}"#,
            ),
        ] {
            let error = of_message(body);
            assert_eq!(
                (error.kind, &*error.message),
                (ErrorKind::Invalid, expected)
            );
            assert!(!error.retryable);
        }
        // The service's own code has precedence.
        let full = r#"{"error":{"message":"It is full.","code":"context_length_exceeded"}}"#;
        assert_eq!(of_message(full).kind, ErrorKind::ContextWindow);
    }

    #[test]
    fn a_message_without_a_word_is_explained() {
        let error = of_message("");
        assert_eq!(error.kind, ErrorKind::Internal);
        assert_eq!(
            error.message,
            "Codex reports that its turn failed, without a reason"
        );
    }

    #[test]
    fn stop_reason_of_the_model_is_reported_after_a_repetition() {
        let reason = "Incomplete response returned, reason: content_filter";
        let again = format!("stream disconnected before completion: {reason}");
        assert_eq!(stop_reason(reason), Some("content_filter"));
        assert_eq!(stop_reason(&again), Some("content_filter"));
        assert_eq!(of_message(&again).kind, ErrorKind::Invalid);
        let cut = "stream disconnected before completion: stream closed";
        assert_eq!(stop_reason(cut), None);
    }

    #[test]
    fn a_wait_is_read_from_the_message() {
        let ms = |text: &str| of_message(text).retry_after_ms;
        assert_eq!(ms("Please try again in 1.5s."), Some(1500));
        assert_eq!(ms("Please try again in 28ms."), Some(28));
        assert_eq!(ms("Try again in 6m0s"), Some(360_000));
        assert_eq!(ms("try again in 1 hour 2 minutes."), Some(3_720_000));
        assert_eq!(ms("try again in 1 hour and 2 minutes"), Some(3_720_000));
        assert_eq!(ms("try again at 9:44 PM."), None);
        assert_eq!(ms("try again in a while"), None);
        assert_eq!(ms("try again in 99999999999999999999 days"), None);
    }

    #[test]
    fn stderr_is_classified() {
        let cases = [
            (
                "Error: thread/resume: thread/resume failed: no rollout found for thread id 01234567-89ab-7def-8123-456789abcdef (code -32600)",
                ErrorKind::SessionNotFound,
            ),
            (
                "Error: Session not found: nosuch",
                ErrorKind::SessionNotFound,
            ),
            (
                "Reading additional input from stdin...\nNot inside a trusted directory and --skip-git-repo-check was not specified.",
                ErrorKind::Permission,
            ),
            (
                "error: unexpected argument '--no-such-flag' found",
                ErrorKind::Invalid,
            ),
            (
                "Error loading config.toml: invalid type: string \"{\", expected struct RawMcpServerConfig",
                ErrorKind::Invalid,
            ),
            (
                "Reading additional input from stdin...\nError: thread/start: thread/start failed: error creating thread: Fatal error: Failed to initialize session: required MCP servers failed to initialize: tiny: connection closed (code -32603)",
                ErrorKind::Mcp,
            ),
            (
                "Reading prompt from stdin...\nNo prompt provided via stdin.",
                ErrorKind::Invalid,
            ),
            (
                "Error: turn/start: turn/start failed: Input exceeds the maximum length of 1048576 characters. (code -32602)",
                ErrorKind::Invalid,
            ),
            (
                "Error: No such file or directory (os error 2)",
                ErrorKind::NotFound,
            ),
        ];
        for (stderr, kind) in cases {
            assert_eq!(kind_of_stderr(stderr), Some(kind), "{stderr}");
        }
        assert_eq!(kind_of_stderr("it rained"), None);
    }

    #[test]
    fn tool_calls_that_were_refused_are_no_evidence() {
        let refused = "Reading additional input from stdin...\n2026-11-21T21:00:33.363870Z ERROR codex_core::tools::router: error=unsupported call: no_such_tool\n";
        assert_eq!(evidence(refused), "");
        let failed = format!("{refused}Error: it rained\n");
        assert_eq!(evidence(&failed), "Error: it rained");
    }

    #[test]
    fn the_log_is_no_evidence_but_for_errors_of_the_cli() {
        let noise = "2026-11-21T21:00:33.363870Z ERROR rmcp::transport::streamable_http_client: fail to get common stream: Client error: streamable HTTP session\n\
                     2026-11-21T21:00:33.363870Z  WARN codex_core::plugins: git ls-remote failed: network error\n\
                     2026-11-21T21:00:33.363870Z  INFO codex_core: Error: anything\n\
                     2026-11-21T21:00:33.363870Z DEBUG h2: connection reset\n";
        assert_eq!(evidence(noise), "");
        let error = "2026-11-21T21:00:33.363870Z ERROR codex_core::session: Failed to create session: required MCP servers failed to initialize: tiny: timed out";
        assert_eq!(evidence(&format!("{noise}{error}\n")), error);
        assert_eq!(evidence("it is WARN only\n"), "it is WARN only");
    }
}
