//! Gemini CLI's output on stderr.

use teamster_core::ErrorKind;
use teamster_core::text::without_colors;

use super::errors::{kind_of_message, message_in};
use super::mcp::Trouble;

/// Text between the number of the failed attempt and the error, which Node prints with its stack.
const RETRYING: &str = "Retrying with backoff... ";

/// Text between the service's message and the pause before the next attempt.
const AFTER: &str = " Retrying after ";

/// Text after the service's message if there is no further attempt.
const LAST: &str = "Max attempts reached";

/// Returns whether the CLI continued without the rules of the run.
pub(crate) fn policy_was_ignored(stderr: &str) -> bool {
    stderr.contains("Ignoring --admin-policy") || stderr.contains("Policy file error in teamster-")
}

/// Classifies a failed start, which the CLI explains only on stderr.
pub(crate) fn kind_of_stderr(stderr: &str) -> Option<ErrorKind> {
    const PATTERNS: &[(&str, ErrorKind)] = &[
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
    ErrorKind::by_patterns(stderr, PATTERNS)
}

/// Returns stderr up to the help, without warnings and without failed requests that were repeated.
pub(crate) fn evidence(stderr: &str) -> String {
    let plain = without_colors(stderr);
    let lines: Vec<_> = plain
        .lines()
        .take_while(|line| !line.starts_with("Usage: "))
        .collect();
    let mut kept = Vec::new();
    let mut at = 0;
    while let Some(line) = lines.get(at) {
        let rest = &lines[at..];
        at += if is_of_stack(line) {
            1 + if line.ends_with(" {") {
                fields(&rest[1..])
            } else {
                0
            }
        } else if let Some(attempt) = Attempt::read(rest) {
            attempt.lines
        } else {
            if !is_noise(line) {
                kept.push(*line);
            }
            1
        };
    }
    kept.join("\n").trim().to_owned()
}

/// Text before the path of a file with the details of the error that ended a run.
const REPORT: &str = "Full report available at: ";

/// Returns the message of the error that ended the run. In the event stream of some versions the error is only
/// unknown.
pub(crate) fn reported(stderr: &str) -> Option<String> {
    let plain = without_colors(stderr);
    let (_, rest) = plain.rsplit_once(REPORT)?;
    let (_, thrown) = rest.split_once(".json ")?;
    let lines = thrown.lines().take_while(|line| !is_of_stack(line));
    let error = lines.collect::<Vec<_>>().join("\n");
    let message = without_class(&error);
    (!message.is_empty()).then(|| message.to_owned())
}

/// Returns an error's message without the class that Node puts before it.
fn without_class(error: &str) -> &str {
    let named = error.split_once(": ");
    let message = named.filter(|(name, _)| name.chars().all(|c| c.is_alphanumeric() || c == '_'));
    message.map_or(error, |(_, message)| message).trim()
}

/// Returns a notice for each sub-agent that failed. In the event stream their calls are as those of others.
pub(crate) fn failed_agents(stderr: &str) -> Vec<String> {
    let plain = without_colors(stderr);
    let failed = plain.lines().filter_map(failed_agent);
    let notice =
        |(name, why): (&str, &str)| format!("the sub-agent {name:?} failed: {}", message_in(why));
    failed.map(notice).collect()
}

/// Returns the name of the sub-agent that failed by this line, and the reason.
fn failed_agent(line: &str) -> Option<(&str, &str)> {
    let (name, why) = line.strip_prefix("Subagent '")?.split_once("' failed: ")?;
    Some((name, without_class(why)))
}

fn is_of_stack(line: &str) -> bool {
    line.starts_with("    at ")
}

/// Counts the lines with fields of an error, which Node prints after the stack.
fn fields(lines: &[&str]) -> usize {
    let is_field = |line: &&&str| line.starts_with(' ') || **line == "}";
    let count = lines.iter().take_while(is_field).count();
    let end = lines[..count].iter().position(|line| *line == "}");
    end.map_or(count, |end| end + 1)
}

/// The CLI's message about a failed request.
#[derive(Debug)]
struct Attempt<'a> {
    /// The first line after the number.
    first: &'a str,
    /// Number of lines, without the stack.
    lines: usize,
}

impl<'a> Attempt<'a> {
    /// Parses the message at the beginning of these lines.
    fn read(lines: &[&'a str]) -> Option<Self> {
        let first = Self::begin(lines.first()?)?;
        let until = lines[1..].iter();
        let more = until.take_while(|line| Self::begin(line).is_none());
        let last = if first.contains(RETRYING) {
            // A message of several lines ends at its stack.
            more.clone()
                .position(|line| is_of_stack(line))
                .unwrap_or_default()
        } else if is_end(first) {
            0
        } else {
            first.strip_prefix(": ")?;
            let mut message = more.take_while(|line| !is_of_stack(line));
            message.position(|line| is_end(line))? + 1
        };
        Some(Self {
            first,
            lines: 1 + last,
        })
    }

    /// Returns the text after the number, if the line begins such a message.
    fn begin(line: &'a str) -> Option<&'a str> {
        let rest = line.strip_prefix("Attempt ")?;
        rest.trim_start_matches(|c: char| c.is_ascii_digit())
            .strip_prefix(" failed")
    }
}

/// Returns whether a line ends with the CLI's next action, which follows the service's message.
fn is_end(line: &str) -> bool {
    let pause = line
        .strip_suffix("ms...")
        .and_then(|rest| rest.rsplit_once(AFTER));
    line.ends_with(LAST) || pause.is_some_and(|(_, ms)| ms.parse::<u64>().is_ok())
}

/// The last failed request that was to be repeated.
#[derive(Debug, PartialEq)]
pub(crate) struct Retry {
    /// The rest of the message about the last failed request.
    pub(crate) how: String,
    pub(crate) kind: Option<ErrorKind>,
}

impl Retry {
    /// Finds the last one on stderr.
    pub(crate) fn last(stderr: &str) -> Option<Self> {
        let plain = without_colors(stderr);
        let lines: Vec<_> = plain.lines().collect();
        let mut begins = (0..lines.len()).rev();
        let (at, attempt) = begins.find_map(|at| Some((at, Attempt::read(&lines[at..])?)))?;
        let first = attempt.first;
        let status = first.strip_prefix(" with status ").map(digits);
        let how = match status {
            Some(status) if !status.is_empty() => format!(" with status {status}"),
            _ => {
                let error = first.split_once(RETRYING).map(|(_, error)| error);
                let error = error.or_else(|| first.strip_prefix(": ").map(message));
                error.map_or_else(String::new, |error| format!(": {error}"))
            }
        };
        let all = lines[at..at + attempt.lines].join("\n");
        let kind =
            kind_of_message(&all).or_else(|| ErrorKind::of_http_status(status?.parse().ok()?));
        Some(Self { how, kind })
    }
}

/// Returns the service's message without the CLI's addition.
fn message(text: &str) -> &str {
    let end = [AFTER, LAST].iter().find_map(|words| text.rfind(words));
    let Some(end) = end else { return text };
    let message = text[..end].trim_end();
    message.strip_suffix('.').unwrap_or(message)
}

/// Returns the digits at the beginning of a text.
fn digits(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_ascii_digit());
    &text[..end.unwrap_or(text.len())]
}

/// Returns whether the CLI also prints this line in successful runs.
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
        || failed_agent(line).is_some()
}
