//! MCP servers that did not start. In a run, only the log on stderr reports them.

use std::borrow::Cow;
use std::collections::BTreeSet;

use teamster_core::provider::Events;
use teamster_core::text::excerpt;
use teamster_core::{McpTool, NoticeLevel, NoticeSource};

use super::errors::log_line;

/// Prefix of a failed server's name, which is quoted, and of the reason.
const NOT_STARTED: &str = "codex_mcp::rmcp_client: MCP server startup failed server_name=\"";
const REASON: &str = "\" error=";

/// Reasons of a server that has exited, including one that a shell could not start.
const ENDED: &[&str] = &["connection closed: initialize", "Broken pipe"];

/// Largest shown part of a reason, in bytes. A server's response can be a whole page.
const LONGEST_REASON: usize = 1024;

/// Returns the server and the tool of a call. `None` for the CLI's own tools for resources of all servers, for which
/// it names itself as the server.
pub(super) fn of_call(server: Cow<'_, str>, tool: &str) -> Option<McpTool> {
    const OWN: &[&str] = &[
        "list_mcp_resources",
        "list_mcp_resource_templates",
        "read_mcp_resource",
    ];
    let is_own = server == "codex" && OWN.contains(&tool);
    (!is_own).then(|| McpTool::new(server.into_owned(), tool))
}

/// Reports each server that did not start, once, with the reason.
pub(super) fn notices(stderr: &str, out: &mut Events) {
    let mut seen = BTreeSet::new();
    for line in stderr.lines() {
        let failed =
            log_line(line).and_then(|(_, rest)| rest.split_once(NOT_STARTED)?.1.split_once(REASON));
        if let Some((name, reason)) = failed
            && seen.insert(name)
        {
            out.notice(
                NoticeLevel::Warning,
                NoticeSource::Stderr,
                not_started(name, reason),
            );
        }
    }
}

/// Returns the message that this server did not start, with a short form of the CLI's reason.
pub(crate) fn not_started(name: &str, reason: &str) -> String {
    let reason = reason.trim();
    let reason = match reason.split_once("MCP startup failed: ") {
        Some((before, reason)) if before.starts_with("MCP client for") => reason,
        _ => reason,
    };
    let mut reason = excerpt(in_short(reason), LONGEST_REASON);
    if ENDED.iter().any(|sign| reason.starts_with(sign)) {
        reason.push_str(" (it ended before it answered, or there is no such program)");
    }
    format!("the MCP server {name} failed to start: {reason}")
}

/// Strips the CLI's framing and repetitions from a reason.
fn in_short(reason: &str) -> &str {
    let reason = reason
        .strip_prefix("handshaking with MCP server failed: ")
        .unwrap_or(reason);
    let half = reason.len().saturating_sub(2) / 2;
    let reason = match (reason.get(..half), reason.get(half..)) {
        (Some(first), Some(rest)) if half > 0 && rest.strip_prefix(": ") == Some(first) => first,
        _ => reason,
    };
    // Names of the CLI's own types, in brackets.
    let reason = reason
        .strip_prefix("Send message error Transport [")
        .and_then(|rest| rest.split_once("] error: "))
        .map_or(reason, |(_, reason)| reason);
    reason
        .strip_suffix(", when send initialize request")
        .unwrap_or(reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reported(stderr: &str) -> Vec<String> {
        let mut out = Events::new();
        notices(stderr, &mut out);
        let json = out
            .as_slice()
            .iter()
            .map(|event| serde_json::to_value(event).unwrap());
        json.map(|event| {
            assert_eq!(event["type"], "notice");
            assert_eq!(event["level"], "warning");
            assert_eq!(event["source"], "stderr");
            event["message"].as_str().unwrap().to_owned()
        })
        .collect()
    }

    /// Lines of the real program. The line of the HTTP server is shortened by some type names.
    #[test]
    fn a_server_that_did_not_start_is_named_with_the_reason() {
        for (line, message) in [
            (
                "2026-11-22T04:24:47.327161Z  WARN codex_mcp::rmcp_client: MCP server startup failed server_name=\"t\" error=handshaking with MCP server failed: connection closed: initialize response: connection closed: initialize response",
                "the MCP server t failed to start: connection closed: initialize response (it ended before it answered, or there is no such program)",
            ),
            (
                "2026-11-22T04:24:50.055704Z  WARN codex_mcp::rmcp_client: MCP server startup failed server_name=\"my-srv\" error=timed out handshaking with MCP server after 1.499999529s: deadline has elapsed",
                "the MCP server my-srv failed to start: timed out handshaking with MCP server after 1.499999529s: deadline has elapsed",
            ),
            (
                "2026-11-22T04:24:51.664138Z  WARN codex_mcp::rmcp_client: MCP server startup failed server_name=\"t\" error=No such file or directory (os error 2)",
                "the MCP server t failed to start: No such file or directory (os error 2)",
            ),
            (
                "2026-11-22T04:24:54.639979Z  WARN codex_mcp::rmcp_client: MCP server startup failed server_name=\"t\" error=handshaking with MCP server failed: Send message error Transport [codex_rmcp_client::X<Y>] error: unexpected server response: HTTP 401: {\"error\": \"no\"}, when send initialize request: Send message error Transport [codex_rmcp_client::X<Y>] error: unexpected server response: HTTP 401: {\"error\": \"no\"}, when send initialize request",
                "the MCP server t failed to start: unexpected server response: HTTP 401: {\"error\": \"no\"}",
            ),
            (
                "2026-11-22T04:22:08.858819Z  WARN app_server.request{otel.kind=\"server\"}:new{server_name=t}:mcp.request: codex_mcp::rmcp_client: MCP server startup failed server_name=\"t\" error=it rained",
                "the MCP server t failed to start: it rained",
            ),
        ] {
            assert_eq!(reported(line), [message]);
        }
    }

    #[test]
    fn each_server_is_named_once_and_nothing_else_is() {
        let failed = |name: &str, why: &str| {
            format!(
                "2026-11-22T04:24:51.664138Z  WARN codex_mcp::rmcp_client: MCP server startup failed server_name=\"{name}\" error={why}\n"
            )
        };
        let stderr = [
            failed("a", "one"),
            "2026-11-22T04:24:51.924279Z  WARN codex_mcp::rmcp_client: failed to initialize MCP client during shutdown: MCP startup failed: one\n".into(),
            "codex_mcp::rmcp_client: MCP server startup failed server_name=\"c\" error=no line of the log\n".into(),
            failed("b", &"é".repeat(2000)),
            failed("a", "two"),
        ]
        .concat();
        let reported = reported(&stderr);
        assert_eq!(reported.len(), 2, "{reported:?}");
        assert_eq!(reported[0], "the MCP server a failed to start: one");
        assert!(reported[1].starts_with("the MCP server b failed to start: éé"));
        assert!(reported[1].len() < 1200);
    }

    #[test]
    fn a_reason_without_a_repetition_is_kept() {
        for reason in ["", "a", ": ", "aa", "a: b", "é: é!", "x: y: z"] {
            assert_eq!(in_short(reason), reason);
        }
        assert_eq!(in_short("é: é"), "é");
    }
}
