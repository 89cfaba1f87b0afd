//! The CLI's record of a session: the messages of its agents, which the CLI writes as a whole, again with each message,
//! in `sessions/<session>/<agent>.messages.json`.
//!
//! It has what the protocol does not report: the tokens of each answer.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use teamster_acp::Figures;
use teamster_core::{CostSource, ModelUsage, Usage};

/// Field with the messages.
pub(super) const MESSAGES: &str = "messages";
/// Text in the relevant messages.
pub(super) const ANSWERS: &[&str] = &["\"metrics\""];

/// Usage of a turn.
#[derive(Debug, Default)]
pub(super) struct Recorded {
    usage: Option<Usage>,
    by_model: BTreeMap<String, ModelUsage>,
    /// The cost so far. `None` once an answer has none.
    cost_usd: Option<f64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound = "'de: 'a")]
struct Message<'a> {
    model_info: Option<Model<'a>>,
    metrics: Metrics,
}

#[derive(Deserialize)]
struct Model<'a> {
    #[serde(borrow)]
    id: Cow<'a, str>,
}

/// The figures of an answer. Input includes cache reads and writes; the figures of a service that has none are 0.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metrics {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_read_tokens: Option<u64>,
    cache_write_tokens: Option<u64>,
    cost: Option<f64>,
}

impl Recorded {
    pub(super) fn message(&mut self, message: &str) {
        let Ok(message) = serde_json::from_str::<Message<'_>>(message) else {
            return;
        };
        let usage = message.metrics.usage();
        if usage.total_tokens().unwrap_or(0) == 0 {
            return;
        }
        let cost = message.metrics.cost.filter(|usd| *usd > 0.0);
        self.cost_usd = match self.usage {
            Some(_) => self.cost_usd.zip(cost).map(|(sum, usd)| sum + usd),
            None => cost,
        };
        self.usage = Some(self.usage.map_or(usage, |sum| sum.plus(usage)));
        if let Some(model) = message.model_info {
            let of_model = self.by_model.entry(model.id.into_owned()).or_default();
            of_model.usage = of_model.usage.plus(usage);
        }
    }

    pub(super) fn into_figures(self) -> Figures {
        let mut figures = Figures::default();
        figures.usage = self.usage;
        figures.by_model = self.by_model;
        figures.cost = self.cost_usd.map(|usd| (usd, CostSource::Reported));
        figures
    }
}

impl Metrics {
    fn usage(&self) -> Usage {
        let positive = |tokens: Option<u64>| tokens.filter(|tokens| *tokens > 0);
        Usage::default()
            .input_tokens(self.input_tokens)
            .output_tokens(self.output_tokens)
            .cache_read_tokens(positive(self.cache_read_tokens))
            .cache_write_tokens(positive(self.cache_write_tokens))
            .without_cache_in_input()
    }
}
