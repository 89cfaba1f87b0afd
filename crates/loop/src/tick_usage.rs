//! Usage and cost of a tick, with their source.

use std::fmt::Write;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use teamster_core::{CostSource, RunResult, Usage};
use teamster_usage::prices::{PriceList, Request};
use teamster_usage::{ModelTick, Provider};

use crate::clock::stamp;

/// One line of `usage.jsonl`, for one model of a tick.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct UsageRecord {
    /// Time of the tick's end.
    pub ts: String,
    /// The session.
    pub session_id: Option<String>,
    /// The model, in the CLI's own name.
    pub model: Option<String>,
    /// Input tokens outside the cache. 0 if the CLI reports none, like all counts.
    pub input_tokens: u64,
    /// Output tokens, reasoning included.
    pub output_tokens: u64,
    /// Tokens read from the cache.
    pub cache_read_tokens: u64,
    /// Tokens written to the cache.
    pub cache_write_tokens: u64,
    /// Reasoning tokens, a part of the output.
    pub reasoning_tokens: u64,
    /// Premium requests, which Copilot counts.
    #[serde(serialize_with = "number")]
    pub premium_requests: f64,
    /// Cost in USD, if it is known.
    pub cost_usd: Option<f64>,
    /// Source of the cost: the CLI, or the price table.
    pub cost_source: Option<CostSource>,
}

impl UsageRecord {
    /// Name of the file.
    pub const NAME: &str = "usage.jsonl";

    /// Creates a record of a tick that ended at this time, without usage.
    pub fn new(ts: impl Into<String>) -> Self {
        Self {
            ts: ts.into(),
            session_id: None,
            model: None,
            input_tokens: 0,
            output_tokens: 0,
            cache_read_tokens: 0,
            cache_write_tokens: 0,
            reasoning_tokens: 0,
            premium_requests: 0.0,
            cost_usd: None,
            cost_source: None,
        }
    }
}

/// Serializes a whole number without a decimal point, as readers of these files expect.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants it so")]
#[expect(
    clippy::cast_possible_truncation,
    reason = "only what is whole and small"
)]
fn number<S: serde::Serializer>(number: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    if number.fract() == 0.0 && number.abs() < 1e15 {
        serializer.serialize_i64(*number as i64)
    } else {
        serializer.serialize_f64(*number)
    }
}

pub(crate) struct UsageSources<'a> {
    pub(crate) provider: Option<Provider>,
    pub(crate) prices: &'a PriceList,
    pub(crate) result: &'a RunResult,
    /// Usage from the CLI's own files.
    pub(crate) measured: &'a [ModelTick],
    pub(crate) session: Option<&'a str>,
    pub(crate) now: Timestamp,
}

/// Returns the tick's records, one for each model.
///
/// Tokens are taken from the stream by model, else from the CLI's files, else from the stream's total. The cost
/// is the CLI's own, else an estimate.
pub(crate) fn records(sources: &UsageSources<'_>) -> Vec<UsageRecord> {
    let UsageSources {
        result, measured, ..
    } = sources;
    // The agent's own estimate, such as that of the embedded agent.
    let is_estimate = result.cost_source == Some(CostSource::Estimated);
    let mut records: Vec<UsageRecord> = if !result.usage_by_model.is_empty() {
        let models = result.usage_by_model.iter();
        models
            .map(|(model, used)| {
                let mut record = sources.record(Some(model), used.usage);
                if let Some(of_files) = measured_of(measured, model) {
                    record.premium_requests = of_files.premium_requests.unwrap_or_default();
                }
                if is_estimate {
                    record.estimated(used.cost_usd);
                } else {
                    record.reported(used.cost_usd);
                }
                record
            })
            .collect()
    } else if !measured.is_empty() {
        let models = measured.iter();
        models
            .map(|used| {
                let mut record = sources.record(used.model.as_deref(), used.usage);
                record.premium_requests = used.premium_requests.unwrap_or_default();
                record.reported(used.reported_cost_usd);
                record.estimated(used.estimated_cost_usd);
                record
            })
            .collect()
    } else {
        let used = result.usage.filter(|usage| !usage.is_empty());
        let used = used.map(|usage| sources.record(result.model.as_deref(), usage));
        used.into_iter().collect()
    };
    if let [only] = &mut *records
        && !is_estimate
        && result.total_cost_usd.is_some()
    {
        (only.cost_usd, only.cost_source) = (None, None);
        only.reported(result.total_cost_usd);
    }
    // If the tokens come from the files, the estimate does too, even if there is none: the files have the model
    // that answered.
    let of_files = result.usage_by_model.is_empty() && !measured.is_empty();
    for record in records.iter_mut().filter(|_| !of_files) {
        if let (None, Some(provider)) = (record.cost_usd, sources.provider) {
            let estimate = |model: &str| {
                let usage = record.usage();
                let request = Request::new(provider.id(), model, &usage, sources.now);
                sources.prices.estimate(&request.sum())
            };
            let cost = record.model.as_deref().and_then(estimate);
            // The stream may have the requested model, such as `auto`; the files have the one that answered.
            let cost = cost.or_else(|| match sources.measured {
                [only] => only.model.as_deref().and_then(estimate),
                _ => None,
            });
            record.estimated(cost);
        }
    }
    if let ([only], true) = (&mut *records, is_estimate) {
        only.estimated(result.total_cost_usd);
    }
    records
}

