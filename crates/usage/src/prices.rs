//! What tokens cost, by a dated table in this repository.
//!
//! An estimate is what the service's list price comes to. It knows of no discount and no subscription. What a CLI itself reports is better.

mod surcharges;
mod table;

use std::collections::HashMap;
use std::sync::Arc;

use jiff::Timestamp;
use teamster_core::Usage;

use crate::{Provider, Record};
use table::{Model, Prices, Rates, Table};

/// An estimate of what one request cost, in USD. `None` if the table does not know the model, or if neither
/// input nor output is told.
///
/// `cache_write_1h_tokens` are those of `usage.cache_write_tokens` that the cache keeps for an hour. `model`
/// is as the CLI writes it, with or without the vendor, a date, or the size of the context window:
/// `claude-opus-4-8[1m]`, `anthropic/claude-opus-4-8`, `claude-sonnet-4-5-20250929`.
pub fn estimate(
    provider: Provider,
    model: &str,
    usage: &Usage,
    cache_write_1h_tokens: Option<u64>,
    at: Timestamp,
) -> Option<f64> {
    let prices = Table::get().find(provider, model)?.at(at)?;
    cost(prices, usage, cache_write_1h_tokens, true)
}

/// The same of several requests together, of which no one knows how large each was: the higher prices of
/// large requests are left out.
pub fn estimate_sum(
    provider: Provider,
    model: &str,
    usage: &Usage,
    cache_write_1h_tokens: Option<u64>,
    at: Timestamp,
) -> Option<f64> {
    let prices = Table::get().find(provider, model)?.at(at)?;
    cost(prices, usage, cache_write_1h_tokens, false)
}

/// A model's name without its vendor, its date and the size of its context window.
pub(crate) fn plain_name(name: &str) -> Arc<str> {
    table::plain_name(name).into()
}

/// Where the prices come from, for a line under estimates: `@pydantic/genai-prices 0.1.8`.
pub fn source() -> &'static str {
    &Table::get().name
}

/// The day on which the prices were published, `2026-09-23`.
pub fn date() -> &'static str {
    &Table::get().date
}

/// What tokens cost by these prices.
fn cost(
    prices: &Prices,
    usage: &Usage,
    cache_write_1h_tokens: Option<u64>,
    one_request: bool,
) -> Option<f64> {
    if usage.input_tokens.is_none() && usage.output_tokens.is_none() {
        return None;
    }
    let input = usage.input_tokens.unwrap_or(0);
    let read = usage.cache_read_tokens.unwrap_or(0);
    let written = usage.cache_write_tokens.unwrap_or(0);
    let hour = cache_write_1h_tokens.unwrap_or(0).min(written);
    // A request above a limit has another price for all of its tokens.
    let size = input.saturating_add(read).saturating_add(written);
    let rates = prices.rates(if one_request { size } else { 0 });
    Some(at_rates(rates, usage, hour))
}

/// What tokens cost, of which `hour` were written to a cache for an hour.
fn at_rates(rates: Rates, usage: &Usage, hour: u64) -> f64 {
    let input = usage.input_tokens.unwrap_or(0);
    let read = usage.cache_read_tokens.unwrap_or(0);
    let written = usage.cache_write_tokens.unwrap_or(0);
    let parts = [
        (input, rates.input),
        (usage.output_tokens.unwrap_or(0), rates.output),
        (read, rates.cache_read),
        (written - hour, rates.cache_write),
        (hour, rates.cache_write_1h),
    ];
    #[expect(clippy::cast_precision_loss, reason = "to 15 digits")]
    let part = |(tokens, price): (u64, f64)| tokens as f64 * price / 1e6;
    parts.into_iter().map(part).sum()
}

/// A CLI, who was asked for a model, and the model.
type Asked = (Provider, Option<Arc<str>>, Arc<str>);

/// Estimates for many records: each model is looked up once.
#[derive(Debug, Default)]
pub(crate) struct Estimates {
    models: HashMap<Asked, Option<&'static Model>>,
}

impl Estimates {
    /// The estimate for a record.
    pub(crate) fn of(&mut self, record: &Record) -> Option<f64> {
        let name = record.model.as_ref()?;
        let model = *self
            .models
            .entry((record.provider, record.vendor.clone(), name.clone()))
            .or_insert_with(|| match &record.vendor {
                Some(vendor) => Table::get().find(record.provider, &format!("{vendor}/{name}")),
                None => Table::get().find(record.provider, name),
            });
        let prices = model?.at(record.at)?;
        let usage = &record.usage;
        let tokens = cost(prices, usage, record.cache_write_1h_tokens, !record.sum);
        let tokens = if record.fast {
            let rates = surcharges::fast(&table::plain_name(name));
            let written = usage.cache_write_tokens.unwrap_or(0);
            let hour = record.cache_write_1h_tokens.unwrap_or(0).min(written);
            // A faster service without a known price is not estimated at the price of the usual one.
            tokens.and(Some(at_rates(rates?, usage, hour)))
        } else {
            tokens
        };
        let more = if record.us_only {
            surcharges::US_ONLY
        } else {
            1.0
        };
        let tokens = tokens.map(|tokens| tokens * more);
        let searches = match record.provider {
            Provider::Claude => record.web_searches,
            _ => None,
        };
        #[expect(clippy::cast_precision_loss, reason = "to 15 digits")]
        let searches = searches.map(|searches| searches as f64 * surcharges::WEB_SEARCH);
        match (tokens, searches) {
            (Some(tokens), Some(searches)) => Some(tokens + searches),
            (one, None) | (None, one) => one,
        }
    }
}

#[cfg(test)]
mod tests;
