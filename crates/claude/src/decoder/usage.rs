//! Arithmetic on usage and running totals.

use std::collections::BTreeMap;

use teamster_core::{ModelUsage, Usage};

use crate::totals::{ModelUsageLine, Totals};

/// Returns the sum of all models' usage.
pub(super) fn total(models: &BTreeMap<String, ModelUsageLine>) -> Option<Usage> {
    let usage = models.values().map(|line| ModelUsage::from(*line).usage);
    usage.reduce(Usage::plus)
}

/// Returns the increase of each model's usage, without unchanged models.
pub(super) fn grown(
    now: &BTreeMap<String, ModelUsage>,
    before: &BTreeMap<String, ModelUsage>,
) -> BTreeMap<String, ModelUsage> {
    let mut grown = now.clone();
    grown.retain(|model, now| {
        let Some(before) = before.get(model) else {
            return true;
        };
        if now == before {
            return false;
        }
        now.usage = now.usage.since(before.usage);
        now.cost_usd = now
            .cost_usd
            .zip(before.cost_usd)
            .map(|(now, before)| now - before);
        true
    });
    grown
}

impl Totals {
    pub(super) fn is_no_more_than(&self, other: &Self) -> bool {
        self.cost <= other.cost
            && figures(self.usage, other.usage).all(|(this, other)| this <= other)
    }

    /// Returns whether any count is lower, which means that the CLI's count was reset.
    pub(super) fn is_less_than(&self, other: &Self) -> bool {
        self.cost < other.cost || figures(self.usage, other.usage).any(|(this, other)| this < other)
    }
}

/// Returns pairs of the counts of both. A missing count is 0.
pub(super) fn figures(a: Usage, b: Usage) -> impl Iterator<Item = (u64, u64)> {
    let all = |u: Usage| {
        [
            u.input_tokens,
            u.output_tokens,
            u.cache_read_tokens,
            u.cache_write_tokens,
        ]
        .map(Option::unwrap_or_default)
    };
    all(a).into_iter().zip(all(b))
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a cast of a float saturates, and a duration is far from the limits"
)]
pub(super) fn to_ms(ms: f64) -> u64 {
    ms.round() as u64
}
