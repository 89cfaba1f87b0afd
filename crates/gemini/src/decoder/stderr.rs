//! What Gemini CLI says on stderr.

use teamster_core::{ErrorKind, without_colors};

use super::errors::kind_of_text;
use super::mcp::Trouble;

/// Between the number of the attempt that failed and the error, which Node prints with where it was
/// thrown.
const RETRYING: &str = "Retrying with backoff... ";

/// Whether the CLI went on without the rules that it was given.
pub(super) fn policy_was_ignored(stderr: &str) -> bool {
    stderr.contains("Ignoring --admin-policy") || stderr.contains("Policy file error in teamster-")
}

/// What it means that the CLI did not begin, which it only explains on stderr.
pub(super) fn kind_of_stderr(stderr: &str) -> Option<ErrorKind> {
    const MEANINGS: &[(&str, ErrorKind)] = &[
        (
            "No previous sessions found for this project",
            ErrorKind::SessionNotFound,
        ),
        ("Invalid session identifier", ErrorKind::SessionNotFound),
        ("Error resuming session", ErrorKind::SessionNotFound),
        ("Error starting session", ErrorKind::Invalid),
        ("Invalid session ID", ErrorKind::Invalid),
        ("Invalid auth method selected", ErrorKind::Auth),
        ("Please set an Auth method", ErrorKind::Auth),
        ("you must specify the GEMINI_API_KEY", ErrorKind::Auth),
        ("you must specify either", ErrorKind::Auth),
        (
            "is not running in a trusted directory",
            ErrorKind::Permission,
        ),
        ("YOLO mode is disabled", ErrorKind::Permission),
        ("No input provided via stdin", ErrorKind::Invalid),
        ("Unknown argument", ErrorKind::Invalid),
        ("Not enough arguments following", ErrorKind::Invalid),
        ("Invalid values:", ErrorKind::Invalid),
        ("Cannot use both", ErrorKind::Invalid),
        ("FatalSandboxError", ErrorKind::NotFound),
        (
            "failed to determine command for sandbox",
            ErrorKind::NotFound,
        ),
        ("Please fix the configuration file", ErrorKind::Invalid),
    ];
    ErrorKind::of_words(stderr, MEANINGS)
}

/// What stderr says beside the warnings and the requests that failed and were repeated, up to the
/// help.
pub(super) fn evidence(stderr: &str) -> String {
    let plain = without_colors(stderr);
    let mut said = Vec::new();
    let lines = plain
        .lines()
        .take_while(|line| !line.starts_with("Usage: "));
    let mut rest = lines.collect::<Vec<_>>().into_iter();
    while let Some(line) = rest.next() {
        if is_of_stack(line) {
            if line.ends_with(" {") {
                skip_fields(&mut rest);
            }
        } else if attempt(line).is_some() {
            // The rest of a message of several lines, up to where it was thrown.
            let more = rest
                .as_slice()
                .iter()
                .take_while(|l| attempt(l).is_none())
                .position(|l| is_of_stack(l));
            if let Some(more @ 1..) = more.filter(|_| line.contains(RETRYING)) {
                rest.nth(more - 1);
            }
        } else if !is_noise(line) {
            said.push(line);
        }
    }
    said.join("\n").trim().to_owned()
}

/// A line of where an error was thrown.
fn is_of_stack(line: &str) -> bool {
    line.starts_with("    at ")
}

/// Goes past the fields of an error, which Node prints after where it was thrown.
fn skip_fields(lines: &mut std::vec::IntoIter<&str>) {
    while lines
        .as_slice()
        .first()
        .is_some_and(|line| line.starts_with(' ') || *line == "}")
    {
        if lines.next() == Some("}") {
            return;
        }
    }
}

/// What the CLI says of a request that failed and was repeated: all after the number of the attempt.
fn attempt(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("Attempt ")?;
    let rest = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    let said = rest.strip_prefix(" failed")?;
    (said.contains(RETRYING) || said.ends_with("Max attempts reached")).then_some(said)
}

/// The last request of which the CLI says that it failed and was to be repeated.
#[derive(Debug, PartialEq)]
pub(super) struct Retry {
    /// For a person, to follow "the last request that the CLI told of failed".
    pub(super) how: String,
    pub(super) kind: Option<ErrorKind>,
}

impl Retry {
    /// The last one on stderr.
    pub(super) fn last(stderr: &str) -> Option<Self> {
        let plain = without_colors(stderr);
        let said = plain.lines().rev().find_map(attempt)?;
        let status = said.strip_prefix(" with status ").map(digits);
        let how = match status {
            Some(status) if !status.is_empty() => format!(" with status {status}"),
            _ => {
                let error = said.split_once(RETRYING).map(|(_, error)| error);
                error.map_or_else(String::new, |error| format!(": {error}"))
            }
        };
        let kind = kind_of_text(said).or_else(|| ErrorKind::of_message(said));
        let kind = kind.or_else(|| ErrorKind::of_http_status(status?.parse().ok()?));
        Some(Self { how, kind })
    }
}

/// The digits that a text begins with.
fn digits(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_ascii_digit());
    &text[..end.unwrap_or(text.len())]
}

/// What the CLI says on stderr whether it fails or not.
fn is_noise(line: &str) -> bool {
    [
        "Warning: ",
        "YOLO mode is enabled",
        "Approval mode overridden",
        "Ripgrep is not available",
        "Blocked dangerous environment variable",
        "Error executing tool ",
        "[STARTUP]",
    ]
    .iter()
    .any(|words| line.starts_with(words))
        || Trouble::of(line).is_some()
}
