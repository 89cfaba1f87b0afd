//! Lines that are printed again.

use std::collections::hash_map::DefaultHasher;
use std::collections::{HashSet, VecDeque};
use std::hash::{Hash, Hasher};

/// So many lines are remembered.
const REMEMBERED: usize = 4096;

/// The last lines, of which each is taken once.
#[derive(Debug, Default)]
pub(super) struct Repeats {
    known: HashSet<u64>,
    order: VecDeque<u64>,
}

/// The identity of a line.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mark(Option<u64>);

impl Repeats {
    /// Each line has an id. One of the same type, id and length is the same line again. Without an
    /// id lines cannot be distinguished.
    pub(super) fn mark(kind: &str, id: &str, length: usize) -> Mark {
        if id.is_empty() {
            return Mark(None);
        }
        let mut hasher = DefaultHasher::new();
        (kind, id, length).hash(&mut hasher);
        Mark(Some(hasher.finish()))
    }

    /// Whether the line came before.
    pub(super) fn knows(&self, mark: Mark) -> bool {
        mark.0.is_some_and(|mark| self.known.contains(&mark))
    }

    /// Remembers a line that was taken.
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
