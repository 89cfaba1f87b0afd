//! The CLI's log on stderr: lines of `name=value`.

use std::collections::HashSet;

use serde_json::Deserializer;

/// Prefix of every line of the log.
const BEGIN: &str = "timestamp=";

pub(crate) fn without_log(stderr: &str) -> String {
    let rest: Vec<_> = stderr
        .lines()
        .filter(|line| !line.starts_with(BEGIN))
        .collect();
    rest.join("\n").trim().to_owned()
}

/// Returns stderr without warnings, after which a run continues.
pub(crate) fn without_warnings(stderr: &str) -> String {
    let reported: Vec<_> = stderr.lines().filter(|line| !is_warning(line)).collect();
    reported.join("\n").trim().to_owned()
}

/// Returns the first message of the log about each missing MCP server.
pub(crate) fn missing_servers(stderr: &str) -> Vec<String> {
    let mut names = HashSet::new();
    let found = stderr.lines().filter_map(missing_server);
    let found = found.filter(|(name, _)| names.insert(name.clone()));
    found.map(|(_, notice)| notice).collect()
}

/// Returns a server's name and the message about it.
fn missing_server(line: &str) -> Option<(String, String)> {
    if !is_warning(line) {
        return None;
    }
    match value(line, "message")?.as_str() {
        "server unavailable" => {
            let name = value(line, "key")?;
            let status = value(line, "status").unwrap_or_default();
            let notice = if status == "needs_auth" {
                format!(
                    "the MCP server {name} is missing, because it wants a login ({status}): log in \
                     with `opencode mcp auth {name}`, or give it a header"
                )
            } else if status == "needs_client_registration" {
                format!(
                    "the MCP server {name} is missing, because it wants a login ({status}) and does \
                     not let OpenCode register for it: set `oauth.clientId` in its configuration and \
                     log in with `opencode mcp auth {name}`, or give it a header"
                )
            } else {
                format!(
                    "the MCP server {name} is missing, because it did not start or could not be \
                     reached ({status}; OpenCode does not say why)"
                )
            };
            Some((name, notice))
        }
        "MCP connection closed" => {
            let name = value(line, "server")?;
            let notice = format!("the MCP server {name} has ended, or its connection");
            Some((name, notice))
        }
        _ => None,
    }
}

/// Returns messages of the log about failed requests to the model, in order. Requests of sub-agents and for a title
/// are not the run's own.
pub(crate) fn failed_requests(stderr: &str, session: Option<&str>) -> Vec<String> {
    let failed = |line: &str| {
        let is = |name: &str, wanted: &str| value(line, name).is_some_and(|found| found == wanted);
        if !line.starts_with(BEGIN)
            || !is("message", "stream error")
            || !is("small", "false")
            || session.is_some_and(|session| !is("session.id", session))
        {
            return None;
        }
        let error = value(line, "error.error").or_else(|| value(line, "error.error.message"))?;
        // The name of the error's class is not part of the message.
        let error = match error.split_once(": ") {
            Some((class, rest)) if class.starts_with("AI_") => rest.to_owned(),
            _ => error,
        };
        Some(error)
    };
    stderr.lines().filter_map(failed).collect()
}

fn is_warning(line: &str) -> bool {
    line.starts_with(BEGIN) && value(line, "level").is_some_and(|level| level == "WARN")
}

