//! Ids that are unique over all attempts.

use std::collections::{HashMap, HashSet};

use teamster_core::Id;

/// Gives an id that an attempt before has used another name in this attempt.
#[derive(Debug, Default)]
pub(super) struct Ids {
    /// All names that were given.
    used: HashSet<Id>,
    /// The names of this attempt's ids.
    names: HashMap<Id, Id>,
}

impl Ids {
    /// Another attempt begins: its ids are others, even if they look the same.
    pub(super) fn next_attempt(&mut self) {
        self.names.clear();
    }

    /// Puts the name of an id in its place.
    pub(super) fn rename(&mut self, id: &mut Id) {
        if let Some(name) = self.names.get(id) {
            id.clone_from(name);
            return;
        }
        let name = self.free(id);
        self.used.insert(name.clone());
        self.names.insert(id.clone(), name.clone());
        *id = name;
    }

    /// The same where there may be no id.
    pub(super) fn rename_any(&mut self, id: &mut Option<Id>) {
        if let Some(id) = id {
            self.rename(id);
        }
    }

    fn free(&self, id: &Id) -> Id {
        let mut name = id.clone();
        let mut number = 1_u64;
        while self.used.contains(&name) {
            number += 1;
            name = format!("{id}#{number}").into();
        }
        name
    }
}
