//! Token totals of a session, as the CLI counts them.

use teamster_core::Usage;

use crate::wire::Object;

/// The session's total before this run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Baseline {
    /// The total is known.
    Known(Totals),
    /// The total cannot be known.
    Unknown,
}

/// The baseline of a new session: zero.
impl Default for Baseline {
    fn default() -> Self {
        Self::Known(Totals::default())
    }
}

/// Token counts of the CLI. The input includes tokens read from and written to a cache.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Totals(Usage);

impl Totals {
    /// Reads the figures of an object of the CLI.
    pub(crate) fn of(usage: &Object<'_>) -> Self {
        let figure = |name| usage.get::<u64>(name);
        Self(
            Usage::default()
                .input_tokens(figure("input_tokens"))
                .output_tokens(figure("output_tokens"))
                .cache_read_tokens(figure("cached_input_tokens"))
                .cache_write_tokens(figure("cache_write_input_tokens"))
                .reasoning_tokens(figure("reasoning_output_tokens")),
        )
    }

    pub(crate) fn is_zero(&self) -> bool {
        self.0.is_zero()
    }

    /// Returns the difference to the total `before`, or `None` if this is not a later total of the same session.
    pub(crate) fn less(self, before: &Self) -> Option<Self> {
        self.0.checked_since(before.0).map(Self)
    }

    /// Returns the sum of both.
    pub(crate) fn plus(self, other: &Self) -> Self {
        Self(self.0.plus(other.0))
    }
}

impl From<Totals> for Usage {
    fn from(totals: Totals) -> Self {
        totals.0.without_cache_in_input()
    }
}
