//! The events of a run as text, for people to read and for tests to compare.
//!
//! Each event is one line: its type, followed by its fields. Ids have names in the order of their appearance
//! (`session#1`, `msg#1`, `tool#1`). Measured and random values are hidden ([`Redactor`]). Long strings are
//! cut in the middle and followed by their length and a short hash, so that every change is visible. A field
//! that the event lacks is omitted, or shown as `-` in some positions. `done` is followed by the fields of
//! its result, one per line.
//!
//! ```text
//! session      session#1 model=claude-opus-4-8 tools=2[Bash Read] mcp=[]
//! text         msg#1 "I look."
//! tool_use     tool#1 Bash execute {"command":"echo one"}
//! tool_result  tool#1 ok "one"
//! turn_end     ok end_turn in=12 out=25 $0.000685
//! done         completed exit=0
//! ```
//!
//! The text is stored next to its recording as a snapshot of insta: a header, followed by the lines.

#[cfg(feature = "conformance")]
mod check;
mod quote;
mod redact;
mod render;
mod result;

use similar::TextDiff;

#[cfg(feature = "conformance")]
pub use check::check;
pub use redact::{IdKind, Redactor};
pub use render::render;

/// Returns the difference between two snapshots as a unified diff, or `None` if they are equal.
pub fn diff(expected: &str, actual: &str) -> Option<String> {
    if expected == actual {
        return None;
    }
    let diff = TextDiff::from_lines(expected, actual);
    Some(
        diff.unified_diff()
            .context_radius(2)
            .header("expected", "actual")
            .to_string(),
    )
}

/// Returns the text of a snapshot file with these events, as insta writes it.
///
/// `source` is the path of the file with the asserting test, relative to the root of its workspace.
pub fn with_header(source: &str, events: &str) -> String {
    format!("---\nsource: {source}\n---\n{events}")
}

/// Returns the events in the text of a snapshot file.
pub fn without_header(text: &str) -> &str {
    let header_and_events = text
        .strip_prefix("---\n")
        .and_then(|rest| rest.split_once("\n---\n"));
    header_and_events.map_or(text, |(_, events)| events)
}

#[cfg(test)]
mod tests;
