//! Prices of tokens, by a dated table in this repository.
//!
//! An estimate uses list prices, without discounts and subscriptions. A cost reported by the CLI is better.
//!
//! `cargo xtask prices` makes the table.

mod file;
mod surcharges;
mod table;

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use teamster_core::Usage;

use crate::{Provider, Record};
use file::FilePrices;
pub(crate) use table::Vendor;
use table::{Model, Prices, Rates, Table};

pub use file::PriceFileError;

/// The variable of the environment that names the user's own file of prices.
const FILE_VARIABLE: &str = "TEAMSTER_PRICES";
/// The user's own file of prices, in the folder of configuration files.
const FILE: &str = "teamster/prices.toml";

/// Where the user's own file is, by the XDG base directory specification.
fn own_file(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let folder = |name| {
        let folder = variable(name).map(PathBuf::from);
        folder.filter(|folder| folder.is_absolute())
    };
    let config = folder("XDG_CONFIG_HOME").or_else(|| Some(folder("HOME")?.join(".config")))?;
    Some(config.join(FILE))
}

/// The prices that estimates are made with: those of a user's file, and else those of the table in this
/// repository, which are the default.
#[derive(Debug, Clone, Default)]
pub struct PriceList {
    file: Option<Arc<FilePrices>>,
}

/// Source of a model's prices.
#[derive(Debug, Clone, Copy)]
enum Found {
    File(usize),
    Table(&'static Model),
}

impl PriceList {
    /// The prices with those of a file before them. `docs/usage.md` describes the file.
    pub fn with_file(path: &Path) -> Result<Self, PriceFileError> {
        FilePrices::read(path).map(Self::of)
    }

    /// The user's prices: with the file that the variable `TEAMSTER_PRICES` names, else with
    /// `teamster/prices.toml` in the user's folder of configuration files if it is there, else those of the
    /// table. `variable` gives the value of a variable of the environment.
    pub fn of_user(variable: impl Fn(&str) -> Option<OsString>) -> Result<Self, PriceFileError> {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let file = match set(FILE_VARIABLE) {
            Some(file) => Some(PathBuf::from(file)),
            None => own_file(set).filter(|file| file.exists()),
        };
        file.map_or_else(|| Ok(Self::default()), |file| Self::with_file(&file))
    }

    /// The same with the text of a file. Errors name `path`.
    pub fn with_text(text: &str, path: &Path) -> Result<Self, PriceFileError> {
        FilePrices::parse(text, path).map(Self::of)
    }

    fn of(file: FilePrices) -> Self {
        Self {
            file: Some(Arc::new(file)),
        }
    }

    /// The file whose prices come first.
    pub fn file(&self) -> Option<&Path> {
        self.file.as_ref().map(|file| &*file.path)
    }

    /// An estimate of what one request cost, in USD. `None` if the model has no price, or if neither input nor
    /// output is known.
    ///
    /// `cache_write_1h_tokens` are those of `usage.cache_write_tokens` that the cache keeps for an hour.
    /// `model` is as the CLI writes it, with or without the vendor, a date, or the size of the context window:
    /// `claude-opus-4-8[1m]`, `anthropic/claude-opus-4-8`, `claude-sonnet-4-5-20250929`.
    pub fn estimate(
        &self,
        provider: Provider,
        model: &str,
        usage: &Usage,
        cache_write_1h_tokens: Option<u64>,
        at: Timestamp,
    ) -> Option<f64> {
        let prices = self.model(self.find(provider, model)?)?.at(at)?;
        cost(prices, usage, cache_write_1h_tokens, true)
    }

    /// The same of a model that is named with its service, such as `openai/gpt-5.1`, now. `None` for one that is
    /// named without.
    pub fn estimate_model(&self, model: &str, usage: &Usage) -> Option<f64> {
        if !model.contains('/') {
            return None;
        }
        // Which CLI asks counts only where the service is not named.
        self.estimate(Provider::OpenCode, model, usage, None, Timestamp::now())
    }

    /// The same of several requests together, whose sizes are not known: the higher prices of large requests
    /// are left out.
    pub fn estimate_sum(
        &self,
        provider: Provider,
        model: &str,
        usage: &Usage,
        cache_write_1h_tokens: Option<u64>,
        at: Timestamp,
    ) -> Option<f64> {
        let prices = self.model(self.find(provider, model)?)?.at(at)?;
        cost(prices, usage, cache_write_1h_tokens, false)
    }

