//! Unique ids for what CLIs give the same id.

use std::collections::{HashMap, HashSet};

use crate::Id;

/// Ids of the calls or messages of a run. Each occurs once, even if the CLI repeats one.
#[derive(Debug, Default)]
pub struct UniqueIds {
    used: HashSet<Id>,
    /// The last number of each repeated id, so that a further repetition does not try all numbers again.
    numbers: HashMap<Id, u64>,
}

impl UniqueIds {
    /// Returns the id for a call or message: the CLI's own, with a number appended if it was used before or is empty.
    ///
    /// ```
    /// let mut ids = teamster_core::provider::UniqueIds::default();
    /// assert_eq!(&*ids.unique("call"), "call");
    /// assert_eq!(&*ids.unique("call"), "call#2");
    /// ```
    pub fn unique(&mut self, id: &str) -> Id {
        let own = Id::from(id);
        if !id.is_empty() && self.used.insert(own.clone()) {
            return own;
        }
        let number = self.numbers.entry(own).or_insert(1);
        loop {
            *number += 1;
            let numbered = Id::from(format!("{id}#{number}"));
            if self.used.insert(numbered.clone()) {
                return numbered;
            }
        }
    }

    /// Returns whether this id was given.
    pub fn contains(&self, id: &str) -> bool {
        self.used.contains(id)
    }

    /// Returns whether no id was given yet.
    pub fn is_empty(&self) -> bool {
        self.used.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_id_is_given_out_twice() {
        let mut ids = UniqueIds::default();
        let given = ["item_0", "item_0#2", "item_0", "item_0", "", ""].map(|id| ids.unique(id));
        assert_eq!(
            given.each_ref().map(|id| &**id),
            ["item_0", "item_0#2", "item_0#3", "item_0#4", "#2", "#3"]
        );
    }
}