/// Returns the value of this name: a word, or a JSON string.
fn value(line: &str, name: &str) -> Option<String> {
    let mut rest = line;
    loop {
        let (found, after) = rest.split_once('=')?;
        let (value, after) = if after.starts_with('"') {
            let mut values = Deserializer::from_str(after).into_iter::<String>();
            let value = values.next()?.ok()?;
            (value, &after[values.byte_offset()..])
        } else {
            let end = after.find(' ').unwrap_or(after.len());
            (after[..end].to_owned(), &after[end..])
        };
        if found.trim_start() == name {
            return Some(value);
        }
        rest = after;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_is_taken_out() {
        let log = "timestamp=2026-11-22T01:30:29.560Z level=ERROR message=x";
        assert_eq!(without_log(&format!("{log}\nError: no\n")), "Error: no");
        assert_eq!(without_log(log), "");
    }

    // Lines of the real program.
    const BROKEN: &str = "timestamp=2026-11-22T04:18:31.244Z level=WARN run=f94403d0 \
        message=\"server unavailable\" key=broken type=local status=failed";
    const QUOTED: &str = "timestamp=2026-11-22T04:26:24.625Z level=WARN run=1d08a223 \
        message=\"server unavailable\" key=\"my s\\\"r=v\" type=local status=failed";
    const LOGIN: &str = "timestamp=2026-11-22T04:26:25.088Z level=WARN run=1d08a223 \
        message=\"server unavailable\" key=needs type=remote status=needs_auth";
    const CLOSED: &str = "timestamp=2026-11-22T04:26:26.415Z level=WARN run=1d08a223 \
        message=\"MCP connection closed\" server=crash";
    const OTHER: &str = "timestamp=2026-11-22T04:21:07.839Z level=WARN run=21bae487 \
        message=\"background dependency install failed\" dir=/h/.config/opencode \
        error=\"Cause([Fail(NpmInstallFailedError (cause: FetchError: failed, reason: ECONNREFUSED))])\"";

    #[test]
    fn a_server_that_is_missing_is_reported_once_with_its_name() {
        let stderr = [
            BROKEN,
            QUOTED,
            BROKEN,
            LOGIN,
            OTHER,
            CLOSED,
            "key=x",
            "level=WARN",
        ]
        .join("\n");
        let reported = missing_servers(&stderr);
        assert_eq!(reported.len(), 4, "{reported:?}");
        for (reported, begin) in reported.iter().zip([
            "the MCP server broken is missing, because it did not start",
            "the MCP server my s\"r=v is missing, because it did not start",
            "the MCP server needs is missing, because it wants a login (needs_auth)",
            "the MCP server crash has ended",
        ]) {
            assert!(reported.starts_with(begin), "{reported}");
        }
    }

    #[test]
    fn a_server_that_is_missing_in_two_ways_is_reported_once() {
        let closed = CLOSED.replace("server=crash", "server=broken");
        for (log, begin) in [
            (
                format!("{BROKEN}\n{closed}"),
                "the MCP server broken is missing",
            ),
            (
                format!("{closed}\n{BROKEN}"),
                "the MCP server broken has ended",
            ),
        ] {
            let reported = missing_servers(&log);
            assert_eq!(reported.len(), 1, "{reported:?}");
            assert!(reported[0].starts_with(begin), "{reported:?}");
        }
    }

    // Hand-made in the same form: the status is from the source.
    #[test]
    fn a_server_without_registration_wants_a_login() {
        let line = LOGIN.replace("needs_auth", "needs_client_registration");
        let reported = missing_servers(&line);
        assert!(
            reported[0].starts_with(
                "the MCP server needs is missing, because it wants a login \
                 (needs_client_registration)"
            ),
            "{reported:?}"
        );
    }

    #[test]
    fn a_text_that_looks_like_a_field_is_none() {
        let line = "timestamp=t level=ERROR message=\"level=WARN message=\\\"server unavailable\\\" key=x\"";
        assert!(missing_servers(line).is_empty());
        let line = "timestamp=t level=WARN error=\" key=y\" message=\"server unavailable\" key=z";
        assert!(missing_servers(line)[0].contains(" z "));
        assert!(missing_servers("timestamp=t level=WARN message=\"server unav").is_empty());
    }

    #[test]
    fn warnings_are_no_evidence() {
        let stderr = format!("{OTHER}\nError: no\ntimestamp=t level=ERROR message=x");
        assert_eq!(
            without_warnings(&stderr),
            "Error: no\ntimestamp=t level=ERROR message=x"
        );
    }
}
