//! Token and cost figures in one convention.

use serde::{Deserialize, Serialize};

use crate::setters::setters;

/// Tokens used. Figures that the CLI did not report are absent, never 0.
///
/// Every provider converts its CLI's own convention (input with or without cached tokens, deltas or running totals)
/// to this one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Usage {
    /// Input tokens that were neither read from nor written to a cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// Output tokens, reasoning included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// Input tokens read from a prompt cache, not included in `input_tokens`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read_tokens: Option<u64>,
    /// Input tokens written to a prompt cache, not included in `input_tokens`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write_tokens: Option<u64>,
    /// Reasoning tokens, a part of `output_tokens`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_tokens: Option<u64>,
}

impl Usage {
    /// Returns whether no figure was reported.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the sum of the reported input (uncached, cache reads and cache writes) and output tokens.
    pub fn total_tokens(&self) -> Option<u64> {
        [
            self.input_tokens,
            self.output_tokens,
            self.cache_read_tokens,
            self.cache_write_tokens,
        ]
        .into_iter()
        .flatten()
        .reduce(u64::saturating_add)
    }

    /// Returns whether no figure is above 0.
    pub fn is_zero(&self) -> bool {
        self.total_tokens().unwrap_or(0) == 0 && self.reasoning_tokens.unwrap_or(0) == 0
    }

    /// Returns the sum of each figure. A figure that only one side reports is kept unchanged.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        self.with(other, |a, b| match (a, b) {
            (Some(a), Some(b)) => Some(a.saturating_add(b)),
            (one, None) | (None, one) => one,
        })
    }

    /// Returns the increase of each figure since `before`, in which a missing figure is 0. The increase of a figure that is
    /// lower now is 0.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        self.with(before, |now, then| {
            Some(now?.saturating_sub(then.unwrap_or(0)))
        })
    }

    /// Returns the increase as [`since`](Self::since) does; `None` if a figure is lower now, so that the count has begun
    /// again.
    pub fn checked_since(self, before: Self) -> Option<Self> {
        let mut fits = true;
        let since = self.with(before, |now, then| {
            let since = now?.checked_sub(then.unwrap_or(0));
            fits &= since.is_some();
            since
        });
        fits.then_some(since)
    }

    /// Returns the figures of a service whose input includes the tokens read from and written to a cache.
    #[must_use]
    pub fn without_cache_in_input(mut self) -> Self {
        let cached = [self.cache_read_tokens, self.cache_write_tokens];
        let cached = cached.into_iter().flatten().fold(0, u64::saturating_add);
        self.input_tokens = self.input_tokens.map(|all| all.saturating_sub(cached));
        self
    }

    fn with(
        self,
        other: Self,
        mut each: impl FnMut(Option<u64>, Option<u64>) -> Option<u64>,
    ) -> Self {
        Self {
            input_tokens: each(self.input_tokens, other.input_tokens),
            output_tokens: each(self.output_tokens, other.output_tokens),
            cache_read_tokens: each(self.cache_read_tokens, other.cache_read_tokens),
            cache_write_tokens: each(self.cache_write_tokens, other.cache_write_tokens),
            reasoning_tokens: each(self.reasoning_tokens, other.reasoning_tokens),
        }
    }
}

/// Usage of one model in a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ModelUsage {
    /// Tokens.
    pub usage: Usage,
    /// Cost in USD.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Size of the model's context window in tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_window: Option<u64>,
    /// Limit of output tokens in one answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u64>,
}

impl ModelUsage {
    /// Creates the usage of a model with these tokens and nothing else set.
    pub fn new(usage: Usage) -> Self {
        Self {
            usage,
            ..Self::default()
        }
    }
}

setters! {
    #[doc(hidden)]
    Usage {
        option input_tokens: u64,
        option output_tokens: u64,
        option cache_read_tokens: u64,
        option cache_write_tokens: u64,
        option reasoning_tokens: u64,
    }
    #[doc(hidden)]
    ModelUsage {
        option cost_usd: f64,
        option context_window: u64,
        option max_output_tokens: u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absent_figures_stay_absent() {
        let a = Usage {
            input_tokens: Some(3),
            ..Usage::default()
        };
        let b = Usage {
            input_tokens: Some(4),
            output_tokens: Some(1),
            ..Usage::default()
        };
        let sum = a.plus(b);
        assert_eq!(sum.input_tokens, Some(7));
        assert_eq!(sum.output_tokens, Some(1));
        assert_eq!(sum.cache_read_tokens, None);
        assert_eq!(sum.total_tokens(), Some(8));
        assert_eq!(Usage::default().total_tokens(), None);
    }

    #[test]
    fn each_figure_is_added_to_its_own() {
        let usage = |n: u64| Usage {
            input_tokens: Some(n),
            output_tokens: Some(10 * n),
            cache_read_tokens: Some(100 * n),
            cache_write_tokens: Some(1000 * n),
            reasoning_tokens: Some(2 * n),
        };
        assert_eq!(usage(1).plus(usage(2)), usage(3));
        // Reasoning is a part of the output.
        assert_eq!(usage(3).total_tokens(), Some(3333));
        let most = usage(1).input_tokens(u64::MAX);
        assert_eq!(most.plus(most).input_tokens, Some(u64::MAX));
        assert_eq!(most.total_tokens(), Some(u64::MAX));
        assert!(Usage::default().is_empty() && !usage(0).is_empty());
        assert!(Usage::default().is_zero() && usage(0).is_zero() && !usage(1).is_zero());
        assert_eq!(usage(3).since(usage(1)), usage(2));
        assert_eq!(usage(1).since(Usage::default()), usage(1));
        assert_eq!(usage(1).since(usage(3)), usage(0));
        assert_eq!(usage(3).checked_since(usage(1)), Some(usage(2)));
        let lower = usage(3).reasoning_tokens(1);
        assert_eq!(lower.checked_since(usage(1)), None);
        let [mut absent, mut expected] = [usage(3), usage(2)];
        absent.reasoning_tokens = None;
        expected.reasoning_tokens = None;
        assert_eq!(absent.checked_since(usage(1)), Some(expected));
        let outside = usage(1).input_tokens(1200).without_cache_in_input();
        assert_eq!(outside, usage(1).input_tokens(100));
        assert_eq!(usage(1).without_cache_in_input(), usage(1).input_tokens(0));
    }
}
