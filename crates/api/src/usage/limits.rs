//! Limits of subscriptions.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The limits of subscriptions: the JSON of `teamster usage --limits --json` and of `GET /v1/limits`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[non_exhaustive]
pub struct LimitList {
    /// The limits in the files that the CLIs left on disk.
    pub limits: Vec<UsageLimit>,
}

/// A limit of a subscription, and how much of it is used.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct UsageLimit {
    /// The CLI whose service has the limit.
    pub provider: String,
    /// The length of the window in minutes: 300 for five hours, 10,080 for a week.
    pub window_minutes: Option<u64>,
    /// The used part of the limit, in percent.
    pub used_percent: f64,
    /// Time at which the window ends and the limit resets.
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub resets_at: Option<Timestamp>,
    /// Time at which the service reported the limit.
    #[schemars(with = "String", extend("format" = "date-time"))]
    pub at: Timestamp,
}

impl LimitList {
    /// Creates a list of these limits.
    pub fn new(limits: Vec<UsageLimit>) -> Self {
        Self { limits }
    }
}

impl UsageLimit {
    /// Creates a limit with this usage in percent, as reported at this time.
    pub fn new(provider: impl Into<String>, used_percent: f64, at: Timestamp) -> Self {
        Self {
            provider: provider.into(),
            window_minutes: None,
            used_percent,
            resets_at: None,
            at,
        }
    }
}
