//! Figures of usage.

use std::fmt;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use teamster_core::Usage;

/// Dimension by which figures are grouped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Dimension {
    /// The day of the request, `2026-11-22`, in the zone of the accounts.
    Day,
    /// The week of the request by its Monday, `2026-11-16`, in the zone of the accounts.
    Week,
    /// The month of the request, `2026-11`, in the zone of the accounts.
    Month,
    /// The directory in which the session was working at the request.
    Project,
    /// The model as the CLI writes it.
    Model,
    /// The agent: the directory in which the session began.
    Agent,
    /// The session.
    Session,
    /// The CLI.
    Provider,
    /// The key of the conversation (`--session-key`) that the session belongs to.
    Key,
    /// The account (`--account`) that the session was begun with.
    Account,
}

impl Dimension {
    /// Returns the name, as in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
            Self::Project => "project",
            Self::Model => "model",
            Self::Agent => "agent",
            Self::Session => "session",
            Self::Provider => "provider",
            Self::Key => "key",
            Self::Account => "account",
        }
    }
}

impl fmt::Display for Dimension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Sums. Unknown figures are absent, never 0.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Figures {
    /// Requests to models.
    pub requests: u64,
    /// Requests that sub-agents made, included in `requests`.
    pub subagent_requests: u64,
    /// Tokens.
    pub usage: Usage,
    /// Tokens that are cached for an hour, among those that were written to a cache.
    pub cache_write_1h_tokens: Option<u64>,
    /// Cost reported by the CLIs in USD, for those requests that have one.
    pub reported_cost_usd: Option<f64>,
    /// Cost by the price table in USD, for those requests whose model it has.
    pub estimated_cost_usd: Option<f64>,
    /// Cost in USD: for each request the reported cost, or else the estimate.
    pub spent_usd: Option<f64>,
    /// Web searches that the services made.
    pub web_searches: Option<u64>,
    /// Requests that are not in the estimate, because their model is unknown or has no price. A run in the history
    /// without a number of requests counts as one.
    pub unpriced_requests: u64,
    /// Premium requests as counted by Copilot.
    pub premium_requests: Option<f64>,
}

/// How fast usage grows.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct UsageRate {
    /// Tokens per minute.
    pub tokens_per_minute: f64,
    /// USD per hour, if any request of the period has a price.
    pub usd_per_hour: Option<f64>,
}

impl Figures {
    /// Returns the rate of a period of this length.
    pub fn rate(&self, minutes: u32) -> UsageRate {
        let minutes = f64::from(minutes);
        #[expect(clippy::cast_precision_loss, reason = "to 15 digits")]
        let tokens = self.usage.total_tokens().unwrap_or_default() as f64;
        UsageRate {
            tokens_per_minute: tokens / minutes,
            usd_per_hour: self.spent_usd.map(|usd| usd * 60.0 / minutes),
        }
    }

    /// Returns whether no part of the spent amount is estimated.
    pub fn is_reported(&self) -> bool {
        let both = self.spent_usd.zip(self.reported_cost_usd);
        both.is_some_and(|(spent, reported)| (spent - reported).abs() < 1e-9)
    }
}

/// Number of kept examples of unreadable paths.
const EXAMPLES: usize = 8;

/// Statistics and problems of reading. None of them ends a scan.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct Diagnostics {
    /// Files and databases that were read.
    pub files: u64,
    /// Files that were left out because they were last changed before the requested time.
    pub old_files: u64,
    /// Bytes that were read.
    pub bytes: u64,
    /// Lines that were read.
    pub lines: u64,
    /// Lines with figures that could not be parsed.
    pub malformed_lines: u64,
    /// Lines that were too long, and were skipped.
    pub oversize_lines: u64,
    /// Sessions without figures, because the CLI was killed before it wrote them.
    pub sessions_without_figures: u64,
    /// Files, folders and databases that could not be read.
    pub unreadable: u64,
    /// Examples of unreadable paths, at most 8.
    #[serde(serialize_with = "crate::path::list_shown")]
    #[schemars(with = "Vec<String>")]
    pub unreadable_examples: Vec<PathBuf>,
}

impl Diagnostics {
    /// Records that a path could not be read.
    pub fn unreadable(&mut self, path: &Path) {
        self.unreadable += 1;
        self.example(path.to_owned());
    }

    fn example(&mut self, path: PathBuf) {
        // The first ones by name, so that the result does not depend on the order of reading.
        if let Err(index) = self.unreadable_examples.binary_search(&path) {
            self.unreadable_examples.insert(index, path);
            self.unreadable_examples.truncate(EXAMPLES);
        }
    }

    /// Adds the diagnostics of another part of the scan.
    pub fn merge(&mut self, other: Self) {
        self.files += other.files;
        self.old_files += other.old_files;
        self.bytes += other.bytes;
        self.lines += other.lines;
        self.malformed_lines += other.malformed_lines;
        self.oversize_lines += other.oversize_lines;
        self.sessions_without_figures += other.sessions_without_figures;
        self.unreadable += other.unreadable;
        for path in other.unreadable_examples {
            self.example(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dimension_has_its_name_in_json() {
        for dimension in [
            Dimension::Day,
            Dimension::Week,
            Dimension::Month,
            Dimension::Project,
            Dimension::Model,
            Dimension::Agent,
            Dimension::Session,
            Dimension::Provider,
            Dimension::Key,
            Dimension::Account,
        ] {
            assert_eq!(serde_json::to_value(dimension).unwrap(), dimension.as_str());
        }
    }
}
