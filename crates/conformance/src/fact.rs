//! Facts of stories, by name.

/// Facts and their meanings, except for those of tools (`tool1`, `tool1.output`, `tool1.lines`,
/// `tool1.failed`, …) and files (`file.NAME`).
pub(crate) const FACTS: &[(&str, &str)] = &[
    ("status", "how the run ended"),
    ("text", "all text of the agent"),
    ("thinking", "the model's reasoning"),
    (
        "streamed",
        "whether text that the model sent in pieces came in pieces",
    ),
    ("tools", "how many tools were called"),
    ("denials", "how often permission was denied"),
    ("error", "the kind of the last error"),
    ("error.code", "where it was found"),
    (
        "error.retryable",
        "whether the same request may succeed when it is made again",
    ),
    ("error.retry_after_ms", "how long to wait before that"),
    (
        "retried",
        "whether the run reported that the CLI asked the model again; or whether the turn after one that broke off had to wait until the session could be resumed",
    ),
    ("warned", "whether a warning named the MCP server"),
    ("usage.input", "input tokens beside the cached ones"),
    ("usage.output", "output tokens"),
    ("usage.cache_read", "input tokens read from a cache"),
    ("usage.cache_write", "input tokens written to a cache"),
    ("usage.reasoning", "reasoning tokens"),
    ("cost", "whether the CLI reported the cost of the run"),
    (
        "session",
        "whether the session is known: `new`, or `same` as before",
    ),
    (
        "process",
        "in a session: whether the process that played the turn was there before and lives on (`same`), was started for it (`new`), or is gone (`ended`)",
    ),
    (
        "unasked",
        "in a session: how many further turns, which the CLI began by itself, reported its end",
    ),
    (
        "prompt",
        "whether the prompt reached the model byte for byte",
    ),
    (
        "plan",
        "the agent's last plan: its entries with their states",
    ),
    ("structured", "the answer by a JSON Schema"),
    ("image", "whether the image reached the model"),
    (
        "answered",
        "whether the caller's answer to a question reached the model as the result of the call",
    ),
    (
        "remembered",
        "how often the prompt of the run before is in the last request to the model",
    ),
    ("processes", "processes that were left after the end"),
    (
        "grammar",
        "how its events are not a stream as the grammar has it: each call begins once, and has one result or is open at the end",
    ),
    (
        "rules",
        "rules of every run that it broke: all text is the model's, a completed run has no open call and no open request, its tokens are those of the model's answers and no less than during the run, those of a session are those in the CLI's files, and what the CLI lists as denied is among the denials",
    ),
    (
        "unknown_lines",
        "lines of output that the decoder does not know",
    ),
    ("other_lines", "lines of output that are no JSON"),
];

pub(crate) fn is_fact(name: &str) -> bool {
    let (base, part) = name.split_once('.').unwrap_or((name, ""));
    let numbered = base
        .strip_prefix("tool")
        .is_some_and(|number| number.parse::<usize>().is_ok());
    FACTS.iter().any(|(fact, _)| *fact == name)
        || (numbered && matches!(part, "" | "output" | "lines" | "failed"))
        || (base == "file" && !part.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_known_by_name() {
        for name in [
            "status",
            "usage.input",
            "tool1",
            "tool12.output",
            "file.a.txt",
        ] {
            assert!(is_fact(name), "{name}");
        }
        for name in ["state", "usage.in", "tool", "tool1.input", "file", "file."] {
            assert!(!is_fact(name), "{name}");
        }
    }
}
