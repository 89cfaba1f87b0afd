//! A CLI's record of one request.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use jiff::Timestamp;
use teamster_core::Usage;

use crate::Provider;

/// The identity of a request in all files: a hash of its ids.
///
/// Two requests of a million are taken for one with a probability of 3 in 100 million.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key(pub(crate) u64);

impl Key {
    /// The key of a request with these ids.
    pub fn of(provider: Provider, ids: &[&str]) -> Self {
        let mut hasher = DefaultHasher::new();
        provider.hash(&mut hasher);
        ids.hash(&mut hasher);
        Self(hasher.finish())
    }
}

/// A CLI's record of one request to a model, or of several.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Record {
    /// The provider of the file.
    pub provider: Provider,
    /// The key of the request. Records with the same key are one request: of each figure the
    /// largest counts. Of sums with the same key one counts. Without a key it counts each time.
    pub key: Option<Key>,
    /// The key of the request in another file: [`Accounts::amend`](crate::Accounts::amend).
    pub alias: Option<Key>,
    /// The session in which it was made. A sub-agent's is that of the session which started it.
    pub session: Arc<str>,
    /// The model as the CLI writes it.
    pub model: Option<Arc<str>>,
    /// Vendor of the model, if the CLI names it: the price depends on it.
    pub vendor: Option<Arc<str>>,
    /// When it was made.
    pub at: Timestamp,
    /// The directory in which the session works.
    pub directory: Option<Arc<str>>,
    /// Tokens.
    pub usage: Usage,
    /// Of the tokens that were written to a cache, those that it keeps for an hour; they cost more.
    pub cache_write_1h_tokens: Option<u64>,
    /// Searches in the web that the service made for it; they have a price of their own.
    pub web_searches: Option<u64>,
    /// Whether a faster service answered, for a higher price.
    pub fast: bool,
    /// Whether the service was limited to the United States, for a higher price.
    pub us_only: bool,
    /// Cost in USD, if the CLI's own file has it.
    pub cost_usd: Option<f64>,
    /// Whether the cost is part of a reported sum that another record has.
    pub cost_elsewhere: bool,
    /// Premium requests that Copilot counts for it.
    pub premium_requests: Option<f64>,
    /// Whether a sub-agent made it.
    pub subagent: bool,
    /// Whether the file marks this as a copy from another session's file.
    pub copied: bool,
    /// Number of requests. For a record with a key that is not a sum, the value is ignored and counts as 1.
    pub requests: u64,
    /// Whether these are sums, of which no one knows how large each request was. Then `requests` may be 0:
    /// where no one knows how many there were, or a figure is of requests that are counted elsewhere.
    pub sum: bool,
}

impl Record {
    /// A record without figures.
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
