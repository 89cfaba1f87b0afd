//! Prices of tokens, from a dated table in this repository.
//!
//! An estimate uses list prices, without discounts and subscriptions. A cost that the CLI reports is more accurate.
//!
//! `cargo xtask prices` generates the table.
#![warn(missing_docs)]

mod file;
mod surcharges;
mod table;
mod vendor;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use teamster_core::Usage;
use teamster_core::provider::base_directory;

use file::FilePrices;
use table::{Model, Prices, Rates, Table};

pub use file::PriceFileError;
pub use vendor::Vendor;

/// Environment variable with the path of the user's price file.
const FILE_VARIABLE: &str = "TEAMSTER_PRICES";
/// Path of the user's price file in the configuration directory.
const FILE: &str = "teamster/prices.toml";

/// Prices for estimates: those of a user's file, then those of the table in this repository. Default: only the table.
#[derive(Debug, Clone, Default)]
pub struct PriceList {
    file: Option<Arc<FilePrices>>,
}

/// The prices of a model in a list, found by its name ([`PriceList::find`]).
#[derive(Debug, Clone, Copy)]
pub struct ModelPrices(Found);

/// Source of a model's prices.
#[derive(Debug, Clone, Copy)]
enum Found {
    File(usize),
    Table(&'static Model),
}

impl PriceList {
    /// Reads a price file, whose prices take precedence over those of the table. `docs/usage.md` describes the file.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read or parsed.
    pub fn with_file(path: &Path) -> Result<Self, PriceFileError> {
        FilePrices::read(path).map(Self::of)
    }

    /// Reads the user's price file. It is the file named by the variable `TEAMSTER_PRICES`, or else
    /// `teamster/prices.toml` in the user's configuration directory, if it exists. Otherwise only the table is used.
    ///
    /// `variable` returns the value of an environment variable.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read or parsed.
    pub fn of_user(variable: impl Fn(&str) -> Option<OsString>) -> Result<Self, PriceFileError> {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let file = match set(FILE_VARIABLE) {
            Some(file) => Some(PathBuf::from(file)),
            None => base_directory(set, "XDG_CONFIG_HOME", ".config")
                .map(|config| config.join(FILE))
                .filter(|file| file.exists()),
        };
        file.map_or_else(|| Ok(Self::default()), |file| Self::with_file(&file))
    }

    /// Parses the text of a price file. Errors name `path`.
    ///
    /// # Errors
    ///
    /// Fails if the text is not a valid price file.
    pub fn with_text(text: &str, path: &Path) -> Result<Self, PriceFileError> {
        FilePrices::parse(text, path).map(Self::of)
    }

    fn of(file: FilePrices) -> Self {
        Self {
            file: Some(Arc::new(file)),
        }
    }

    /// Returns the path of the price file, if there is one.
    pub fn file(&self) -> Option<&Path> {
        self.file.as_ref().map(|file| &*file.path)
    }

    /// Estimates the cost of a request, in USD. Returns `None` if the model has no price, or if neither input nor output
    /// is known.
    pub fn estimate(&self, request: &Request<'_>) -> Option<f64> {
        self.cost(self.find(request.cli, request.model)?, request)
    }

    /// Estimates the current cost of a request to a model that is named with its service, such as `openai/gpt-5.1`.
    /// Returns `None` for a name without a service.
    pub fn estimate_model(&self, model: &str, usage: &Usage) -> Option<f64> {
        if !model.contains('/') {
            return None;
        }
        // The CLI matters only if the service is not named.
        self.estimate(&Request::new("", model, usage, Timestamp::now()))
    }

    /// Returns the prices of a model, by the id of the provider and the name as written by the CLI. `None` if it has none.
    pub fn find(&self, cli: &str, model: &str) -> Option<ModelPrices> {
        let own = self.file.as_ref().and_then(|file| file.find(model));
        let found = own.map(Found::File).or_else(|| {
            let table = Table::get().find(Vendor::of_cli(cli), model);
            table.map(Found::Table)
        });
        found.map(ModelPrices)
    }

