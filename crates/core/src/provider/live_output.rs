//! Output of tool calls that are running.

use std::collections::HashMap;

use super::Events;
use crate::{Id, ToolOutput};

/// Maximum size of the pieces of one call, in bytes. The result has the complete output.
const MOST_BYTES: usize = 64 << 10;
/// Maximum number of pieces of one call.
const MOST_PIECES: usize = 1000;

/// Live output of the calls of a turn, with a limit for each call so that a log does not grow without bound.
#[derive(Debug, Default)]
pub struct LiveOutput {
    calls: HashMap<Id, Emitted>,
}

#[derive(Debug, Default)]
struct Emitted {
    bytes: usize,
    pieces: usize,
    /// True after the first piece that did not fit: a later one would leave a gap before it.
    is_full: bool,
    /// The complete output so far, of an agent that repeats it.
    text: String,
}

impl LiveOutput {
    /// Emits a piece of a call's output, up to the limit. Without a gap: after the first piece that does not fit, none is
    /// emitted.
    pub fn piece(&mut self, call: &Id, text: &str, out: &mut Events) {
        let emitted = self.calls.entry(call.clone()).or_default();
        emitted.is_full |= emitted.pieces >= MOST_PIECES || emitted.bytes + text.len() > MOST_BYTES;
        if text.is_empty() || emitted.is_full {
            return;
        }
        emitted.bytes += text.len();
        emitted.pieces += 1;
        out.push(ToolOutput::new(call.clone(), text));
    }

    /// Emits what the complete output of a call so far has more than before. An output that does not begin with the one
    /// before is not emitted.
    pub fn so_far(&mut self, call: &Id, text: &str, out: &mut Events) {
        let emitted = self.calls.entry(call.clone()).or_default();
        emitted.is_full |= text.len() > MOST_BYTES;
        if emitted.is_full {
            emitted.text = String::new();
            return;
        }
        let Some(more) = text.strip_prefix(&*emitted.text).map(str::to_owned) else {
            return;
        };
        emitted.text.push_str(&more);
        self.piece(call, &more, out);
    }

    /// Forgets a call that has ended.
    pub fn ended(&mut self, call: &Id) {
        self.calls.remove(call);
    }

    /// Forgets the calls, at the end of a turn.
    pub fn clear(&mut self) {
        self.calls.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AgentEvent;

    fn texts(out: &mut Events) -> Vec<String> {
        let texts = out.drain().map(|event| match event {
            AgentEvent::ToolOutput(output) => output.text,
            other => panic!("{other:?}"),
        });
        texts.collect()
    }

    #[test]
    fn the_pieces_of_a_call_end_at_its_limits() {
        let mut live = LiveOutput::default();
        let mut out = Events::new();
        let (long, short) = (Id::from("long"), Id::from("short"));
        live.piece(&Id::from("most"), &"x".repeat(MOST_BYTES), &mut out);
        assert_eq!(texts(&mut out).len(), 1);
        let half = "x".repeat(MOST_BYTES / 2);
        live.piece(&long, &half, &mut out);
        live.piece(&long, &format!("{half}x"), &mut out);
        // It would fit, but what is before it is missing.
        live.piece(&long, "x", &mut out);
        assert_eq!(texts(&mut out), [half]);
        for _ in 0..=MOST_PIECES {
            live.piece(&short, "y", &mut out);
        }
        assert_eq!(texts(&mut out).len(), MOST_PIECES);
    }

    #[test]
    fn of_a_repeated_output_the_new_part_is_emitted() {
        let mut live = LiveOutput::default();
        let mut out = Events::new();
        let (call, most) = (Id::from("a"), Id::from("most"));
        live.so_far(&most, &"x".repeat(MOST_BYTES), &mut out);
        assert_eq!(texts(&mut out).len(), 1);
        live.ended(&most);
        for text in ["one\n", "one\n", "one\ntwo\n", "other", "one\ntwo\nthree"] {
            live.so_far(&call, text, &mut out);
        }
        assert_eq!(texts(&mut out), ["one\n", "two\n", "three"]);
        live.so_far(&call, &"x".repeat(MOST_BYTES + 1), &mut out);
        live.so_far(&call, "one\ntwo\nthree, four", &mut out);
        assert_eq!(texts(&mut out), [""; 0]);
        live.ended(&call);
        assert!(live.calls.is_empty());
    }
}
