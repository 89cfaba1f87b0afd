//! A CLI's record of one request.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use jiff::Timestamp;
use teamster_core::Usage;

use crate::Provider;

/// Identity of a request over all files: a hash of its ids.
///
/// Among a million requests, two have the same key with a probability of 3 in 100 million.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key(pub(crate) u64);

impl Key {
    /// Returns the key of a request with these ids.
    pub fn of(provider: Provider, ids: &[&str]) -> Self {
        let mut hasher = DefaultHasher::new();
        provider.hash(&mut hasher);
        ids.hash(&mut hasher);
        Self(hasher.finish())
    }
}

/// A CLI's record of one or several requests to a model.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Record {
    /// The provider of the file.
    pub provider: Provider,
    /// Key of the request. Records with the same key are one request, with the largest value of each figure. Of sums
    /// with the same key only one counts. A record without a key always counts.
    pub key: Option<Key>,
    /// Key of the request in another file.
    pub alias: Option<Key>,
    /// The session of the request. For a sub-agent it is the session that started it.
    pub session: Arc<str>,
    /// Name of the model as written by the CLI.
    pub model: Option<Arc<str>>,
    /// Vendor of the model, if the CLI names it. The price depends on it.
    pub vendor: Option<Arc<str>>,
    /// Time of the request.
    pub at: Timestamp,
    /// Working directory of the session.
    pub directory: Option<Arc<str>>,
    /// Tokens.
    pub usage: Usage,
    /// Tokens that are cached for an hour, among those that were written to a cache. They cost more.
    pub cache_write_1h_tokens: Option<u64>,
    /// Web searches that the service made for the request. They have their own price.
    pub web_searches: Option<u64>,
    /// True if a faster service answered, for a higher price.
    pub fast: bool,
    /// True if the service was limited to the United States, for a higher price.
    pub us_only: bool,
    /// Cost in USD, if the CLI's own file has it.
    pub cost_usd: Option<f64>,
    /// True if the cost is part of a reported sum in another record.
    pub cost_elsewhere: bool,
    /// Premium requests that Copilot counts for the request.
    pub premium_requests: Option<f64>,
    /// True if a sub-agent made the request.
    pub subagent: bool,
    /// True if the file marks the record as a copy from another session's file.
    pub copied: bool,
    /// Number of requests. Ignored, and taken as 1, for a record with a key that is not a sum.
    pub requests: u64,
    /// True if the figures are sums of requests of unknown sizes. Then `requests` is 0 if their number is unknown or
    /// the requests are counted elsewhere.
    pub sum: bool,
}

impl Record {
    /// Creates a record of one request without figures.
    pub fn new(provider: Provider, session: Arc<str>, at: Timestamp) -> Self {
        Self {
            provider,
            key: None,
            alias: None,
            session,
            model: None,
            vendor: None,
            at,
            directory: None,
            usage: Usage::default(),
            cache_write_1h_tokens: None,
            web_searches: None,
            fast: false,
            us_only: false,
            cost_usd: None,
            cost_elsewhere: false,
            premium_requests: None,
            subagent: false,
            copied: false,
            requests: 1,
            sum: false,
        }
    }
}