    /// Estimates the cost of a request by prices that were found in this list before, in USD. Returns `None` if neither
    /// input nor output is known, or if the model's faster service has no known price.
    pub fn cost(&self, prices: ModelPrices, request: &Request<'_>) -> Option<f64> {
        let model = self.model(prices)?;
        let usage = request.usage;
        let (one_request, hour) = (!request.is_sum, request.cache_write_1h_tokens);
        let tokens = cost(model.at(request.at)?, usage, hour, one_request)?;
        let tokens = if request.fast {
            let size = if one_request { size(usage) } else { 0 };
            let written = usage.cache_write_tokens.unwrap_or(0);
            let hour = hour.unwrap_or(0).min(written);
            // A faster service without a known price is not estimated by the normal price.
            let rates = self.fast(prices, request.cli, request.model, size)?;
            at_rates(rates, usage, hour)
        } else {
            tokens
        };
        let more = if request.us_only {
            surcharges::US_ONLY
        } else {
            1.0
        };
        Some(tokens * more)
    }

    fn model(&self, found: ModelPrices) -> Option<&Model> {
        match found.0 {
            Found::File(index) => self.file.as_ref()?.model(index),
            Found::Table(model) => Some(model),
        }
    }

    /// Returns the prices of a model's faster service for a request of this size.
    fn fast(&self, found: ModelPrices, cli: &str, name: &str, size: u64) -> Option<Rates> {
        let fast = |model: &Model| Some(model.fast()?.rates(size));
        (self.model(found).and_then(fast))
            .or_else(|| {
                let table = Table::get().find(Vendor::of_cli(cli), name);
                table.and_then(fast)
            })
            .or_else(|| surcharges::fast(&table::plain_name(name)))
    }
}

/// A request, or several, whose cost is estimated.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Request<'a> {
    /// The id of the provider.
    pub cli: &'a str,
    /// The model's name as written by the CLI, with or without the vendor, a date, or the size of the context window:
    /// `claude-opus-4-8[1m]`, `anthropic/claude-opus-4-8`, `claude-sonnet-4-5-20250929`.
    pub model: &'a str,
    /// The tokens.
    pub usage: &'a Usage,
    /// The part of `usage.cache_write_tokens` that the cache keeps for an hour.
    pub cache_write_1h_tokens: Option<u64>,
    /// The tokens are those of several requests, so the higher prices of large requests are ignored.
    pub is_sum: bool,
    /// The faster service has answered.
    pub fast: bool,
    /// The service was limited to the United States.
    pub us_only: bool,
    /// The time of the request.
    pub at: Timestamp,
}

impl<'a> Request<'a> {
    /// Creates a request to the normal service.
    pub fn new(cli: &'a str, model: &'a str, usage: &'a Usage, at: Timestamp) -> Self {
        Self {
            cli,
            model,
            usage,
            cache_write_1h_tokens: None,
            is_sum: false,
            fast: false,
            us_only: false,
            at,
        }
    }

    /// Marks the tokens as those of several requests of unknown sizes.
    #[must_use]
    pub fn sum(mut self) -> Self {
        self.is_sum = true;
        self
    }
}

/// Price of a web search by Anthropic's service, in USD.
pub const WEB_SEARCH: f64 = surcharges::WEB_SEARCH;

/// Returns a model's name without its vendor, its date and the size of its context window.
pub fn plain_name(name: &str) -> String {
    table::plain_name(name)
}

/// Returns the source of the table's prices, for display.
pub fn source() -> &'static str {
    &Table::get().name
}

/// Returns the date of the table's prices, such as `2026-09-23`.
pub fn date() -> &'static str {
    &Table::get().date
}

/// Returns the cost of tokens by these prices.
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

/// Returns the input of a request, including cache reads and writes. Above a limit, all tokens of a request have
/// another price.
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

/// Returns the cost of tokens, `hour` of which were written to a cache for an hour.
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

#[cfg(test)]
mod tests;
