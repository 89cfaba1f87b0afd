//! Unique ids for calls whose ids CLIs repeat.

use std::collections::HashSet;

use crate::Id;

/// Ids of the calls of a run. Each occurs once, even if the CLI repeats one.
#[derive(Debug, Default)]
pub struct UniqueIds(HashSet<Id>);

impl UniqueIds {
    /// Returns the id for a call: the CLI's own, with a number appended if it was used before.
    ///
    /// ```
    /// let mut ids = teamster_core::provider::UniqueIds::default();
    /// assert_eq!(&*ids.unique("call"), "call");
    /// assert_eq!(&*ids.unique("call"), "call#2");
    /// ```
    pub fn unique(&mut self, id: &str) -> Id {
        let mut unique = Id::from(id);
        let mut number = 2;
        while !self.0.insert(unique.clone()) {
            unique = Id::from(format!("{id}#{number}"));
            number += 1;
        }
        unique
    }
}