fn measured_of<'a>(measured: &'a [ModelTick], model: &str) -> Option<&'a ModelTick> {
    (measured.iter()).find(|tick| tick.model.as_deref() == Some(model))
}

impl UsageSources<'_> {
    fn record(&self, model: Option<&str>, usage: Usage) -> UsageRecord {
        let figure = |figure: Option<u64>| figure.unwrap_or_default();
        UsageRecord {
            ts: stamp(self.now).to_string(),
            session_id: self.session.map(str::to_owned),
            model: model.map(str::to_owned),
            input_tokens: figure(usage.input_tokens),
            output_tokens: figure(usage.output_tokens),
            cache_read_tokens: figure(usage.cache_read_tokens),
            cache_write_tokens: figure(usage.cache_write_tokens),
            reasoning_tokens: figure(usage.reasoning_tokens),
            premium_requests: 0.0,
            cost_usd: None,
            cost_source: None,
        }
    }
}

impl UsageRecord {
    fn reported(&mut self, cost: Option<f64>) {
        if cost.is_some() {
            (self.cost_usd, self.cost_source) = (cost, Some(CostSource::Reported));
        }
    }

    fn estimated(&mut self, cost: Option<f64>) {
        if cost.is_some() && self.cost_usd.is_none() {
            (self.cost_usd, self.cost_source) = (cost, Some(CostSource::Estimated));
        }
    }

    fn usage(&self) -> Usage {
        Usage::default()
            .input_tokens(self.input_tokens)
            .output_tokens(self.output_tokens)
            .cache_read_tokens(self.cache_read_tokens)
            .cache_write_tokens(self.cache_write_tokens)
            .reasoning_tokens(self.reasoning_tokens)
    }
}

/// Formats the tick's line in the log: cost and its source, the estimate from the CLI's own files, and tokens.
pub(crate) fn line(sources: &UsageSources<'_>, records: &[UsageRecord]) -> String {
    if records.is_empty() {
        return "cost unknown: no usage was reported for this tick".to_owned();
    }
    let result = sources.result;
    let reported = match (result.total_cost_usd, result.cost_source) {
        (Some(_), Some(CostSource::Estimated)) | (None, _) => sum_of(records, CostSource::Reported),
        (cost, _) => cost,
    };
    let mut line = match (reported, sum_of(records, CostSource::Estimated)) {
        (Some(cost), _) => format!("cost ${cost:.6} reported"),
        (None, Some(cost)) => format!("cost ~${cost:.6} estimated"),
        (None, None) => "cost unknown".to_owned(),
    };
    // The estimate from the files, if the cost has another source.
    if reported.is_some() || !result.usage_by_model.is_empty() {
        let estimates = sources.measured.iter().map(|tick| tick.estimated_cost_usd);
        let estimate: Option<f64> = estimates.sum();
        if let (Some(estimate), false) = (estimate, sources.measured.is_empty()) {
            // Writing to a string cannot fail.
            let _ = write!(line, " (~${estimate:.6} by its transcript)");
        }
    }
    let sum = |figure: fn(&UsageRecord) -> u64| records.iter().map(figure).sum::<u64>();
    let _ = write!(
        line,
        ": in={} out={} cache_read={} cache_write={}",
        sum(|it| it.input_tokens),
        sum(|it| it.output_tokens),
        sum(|it| it.cache_read_tokens),
        sum(|it| it.cache_write_tokens),
    );
    let premium: f64 = records.iter().map(|it| it.premium_requests).sum();
    if premium > 0.0 {
        let _ = write!(line, " premium_requests={premium}");
    }
    let models: Vec<_> = records
        .iter()
        .filter_map(|it| it.model.as_deref())
        .collect();
    if !models.is_empty() {
        let _ = write!(line, " ({})", models.join(", "));
    }
    line
}

/// Sums the costs with this source. `None` unless every record has one.
fn sum_of(records: &[UsageRecord], source: CostSource) -> Option<f64> {
    let costs = records.iter().map(|record| {
        let cost = record.cost_usd?;
        (record.cost_source == Some(source)).then_some(cost)
    });
    costs.sum()
}

#[cfg(test)]
mod tests;
