//! What tokens cost, by a table in this repository.

use jiff::Timestamp;
use teamster_core::Usage;

use crate::Provider;

/// An estimate of what one request cost, in USD. `None` if the table does not know the model, or if no
/// tokens are told.
///
/// `cache_write_1h_tokens` are those of `usage.cache_write_tokens` that the cache keeps for an hour.
pub fn estimate(
    _provider: Provider,
    _model: &str,
    _usage: &Usage,
    _cache_write_1h_tokens: Option<u64>,
    _at: Timestamp,
) -> Option<f64> {
    None
}

/// The same of several requests together, of which no one knows how large each was: prices for large
/// requests do not apply.
pub fn estimate_sum(
    _provider: Provider,
    _model: &str,
    _usage: &Usage,
    _cache_write_1h_tokens: Option<u64>,
    _at: Timestamp,
) -> Option<f64> {
    None
}

/// What the table is: its date, its source and its version, for a line under figures.
pub fn table() -> &'static str {
    ""
}

/// The estimate for a record.
pub(crate) fn of_record(record: &crate::Record) -> Option<f64> {
    let estimate = if record.key.is_some() || record.requests == 1 {
        estimate
    } else {
        estimate_sum
    };
    estimate(
        record.provider,
        record.model.as_deref()?,
        &record.usage,
        record.cache_write_1h_tokens,
        record.at,
    )
}
