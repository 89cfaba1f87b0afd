//! A status line for Claude Code: formats the JSON on stdin as one line.
//!
//! It reads no other files, so that it is fast.

use std::io::{self, Read, Write};

use anyhow::anyhow;
use jiff::Timestamp;
use teamster::usage::ClaudeStatusLine;

use super::limits;
use crate::{exit_code, words};

/// The maximum size of the input in bytes; Claude Code writes a few kilobytes.
const LONGEST: u64 = 1 << 20;

/// Prints the line and returns the exit code.
pub(super) fn main() -> anyhow::Result<u8> {
    let mut text = Vec::new();
    io::stdin().take(LONGEST).read_to_end(&mut text)?;
    let input = ClaudeStatusLine::parse(&text).map_err(|error| {
        exit_code::misuse(anyhow!(
            "stdin is not the JSON of Claude Code's status line ({error}); set \
             \"statusLine\": {{\"type\": \"command\", \"command\": \"teamster usage --statusline\"}} \
             in its settings.json"
        ))
    })?;
    let line = line(&input, Timestamp::now());
    exit_code::of_printed(writeln!(io::stdout(), "{line}"))
}

fn line(input: &ClaudeStatusLine, now: Timestamp) -> String {
    let mut parts = Vec::new();
    if let Some(name) = &input.model {
        let fast = if input.is_fast { " fast" } else { "" };
        parts.push(format!("{name}{fast}"));
    }
    let directory = input.directory.as_deref();
    if let Some(name) = directory.and_then(|path| path.rsplit(['/', '\\']).find(|s| !s.is_empty()))
    {
        parts.push(name.to_owned());
    }
    if let Some(used) = input.context_percent {
        parts.push(format!("context {}%", used.round()));
    }
    if let Some(usd) = input.cost_usd {
        parts.push(words::usd(usd));
    }
    for (name, limit) in [("5h", input.five_hours), ("7d", input.seven_days)] {
        let Some(limit) = limit else { continue };
        let resets = (limit.resets_at)
            .and_then(|at| Timestamp::try_from(at).ok())
            .filter(|at| *at > now)
            .map_or_else(String::new, |at| format!(" ({})", limits::span(now, at)));
        parts.push(format!("{name} {}%{resets}", limit.percent.round()));
    }
    words::one_line(&parts.join(" | "))
}

#[cfg(test)]
mod tests {
    use super::*;

    // Handwritten, with the fields of Claude Code 2.1.330.
    const INPUT: &str = r#"{"session_id":"s","transcript_path":"/t","cwd":"/w/app","model":{"id":"claude-opus-4-8",
        "display_name":"Opus 4.8"},"workspace":{"current_dir":"/w/app","project_dir":"/w/app","added_dirs":[]},
        "version":"2.1.330","cost":{"total_cost_usd":0.25,"total_duration_ms":1,"total_api_duration_ms":1,
        "total_lines_added":0,"total_lines_removed":0},"context_window":{"total_input_tokens":84000,
        "context_window_size":200000,"current_usage":null,"used_percentage":42,"remaining_percentage":58},
        "fast_mode":true,"rate_limits":{"five_hour":{"used_percentage":31.4,"resets_at":1795418220},
        "seven_day":{"used_percentage":3,"resets_at":1795400000}}}"#;

    fn shown(text: &str) -> String {
        let now = Timestamp::from_second(1_795_410_000).unwrap();
        line(&ClaudeStatusLine::parse(text.as_bytes()).unwrap(), now)
    }

    #[test]
    fn status_line_has_model_directory_context_cost_and_limits() {
        let usd = words::usd(0.25);
        assert_eq!(
            shown(INPUT),
            format!("Opus 4.8 fast | app | context 42% | {usd} | 5h 31% (2h 17m) | 7d 3%")
        );
    }

    #[test]
    fn missing_parts_of_a_status_line_are_omitted() {
        assert_eq!(shown("{}"), "");
        let unknown = r#"{"model":{"id":"m"},"context_window":{"used_percentage":null}}"#;
        assert_eq!(shown(unknown), "m");
    }
}
