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

/// Token counts of the CLI. `input` includes tokens read from and written to a cache.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    input: Option<u64>,
    cached_input: Option<u64>,
    cache_write_input: Option<u64>,
    output: Option<u64>,
    reasoning_output: Option<u64>,
}

impl Totals {
    /// Reads the figures of an object of the CLI.
    pub(crate) fn of(usage: &Object<'_>) -> Self {
        Self {
            input: usage.get("input_tokens"),
            cached_input: usage.get("cached_input_tokens"),
            cache_write_input: usage.get("cache_write_input_tokens"),
            output: usage.get("output_tokens"),
            reasoning_output: usage.get("reasoning_output_tokens"),
        }
    }

    fn figures(&self) -> [Option<u64>; 5] {
        [
            self.input,
            self.cached_input,
            self.cache_write_input,
            self.output,
            self.reasoning_output,
        ]
    }

    pub(crate) fn is_zero(&self) -> bool {
        self.figures().into_iter().flatten().all(|n| n == 0)
    }

    /// Returns the difference to the total `before`, or `None` if this is not a later total of the same session.
    pub(crate) fn less(self, before: &Self) -> Option<Self> {
        let mut since = self.figures();
        for (figure, before) in since.iter_mut().zip(before.figures()) {
            if let Some(figure) = figure {
                *figure = figure.checked_sub(before.unwrap_or(0))?;
            }
        }
        let [
            input,
            cached_input,
            cache_write_input,
            output,
            reasoning_output,
        ] = since;
        Some(Self {
            input,
            cached_input,
            cache_write_input,
            output,
            reasoning_output,
        })
    }

    /// Returns the sum of both.
    pub(crate) fn plus(self, other: &Self) -> Self {
        let sum = |a: Option<u64>, b: Option<u64>| match (a, b) {
            (Some(a), Some(b)) => Some(a.saturating_add(b)),
            (a, b) => a.or(b),
        };
        Self {
            input: sum(self.input, other.input),
            cached_input: sum(self.cached_input, other.cached_input),
            cache_write_input: sum(self.cache_write_input, other.cache_write_input),
            output: sum(self.output, other.output),
            reasoning_output: sum(self.reasoning_output, other.reasoning_output),
        }
    }
}

impl From<Totals> for Usage {
    fn from(totals: Totals) -> Self {
        let cached = totals.cached_input.unwrap_or(0);
        let written = totals.cache_write_input.unwrap_or(0);
        let uncached = |input: u64| input.saturating_sub(cached).saturating_sub(written);
        Self::default()
            .input_tokens(totals.input.map(uncached))
            .output_tokens(totals.output)
            .cache_read_tokens(totals.cached_input)
            .cache_write_tokens(totals.cache_write_input)
            .reasoning_tokens(totals.reasoning_output)
    }
}
