//! The events of a run as text, made to be read by a person and to be compared.
//!
//! One event is one line: its type, then its fields. Ids have names in order of their appearance
//! (`session#1`, `msg#1`, `tool#1`); what is measured or drawn by lot is hidden ([`Redactor`]);
//! long strings are cut in the middle and followed by their length and a short hash, so that every
//! change of them shows. A field is absent from the line when it is absent from the event, except
//! where `-` stands for it. `done` is followed by the fields of its result, one a line.
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
//! Rendering takes every event and every type of field apart by name, so that a field that is
//! added to the vocabulary and not here does not compile.
//!
//! The text is kept beside its recording as a snapshot of insta's: a header, then the lines.

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

/// The difference between two snapshots as a unified diff, or `None` if they are the same.
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

/// The text of a snapshot file with these events, as insta writes it.
///
/// `source` is the file with the test that asserts it, from the root of its workspace.
pub fn with_header(source: &str, events: &str) -> String {
    format!("---\nsource: {source}\n---\n{events}")
}

/// The events in the text of a snapshot file.
pub fn without_header(text: &str) -> &str {
    let header_and_events = text
        .strip_prefix("---\n")
        .and_then(|rest| rest.split_once("\n---\n"));
    header_and_events.map_or(text, |(_, events)| events)
}

#[cfg(test)]
mod tests;
