//! Ids that are unique over all attempts.

use std::collections::{HashMap, HashSet};
use std::mem;
use std::sync::Arc;

use teamster_core::Id;

/// Renames the ids of an attempt that an earlier attempt has used.
#[derive(Debug, Default)]
pub(super) struct Ids {
    /// All names in use.
    used: HashSet<Id>,
    /// The names of this attempt's ids.
    names: HashMap<Id, Id>,
    /// The last id and its name. Deltas of one message share their id.
    last: Option<(Id, Id)>,
}

impl Ids {
    /// Begins another attempt, whose ids are distinct from earlier ones even if they are equal.
    pub(super) fn next_attempt(&mut self) {
        self.names.clear();
        self.last = None;
    }

    /// Replaces an id by its name.
    pub(super) fn rename(&mut self, id: &mut Id) {
        if let Some((last, name)) = &self.last
            && Arc::ptr_eq(last, id)
        {
            id.clone_from(name);
            return;
        }
        let name = match self.names.get(id) {
            Some(name) => name.clone(),
            None => {
                let name = self.free(id);
                self.used.insert(name.clone());
                self.names.insert(id.clone(), name.clone());
                name
            }
        };
        self.last = Some((mem::replace(id, name.clone()), name));
    }

    /// Replaces an id by its name, if there is one.
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
