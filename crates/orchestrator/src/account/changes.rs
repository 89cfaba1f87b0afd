//! The calls of an attempt that count as changes.

use std::collections::{HashMap, HashSet};

use teamster_core::Id;

/// Calls that can change things, in order. An id that comes again is another call.
#[derive(Debug, Default)]
pub(super) struct Changes {
    /// The id of each call and the name of its tool.
    calls: Vec<(Id, String)>,
    /// Index of the first call of each id.
    first: HashMap<Id, usize>,
}

impl Changes {
    pub(super) fn push(&mut self, id: Id, tool: String) {
        self.first.entry(id.clone()).or_insert(self.calls.len());
        self.calls.push((id, tool));
    }

    pub(super) fn count(&self) -> usize {
        self.calls.len()
    }

    /// Removes all but the first `kept` calls.
    pub(super) fn truncate(&mut self, kept: usize) {
        self.calls.truncate(kept);
        self.first.retain(|_, index| *index < kept);
    }

    pub(super) fn has(&self, id: &Id) -> bool {
        self.first.contains_key(id)
    }

    /// Returns the tool of the first call that was not denied.
    pub(super) fn into_first(self, denied: &HashSet<Id>) -> Option<String> {
        let mut calls = self.calls.into_iter();
        let first = calls.find(|(id, _)| !denied.contains(id));
        first.map(|(_, tool)| tool)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_found_by_id_until_all_with_it_are_removed() {
        let mut changes = Changes::default();
        for (id, tool) in [("a", "A"), ("b", "B"), ("a", "C"), ("c", "D"), ("b", "E")] {
            changes.push(Id::from(id), tool.to_owned());
        }
        let has = |changes: &Changes| ["a", "b", "c", "d"].map(|id| changes.has(&Id::from(id)));
        for (kept, count, found) in [
            (9, 5, [true, true, true, false]),
            (3, 3, [true, true, false, false]),
            (1, 1, [true, false, false, false]),
        ] {
            changes.truncate(kept);
            assert_eq!((changes.count(), has(&changes)), (count, found), "{kept}");
        }
        changes.push(Id::from("c"), "F".to_owned());
        assert_eq!(has(&changes), [true, false, true, false]);
        let denied = HashSet::from([Id::from("a")]);
        assert_eq!(changes.into_first(&denied).as_deref(), Some("F"));
    }
}
