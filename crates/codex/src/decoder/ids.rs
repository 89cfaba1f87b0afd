//! Ids that are unique in a run.

use std::collections::HashSet;

use teamster_core::Id;

/// The ids that were used. The CLI counts its items (`item_0`, `item_1`, …) from 0 in every process; a repeated id
/// gets a number appended.
#[derive(Debug, Default)]
pub(crate) struct Ids {
    used: HashSet<Id>,
}

impl Ids {
    /// Returns an unused id similar to this one.
    pub(crate) fn fresh(&mut self, item: &str) -> Id {
        let mut id = Id::from(item);
        let mut number = 2;
        while !self.used.insert(id.clone()) {
            id = Id::from(format!("{item}#{number}"));
            number += 1;
        }
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_id_is_given_out_twice() {
        let mut ids = Ids::default();
        let given = ["item_0", "item_0#2", "item_0", "item_0", "item_1"].map(|i| ids.fresh(i));
        assert_eq!(
            given.each_ref().map(|id| &**id),
            ["item_0", "item_0#2", "item_0#3", "item_0#4", "item_1"]
        );
    }
}
