//! Frames that join close text deltas into one entry.

use std::mem;
use std::time::{Duration, Instant};

use teamster_api::{RunEvent, RunLogEntry};
use teamster_core::AgentEvent;

/// Longest wait of a delta for the next one.
const FRAME: Duration = Duration::from_millis(100);
/// Size at which a frame is written without further wait, in bytes.
const FULL: usize = 64 * 1024;

/// Joins deltas of one message. The first delta of a message does not wait, so that readers see its beginning
/// at once. All other entries are unchanged and keep their order.
#[derive(Debug, Default)]
pub(super) struct Frames {
    /// Waiting deltas of different messages or kinds, in the order of their beginnings.
    pending: Vec<RunLogEntry>,
    bytes: usize,
    /// End of the current frame.
    end: Option<Instant>,
    /// First deltas of the messages in the current frame.
    begun: Vec<RunLogEntry>,
}

impl Frames {
    /// Takes an entry. Complete entries are appended to `out`.
    pub(super) fn push(&mut self, entry: RunLogEntry, now: Instant, out: &mut Vec<RunLogEntry>) {
        let Some(text) = delta(&entry) else {
            self.flush(out);
            self.end = None;
            out.push(entry);
            return;
        };
        if self.end.is_none_or(|end| now >= end) {
            self.flush(out);
            self.begun.clear();
            self.end = Some(now + FRAME);
        }
        let belongs = |begun: &RunLogEntry| same_kind(begun, &entry) && same_message(begun, &entry);
        if !self.begun.iter().any(belongs) {
            self.flush(out);
            self.begun.push(entry.clone());
            out.push(entry);
            return;
        }
        self.bytes += text.len();
        // Only the last delta of its kind is extended: interleaved messages stay interleaved.
        let last = (self.pending.iter_mut().rev()).find(|pending| same_kind(pending, &entry));
        let joined = last.is_some_and(|last| same_message(last, &entry) && join(last, text));
        if !joined {
            self.pending.push(entry);
        }
        if self.bytes >= FULL {
            self.flush(out);
        }
    }

    /// Ends the frame and appends all waiting deltas to `out`. Further deltas of the same messages wait for the
    /// end of the next frame.
    pub(super) fn end(&mut self, out: &mut Vec<RunLogEntry>) {
        if !self.pending.is_empty() {
            self.end = self.end.map(|end| end + FRAME);
        }
        self.flush(out);
    }

    fn flush(&mut self, out: &mut Vec<RunLogEntry>) {
        out.append(&mut self.pending);
        self.bytes = 0;
    }

    /// Returns when the waiting deltas are due.
    pub(super) fn due(&self) -> Option<Instant> {
        self.end.filter(|_| !self.pending.is_empty())
    }
}

/// Returns the text of an entry that can be joined. Entries with a native line cannot.
fn delta(entry: &RunLogEntry) -> Option<&str> {
    match entry {
        RunLogEntry::Agent(entry) if entry.native.is_some() => None,
        RunLogEntry::Agent(entry) => match &entry.event {
            AgentEvent::Text(text) => Some(&text.text),
            AgentEvent::Thinking(thinking) => Some(&thinking.text),
            _ => None,
        },
        RunLogEntry::Run(entry) => match &entry.event {
            RunEvent::Chunk { content, .. } => Some(content),
            _ => None,
        },
        _ => None,
    }
}

fn same_kind(a: &RunLogEntry, b: &RunLogEntry) -> bool {
    match (a, b) {
        (RunLogEntry::Agent(a), RunLogEntry::Agent(b)) => {
            mem::discriminant(&a.event) == mem::discriminant(&b.event)
        }
        (RunLogEntry::Run(_), RunLogEntry::Run(_)) => true,
        _ => false,
    }
}

fn same_message(a: &RunLogEntry, b: &RunLogEntry) -> bool {
    match (a, b) {
        (RunLogEntry::Agent(a), RunLogEntry::Agent(b)) => {
            let key = |event: &AgentEvent| match event {
                AgentEvent::Text(text) => {
                    Some((text.message_id.clone(), text.parent_tool_id.clone()))
                }
                AgentEvent::Thinking(it) => {
                    Some((it.message_id.clone(), it.parent_tool_id.clone()))
                }
                _ => None,
            };
            a.attempt == b.attempt && key(&a.event) == key(&b.event)
        }
        (RunLogEntry::Run(a), RunLogEntry::Run(b)) => a.attempt == b.attempt,
        _ => false,
    }
}

/// Appends text to the entry's text. Returns false if the entry has none.
fn join(entry: &mut RunLogEntry, text: &str) -> bool {
    let own = match entry {
        RunLogEntry::Agent(entry) => match &mut entry.event {
            AgentEvent::Text(own) => &mut own.text,
            AgentEvent::Thinking(own) => &mut own.text,
            _ => return false,
        },
        RunLogEntry::Run(entry) => match &mut entry.event {
            RunEvent::Chunk { content, .. } => content,
            _ => return false,
        },
        _ => return false,
    };
    own.push_str(text);
    true
}

#[cfg(test)]
mod tests {
    use teamster_core::{Text, Thinking};

    use super::*;

    fn text(text: &str) -> RunLogEntry {
        RunLogEntry::Agent(AgentEvent::Text(Text::new(text).message_id("m")).into())
    }

    #[test]
    fn a_flood_of_text_delays_no_delta_beyond_its_frame() {
        let (mut frames, mut out) = (Frames::default(), Vec::new());
        let now = Instant::now();
        for _ in 0..50 {
            frames.push(text(&"x".repeat(FULL)), now, &mut out);
        }
        frames.push(text("the last"), now, &mut out);
        assert_eq!(frames.due(), Some(now + FRAME));
        frames.end(&mut out);
        assert_eq!((frames.due(), out.len()), (None, 51));
    }

    #[test]
    fn text_and_thinking_of_one_message_stay_apart() {
        let thinking = |text: &str| {
            RunLogEntry::Agent(AgentEvent::Thinking(Thinking::new(text).message_id("m")).into())
        };
        let (mut frames, mut out) = (Frames::default(), Vec::new());
        let now = Instant::now();
        for entry in [
            text("a"),
            thinking("b"),
            text("c"),
            thinking("d"),
            text("e"),
        ] {
            frames.push(entry, now, &mut out);
        }
        frames.end(&mut out);
        assert_eq!(out, [text("a"), thinking("b"), text("ce"), thinking("d")]);
    }
}
