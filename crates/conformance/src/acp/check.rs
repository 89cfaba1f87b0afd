//! Validation of an agent's output against the protocol's schema.

use std::collections::BTreeMap;

use agent_client_protocol_schema::v1::{
    CancelRequestNotification, CompleteElicitationNotification, CreateElicitationRequest,
    InitializeResponse, NewSessionResponse, PromptResponse, RequestPermissionRequest,
    SessionNotification,
};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Maximum length of an excerpt of a line, in characters.
const EXCERPT: usize = 300;

/// Prefixes of requests that a client without files and terminals does not support.
const NOT_OFFERED: [&str; 2] = ["fs/", "terminal/"];

/// Returns the violations in these lines by kind, with their numbers.
pub(crate) fn violations(lines: &[String]) -> BTreeMap<String, usize> {
    let mut found = BTreeMap::new();
    for line in lines {
        if let Some(problem) = violation(line) {
            *found.entry(problem).or_default() += 1;
        }
    }
    found
}

/// Returns the violation of a line, or `None` if it is valid.
pub(crate) fn violation(line: &str) -> Option<String> {
    if line.trim().is_empty() {
        return None;
    }
    let Ok(message) = serde_json::from_str::<Value>(line) else {
        return Some(format!("a line on stdout is no JSON: {}", excerpt(line)));
    };
    if message["jsonrpc"] != "2.0" {
        return Some("a message without `\"jsonrpc\":\"2.0\"`".to_owned());
    }
    match (message["method"].as_str(), message.get("id")) {
        (Some("session/update"), _) => {
            let update = &message["params"]["update"]["sessionUpdate"];
            let what = format!("session/update {}", update.as_str().unwrap_or("?"));
            read::<SessionNotification>(&what, &message["params"])
        }
        (Some(method @ "session/request_permission"), _) => {
            read::<RequestPermissionRequest>(method, &message["params"])
        }
        (Some(method @ "elicitation/create"), Some(_)) => {
            read::<CreateElicitationRequest>(method, &message["params"])
        }
        (Some(method @ "elicitation/complete"), None) => {
            read::<CompleteElicitationNotification>(method, &message["params"])
        }
        (Some(method @ "$/cancel_request"), None) => {
            read::<CancelRequestNotification>(method, &message["params"])
        }
        // Extensions are allowed.
        (Some(method), _) if method.starts_with('_') => None,
        (Some(method), Some(_)) if NOT_OFFERED.iter().any(|it| method.starts_with(it)) => Some(
            format!("it asks for `{method}`, which was not offered to it"),
        ),
        (Some(method), _) => Some(format!("`{method}` is no method of the protocol")),
        (None, None) => Some("a message that is no request and no answer".to_owned()),
        (None, Some(_)) => match &message["result"] {
            Value::Null => None,
            result if !result["protocolVersion"].is_null() => {
                read::<InitializeResponse>("the answer to `initialize`", result)
            }
            result if !result["sessionId"].is_null() => {
                read::<NewSessionResponse>("the answer to `session/new`", result)
            }
            result if !result["stopReason"].is_null() => {
                read::<PromptResponse>("the answer to `session/prompt`", result)
            }
            _ => None,
        },
    }
}

fn read<T: DeserializeOwned>(what: &str, value: &Value) -> Option<String> {
    let error = T::deserialize(value).err()?;
    Some(format!("{what}: {error}"))
}

/// Returns the beginning of a text on one line. Paths in it are the same in each run.
pub(crate) fn excerpt(text: &str) -> String {
    let text = without_suffix(&text.replace(['\n', '\r'], " "));
    if text.chars().count() <= EXCERPT {
        return text;
    }
    let begin: String = text.chars().take(EXCERPT).collect();
    format!("{begin}…")
}

/// Returns the message of an error without what the CLI has printed on stderr, which may have times of a single run.
pub(crate) fn without_stderr(message: &str) -> &str {
    let parts = message.split_once("; stderr: ");
    parts.map_or(message, |(message, _)| message)
}

/// Removes the random suffix that the folder of all runs has while another task uses its name.
fn without_suffix(text: &str) -> String {
    let mut parts = text.split(crate::FOLDER);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out.push_str(crate::FOLDER);
        let suffix = part.split('/').next().unwrap_or_default();
        let is_random = suffix.len() == 6 && suffix.bytes().all(|it| it.is_ascii_alphanumeric());
        out.push_str(if is_random { &part[6..] } else { part });
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_has_no_path_of_a_single_run() {
        for (text, shown) in [
            (
                "in /tmp/teamster-conformanceuxEamO/kilo/ws and /tmp/teamster-conformance/x",
                "in /tmp/teamster-conformance/kilo/ws and /tmp/teamster-conformance/x",
            ),
            (
                "teamster-conformance-report/x",
                "teamster-conformance-report/x",
            ),
            ("a\nb", "a b"),
        ] {
            assert_eq!(excerpt(text), shown);
        }
    }

    #[test]
    fn evidence_has_no_stderr() {
        // Made by hand.
        let silent = "printed nothing for 4s; stderr: 22:29:06 [INFO] no file; stderr: x";
        assert_eq!(without_stderr(silent), "printed nothing for 4s");
        assert_eq!(without_stderr("no model"), "no model");
    }

    #[test]
    fn violations_of_the_protocol_are_found() {
        for (line, problem) in [
            ("Welcome!", "is no JSON: Welcome!"),
            (r#"{"id":1,"result":{}}"#, "without `\"jsonrpc\""),
            (
                r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"x"}}}"#,
                "session/update x: unknown variant",
            ),
            (
                r#"{"jsonrpc":"2.0","method":"fs/read_text_file","id":3,"params":{}}"#,
                "was not offered",
            ),
            (
                r#"{"jsonrpc":"2.0","method":"elicitation/create","id":3,"params":{"mode":"form","sessionId":"s"}}"#,
                "elicitation/create: ",
            ),
            (
                r#"{"jsonrpc":"2.0","id":3,"result":{"stopReason":"tired"}}"#,
                "the answer to `session/prompt`: unknown variant",
            ),
        ] {
            let found = violation(line).unwrap();
            assert!(found.contains(problem), "{found}");
        }
    }

    #[test]
    fn valid_lines_have_none() {
        for line in [
            "",
            r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"hi"}}}}"#,
            r#"{"jsonrpc":"2.0","method":"_own/thing","params":{}}"#,
            r#"{"jsonrpc":"2.0","method":"elicitation/create","id":3,"params":{"mode":"form","sessionId":"s","message":"m","requestedSchema":{"type":"object","properties":{"a":{"type":"string"}}}}}"#,
            r#"{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":3}}"#,
            r#"{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}"#,
            r#"{"jsonrpc":"2.0","id":3,"error":{"code":-32000,"message":"no"}}"#,
        ] {
            assert_eq!(violation(line), None, "{line}");
        }
    }

    #[test]
    fn violations_of_a_kind_are_counted() {
        let lines = ["x", "x", ""].map(str::to_owned);
        let found = violations(&lines);
        assert_eq!(found.values().copied().collect::<Vec<_>>(), [2]);
    }
}
