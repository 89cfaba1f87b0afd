//! Tokens and cost: a sum over the requests of a run.

use std::collections::BTreeMap;

use teamster_core::{ModelUsage, Usage};

use super::wire::Figures;

/// Usage so far.
#[derive(Debug, Default)]
pub(super) struct Used {
    pub(super) tokens: Option<Usage>,
    /// Cost in US dollars; `None` for a model whose price the CLI does not know.
    pub(super) cost_usd: Option<f64>,
    pub(super) by_model: BTreeMap<String, ModelUsage>,
}

impl Used {
    /// Adds a request. Returns `false` if it has no figures.
    pub(super) fn add(&mut self, figures: &Figures, model: Option<&str>) -> bool {
        let tokens = tokens(figures);
        // A failed request has zeros.
        if tokens.total_tokens().unwrap_or(0) == 0 {
            return false;
        }
        let cost = figures.cost.total.filter(|usd| *usd > 0.0);
        let sum = |before: Option<f64>| match (before, cost) {
            (Some(before), Some(now)) => Some(before + now),
            (before, now) => before.or(now),
        };
        self.tokens = Some(self.tokens.unwrap_or_default().plus(tokens));
        self.cost_usd = sum(self.cost_usd);
        if let Some(model) = model {
            let of_model = self.by_model.entry(model.to_owned()).or_default();
            of_model.usage = of_model.usage.plus(tokens);
            of_model.cost_usd = sum(of_model.cost_usd);
        }
        true
    }
}

/// Converts the token counts. The CLI counts as `teamster` does: tokens read from or written to a cache are not part
/// of the input, and reasoning is part of the output.
fn tokens(figures: &Figures) -> Usage {
    let mut usage = Usage::default();
    usage.input_tokens = figures.input;
    usage.output_tokens = figures.output;
    usage.cache_read_tokens = figures.cache_read;
    usage.cache_write_tokens = figures.cache_write;
    usage.reasoning_tokens = figures.reasoning;
    usage
}
