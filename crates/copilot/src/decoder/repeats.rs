//! Detection of lines that are printed twice.

use std::collections::hash_map::DefaultHasher;
use std::collections::{HashSet, VecDeque};
use std::hash::{Hash, Hasher};

/// Number of remembered lines.
const REMEMBERED: usize = 4096;

/// The last lines, each of which is handled once.
#[derive(Debug, Default)]
pub(super) struct Repeats {
    known: HashSet<u64>,
    order: VecDeque<u64>,
}

/// The identity of a line.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mark(Option<u64>);

impl Repeats {
    /// Returns the mark of a line. A line of the same type, id and length is a repetition. Without an id, lines
    /// cannot be distinguished.
    pub(super) fn mark(kind: &str, id: &str, length: usize) -> Mark {
        if id.is_empty() {
            return Mark(None);
        }
        let mut hasher = DefaultHasher::new();
        (kind, id, length).hash(&mut hasher);
        Mark(Some(hasher.finish()))
    }

    /// Returns whether the line is known.
    pub(super) fn knows(&self, mark: Mark) -> bool {
        mark.0.is_some_and(|mark| self.known.contains(&mark))
    }

    /// Remembers a handled line.
    pub(super) fn remember(&mut self, mark: Mark) {
        let Some(mark) = mark.0 else { return };
        if self.known.insert(mark) {
            self.order.push_back(mark);
        }
        if self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }
}
