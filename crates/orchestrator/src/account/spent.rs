//! Usage of a run.

use teamster_core::UsageLedger;

use super::Current;

/// Usage that counts against a budget.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Spent {
    pub(crate) used: UsageLedger,
    pub(crate) turns: u32,
}

impl Spent {
    pub(super) fn plus(self, other: Self) -> Self {
        Self {
            used: self.used.plus(other.used),
            turns: self.turns.saturating_add(other.turns),
        }
    }

    pub(crate) fn tokens(&self) -> Option<u64> {
        self.used.usage?.total_tokens()
    }
}

impl Current {
    /// Returns the usage of the attempt so far.
    pub(super) fn spent(&self) -> Spent {
        Spent {
            used: self.used,
            turns: self.turns,
        }
    }
}
