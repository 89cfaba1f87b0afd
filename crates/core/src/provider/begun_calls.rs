//! Calls of tools that the model has begun to write.

use std::collections::HashMap;

use crate::ToolKind;
use crate::provider::Events;

/// Calls that a CLI reports while the model writes them, and again when it runs them.
///
/// A run can be cut short between the two. What had begun then counts as a call that may have run.
#[derive(Debug, Default)]
pub struct BegunCalls {
    /// Ids by the CLI, with whether the call came.
    calls: HashMap<String, bool>,
}

impl BegunCalls {
    /// Handles a piece of a call.
    pub fn piece(&mut self, id: &str, kind: ToolKind) {
        if kind.has_side_effects() && !self.calls.contains_key(id) {
            self.calls.insert(id.to_owned(), false);
        }
    }

    /// Handles the call itself. A later report of its beginning changes nothing.
    pub fn came(&mut self, id: &str) {
        self.calls.insert(id.to_owned(), true);
    }

    /// Counts the calls that never came, at the end of a run or a turn.
    pub fn finish(&mut self, out: &mut Events) {
        let missing = self.calls.drain().filter(|(_, came)| !came);
        missing.for_each(|_| out.unfinished_call());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_counts_that_was_begun_and_never_came() {
        let mut calls = BegunCalls::default();
        let mut out = Events::new();
        for id in ["a", "b", "b"] {
            calls.piece(id, ToolKind::Execute);
        }
        calls.piece("c", ToolKind::Read);
        calls.came("a");
        calls.piece("a", ToolKind::Execute);
        calls.came("begun later");
        calls.piece("begun later", ToolKind::Execute);
        calls.finish(&mut out);
        assert_eq!(out.unfinished_calls, 1);
        calls.finish(&mut out);
        assert_eq!(out.unfinished_calls, 1);
    }
}