    fn find(&self, provider: Provider, name: &str) -> Option<Found> {
        let own = self.file.as_ref().and_then(|file| file.find(name));
        own.map(Found::File)
            .or_else(|| Table::get().find(provider, name).map(Found::Table))
    }

    fn model(&self, found: Found) -> Option<&Model> {
        match found {
            Found::File(place) => self.file.as_ref()?.model(place),
            Found::Table(model) => Some(model),
        }
    }

    /// The prices of a model's faster service for a request of this size.
    fn fast(&self, found: Found, provider: Provider, name: &str, size: u64) -> Option<Rates> {
        let fast = |model: &Model| Some(model.fast()?.rates(size));
        (self.model(found).and_then(fast))
            .or_else(|| Table::get().find(provider, name).and_then(fast))
            .or_else(|| surcharges::fast(&table::plain_name(name)))
    }
}

/// [`PriceList::estimate`] by the table.
pub fn estimate(
    provider: Provider,
    model: &str,
    usage: &Usage,
    cache_write_1h_tokens: Option<u64>,
    at: Timestamp,
) -> Option<f64> {
    PriceList::default().estimate(provider, model, usage, cache_write_1h_tokens, at)
}

/// [`PriceList::estimate_sum`] by the table.
pub fn estimate_sum(
    provider: Provider,
    model: &str,
    usage: &Usage,
    cache_write_1h_tokens: Option<u64>,
    at: Timestamp,
) -> Option<f64> {
    PriceList::default().estimate_sum(provider, model, usage, cache_write_1h_tokens, at)
}

/// A model's name without its vendor, its date and the size of its context window.
pub(crate) fn plain_name(name: &str) -> Arc<str> {
    table::plain_name(name).into()
}

/// The packages that the prices of the table are from, for a line under estimates.
pub fn source() -> &'static str {
    &Table::get().name
}

/// The day on which the prices were published, `2026-09-23`.
pub fn date() -> &'static str {
    &Table::get().date
}

/// The cost of tokens by these prices.
fn cost(
    prices: &Prices,
    usage: &Usage,
    cache_write_1h_tokens: Option<u64>,
    one_request: bool,
) -> Option<f64> {
    if usage.input_tokens.is_none() && usage.output_tokens.is_none() {
        return None;
    }
    let written = usage.cache_write_tokens.unwrap_or(0);
    let hour = cache_write_1h_tokens.unwrap_or(0).min(written);
    let rates = prices.rates(if one_request { size(usage) } else { 0 });
    Some(at_rates(rates, usage, hour))
}

/// The input of a request, what is read from and written to a cache included: above a limit, all of its tokens
/// have another price.
fn size(usage: &Usage) -> u64 {
    [
        usage.input_tokens,
        usage.cache_read_tokens,
        usage.cache_write_tokens,
    ]
    .into_iter()
    .flatten()
    .fold(0, u64::saturating_add)
}

/// The cost of tokens, of which `hour` were written to a cache for an hour.
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

/// A CLI, the vendor of the answer, and the model.
type ModelKey = (Provider, Option<Arc<str>>, Arc<str>);

/// Estimates for many records: each model is looked up once.
#[derive(Debug, Default)]
pub(crate) struct Estimates {
    list: PriceList,
    models: HashMap<ModelKey, Option<Found>>,
}

impl Estimates {
    pub(crate) fn new(list: PriceList) -> Self {
        Self {
            list,
            models: HashMap::new(),
        }
    }

    /// The estimate for a record.
    pub(crate) fn of(&mut self, record: &Record) -> Option<f64> {
        let name = record.model.as_ref()?;
        let provider = record.provider;
        let list = &self.list;
        let found = *self
            .models
            .entry((provider, record.vendor.clone(), name.clone()))
            .or_insert_with(|| match &record.vendor {
                Some(vendor) => list.find(provider, &format!("{vendor}/{name}")),
                None => list.find(provider, name),
            });
        let prices = list.model(found?)?.at(record.at)?;
        let usage = &record.usage;
        let tokens = cost(prices, usage, record.cache_write_1h_tokens, !record.sum);
        let tokens = if record.fast {
            let rates = list.fast(
                found?,
                provider,
                name,
                if record.sum { 0 } else { size(usage) },
            );
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
        let searches = record.web_searches;
        let searches = searches.filter(|_| record.provider.traits().pays_searches);
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
