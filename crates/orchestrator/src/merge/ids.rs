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
    /// True after the first attempt, whose ids are their own names.
    renames: bool,
    /// The names of this attempt's ids, if it is not the first one.
    names: HashMap<Id, Id>,
    /// The last id and its name. Deltas of one message share their id.
    last: Option<(Id, Id)>,
}

impl Ids {
    /// Begins another attempt, whose ids are distinct from earlier ones even if they are equal.
    pub(super) fn next_attempt(&mut self) {
        self.renames = true;
        self.names.clear();
        self.last = None;
    }

    pub(super) fn rename(&mut self, id: &mut Id) {
        if let Some((last, name)) = &self.last
            && Arc::ptr_eq(last, id)
        {
            id.clone_from(name);
            return;
        }
        let known = if self.renames {
            self.names.get(id)
        } else {
            self.used.get(id)
        };
        let name = match known {
            Some(name) => name.clone(),
            None if self.renames => {
                let name = self.free(id);
                self.used.insert(name.clone());
                self.names.insert(id.clone(), name.clone());
                name
            }
            None => {
                self.used.insert(id.clone());
                id.clone()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_each_attempt_are_distinct_from_those_before() {
        let mut ids = Ids::default();
        for attempt in [
            &[("a", "a"), ("a#2", "a#2"), ("a", "a")][..],
            &[("a", "a#3"), ("b", "b"), ("a", "a#3"), ("a#3", "a#3#2")],
            &[("b", "b#2"), ("a", "a#4"), ("c", "c")],
        ] {
            for (id, name) in attempt {
                let mut renamed = Id::from(*id);
                ids.rename(&mut renamed);
                assert_eq!(&*renamed, *name, "{id} of {attempt:?}");
            }
            ids.next_attempt();
        }
    }
}
