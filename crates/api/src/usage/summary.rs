//! The report of usage: the JSON of `teamster usage --json` and of `GET /v1/usage`.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::figures::{Diagnostics, Dimension, Figures};

/// Usage of agents, in groups.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct UsageSummary {
    /// Dimension of the groups.
    pub by: Dimension,
    /// Start of the counted period.
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub since: Option<Timestamp>,
    /// End of the counted period.
    #[schemars(with = "Option<String>", extend("format" = "date-time"))]
    pub until: Option<Timestamp>,
    /// Time zone of the days, by its IANA name. Absent if it has none.
    pub time_zone: Option<String>,
    /// The groups. Days and sessions are in chronological order, others by cost in descending order.
    pub groups: Vec<UsageGroup>,
    /// All groups together.
    pub total: Figures,
    /// Models with requests that have no price.
    pub unpriced: Vec<UnpricedModel>,
    /// Source of the prices for estimates.
    pub prices: PriceSource,
    /// The share of the history of runs.
    pub history: HistoryShare,
    /// Statistics and problems of reading.
    pub diagnostics: Diagnostics,
}

impl UsageSummary {
    /// Creates a report without groups and of all time.
    pub fn new(by: Dimension, total: Figures, prices: PriceSource) -> Self {
        Self {
            by,
            since: None,
            until: None,
            time_zone: None,
            groups: Vec::new(),
            total,
            unpriced: Vec::new(),
            prices,
            history: HistoryShare::default(),
            diagnostics: Diagnostics::default(),
        }
    }
}

/// The figures of one group.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct UsageGroup {
    /// Name of the group. Absent if the files do not have it.
    pub name: Option<String>,
    /// Figures of the group.
    #[serde(flatten)]
    pub figures: Figures,
    /// The CLIs with figures in the group.
    pub providers: Vec<String>,
    /// The models with figures in the group.
    pub models: Vec<String>,
    /// The directory in which a session began.
    pub directory: Option<String>,
    /// The time of the first request.
    #[schemars(with = "String", extend("format" = "date-time"))]
    pub first: Timestamp,
    /// The time of the last request.
    #[schemars(with = "String", extend("format" = "date-time"))]
    pub last: Timestamp,
    /// The models within the group, if requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_model: Vec<ModelFigures>,
}

impl UsageGroup {
    /// Creates a group with these figures, from this first to this last request.
    pub fn new(figures: Figures, first: Timestamp, last: Timestamp) -> Self {
        Self {
            name: None,
            figures,
            providers: Vec::new(),
            models: Vec::new(),
            directory: None,
            first,
            last,
            by_model: Vec::new(),
        }
    }
}

/// The figures of a model within a group.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ModelFigures {
    /// The model. Absent if the files do not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The CLIs that used the model.
    #[serde(default)]
    pub providers: Vec<String>,
    /// Figures of the group.
    #[serde(flatten)]
    pub figures: Figures,
}

impl ModelFigures {
    /// Creates the figures of a model that these CLIs used.
    pub fn new(model: Option<String>, providers: Vec<String>, figures: Figures) -> Self {
        Self {
            model,
            providers,
            figures,
        }
    }
}

/// A model with requests that have no price.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[non_exhaustive]
pub struct UnpricedModel {
    /// The model. Empty if the files do not have it.
    pub model: String,
    /// Number of requests without a price.
    pub requests: u64,
    /// Number of all requests to the model.
    pub of: u64,
}

impl UnpricedModel {
    /// Creates a model of whose `of` requests this many have no price.
    pub fn new(model: impl Into<String>, requests: u64, of: u64) -> Self {
        Self {
            model: model.into(),
            requests,
            of,
        }
    }
}

/// Source of the prices for estimates.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[non_exhaustive]
pub struct PriceSource {
    /// The origin of the built-in table.
    pub source: String,
    /// The date of the built-in table.
    pub date: String,
    /// The user's price file, which takes precedence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

impl PriceSource {
    /// Creates the source of a built-in table of this origin and date.
    pub fn new(source: impl Into<String>, date: impl Into<String>) -> Self {
        Self {
            source: source.into(),
            date: date.into(),
            file: None,
        }
    }
}

/// The share of the history of runs.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct HistoryShare {
    /// Runs that are not in the CLIs' files.
    pub only_there: u64,
    /// Runs whose cost is added to the tokens of the CLIs' files.
    pub with_cost: u64,
    /// Runs of agents whose files are not known; they are not counted.
    pub of_other_agents: u64,
}
