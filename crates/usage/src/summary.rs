//! Serializable usage: the JSON of `teamster usage --json` and of `GET /v1/usage`.

use std::collections::HashMap;

use jiff::Timestamp;
use jiff::fmt::temporal::DateTimePrinter;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

use crate::{Accounts, Diagnostics, Dimension, Figures, Group, Joined, Limit, prices};

/// Usage of agents, in groups.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct UsageSummary {
    /// Dimension of the groups.
    pub by: Dimension,
    /// Start of the counted period.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>", extend("format" = "date-time")))]
    pub since: Option<Timestamp>,
    /// End of the counted period.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>", extend("format" = "date-time")))]
    pub until: Option<Timestamp>,
    /// Time zone of the days, by its IANA name. Absent if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
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

/// The figures of one group.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct UsageGroup {
    /// Name of the group. Absent if the files do not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Figures of the group.
    #[serde(flatten)]
    pub figures: Figures,
    /// The CLIs with figures in the group.
    pub providers: Vec<String>,
    /// The models with figures in the group.
    pub models: Vec<String>,
    /// The directory in which a session began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// The time of the first request.
    #[cfg_attr(feature = "schema", schemars(with = "String", extend("format" = "date-time")))]
    pub first: Timestamp,
    /// The time of the last request.
    #[cfg_attr(feature = "schema", schemars(with = "String", extend("format" = "date-time")))]
    pub last: Timestamp,
    /// The models within the group, if requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_model: Vec<ModelFigures>,
}

/// The figures of a model within a group.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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

/// A model with requests that have no price.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct UnpricedModel {
    /// The model. Empty if the files do not have it.
    pub model: String,
    /// Number of requests without a price.
    pub requests: u64,
    /// Number of all requests to the model.
    pub of: u64,
}

/// Source of the prices for estimates.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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

/// The share of the history of runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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

/// The limits of subscriptions: the JSON of `teamster usage --limits --json` and of `GET /v1/limits`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct LimitList {
    /// The limits in the files that the CLIs left on disk.
    pub limits: Vec<UsageLimit>,
}

/// A limit of a subscription, and how much of it is used.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct UsageLimit {
    /// The CLI whose service has the limit.
    pub provider: String,
    /// The length of the window in minutes: 300 for five hours, 10,080 for a week.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_minutes: Option<u64>,
    /// The used part of the limit, in percent.
    pub used_percent: f64,
    /// Time at which the window ends and the limit resets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>", extend("format" = "date-time")))]
    pub resets_at: Option<Timestamp>,
    /// Time at which the service reported the limit.
    #[cfg_attr(feature = "schema", schemars(with = "String", extend("format" = "date-time")))]
    pub at: Timestamp,
}

impl LimitList {
    /// Creates a list of these limits.
    pub fn new(limits: Vec<Limit>) -> Self {
        let limits = limits.into_iter().map(|limit| UsageLimit {
            provider: limit.provider.id().to_owned(),
            window_minutes: limit.window_minutes,
            used_percent: limit.used_percent,
            resets_at: limit.resets_at,
            at: limit.at,
        });
        Self {
            limits: limits.collect(),
        }
    }
}

impl Accounts {
    /// Returns the usage by a dimension and, with `models`, by each model within its groups. `joined` is the result of
    /// [`join`](Self::join), and `of_others` the number of runs of agents whose files are not known.
    pub fn summary(
        &self,
        by: Dimension,
        models: bool,
        joined: Joined,
        of_others: u64,
    ) -> UsageSummary {
        let mut groups = self.by(by);
        match by {
            Dimension::Day | Dimension::Week | Dimension::Month => {}
            // The session that was used last comes last, where a terminal shows it.
            Dimension::Session => groups.sort_by_key(|group| group.last),
            Dimension::Model
            | Dimension::Agent
            | Dimension::Project
            | Dimension::Provider
            | Dimension::Key => groups.sort_by(|a, b| {
                let cost = |group: &Group| group.figures.spent_usd.unwrap_or_default();
                let tokens = |group: &Group| group.figures.usage.total_tokens();
                cost(b)
                    .total_cmp(&cost(a))
                    .then_with(|| tokens(b).cmp(&tokens(a)))
            }),
        }
        let mut by_model: HashMap<_, _> = if models {
            self.models_by(by).into_iter().collect()
        } else {
            HashMap::new()
        };
        let groups = groups.into_iter().map(|group| {
            let models = by_model.remove(&group.name).unwrap_or_default();
            UsageGroup::of(&group, models)
        });
        let unpriced = self.by(Dimension::Model).into_iter();
        let unpriced = unpriced
            .filter(|model| model.figures.unpriced_requests > 0)
            .map(|model| UnpricedModel {
                model: model.name.as_deref().unwrap_or_default().to_owned(),
                requests: model.figures.unpriced_requests,
                of: model.figures.requests,
            });
        let zone = self.zone.clone().unwrap_or(TimeZone::UTC);
        UsageSummary {
            by,
            since: self.since,
            until: self.until,
            // A time zone that was read from a copied file has no name.
            time_zone: DateTimePrinter::new().time_zone_to_string(&zone).ok(),
            groups: groups.collect(),
            total: self.total(),
            unpriced: unpriced.collect(),
            prices: PriceSource {
                source: prices::source().to_owned(),
                date: prices::date().to_owned(),
                // JSON must be UTF-8, which a path need not be.
                file: self.prices.file().map(|file| file.display().to_string()),
            },
            history: HistoryShare {
                only_there: joined.only_there,
                with_cost: joined.with_cost,
                of_other_agents: of_others,
            },
            diagnostics: self.diagnostics.clone(),
        }
    }
}

impl UsageGroup {
    fn of(group: &Group, models: Vec<Group>) -> Self {
        let (providers, names) = (providers(group), names(group));
        let models = models.into_iter().map(|model| ModelFigures {
            providers: self::providers(&model),
            model: model.name.as_deref().map(str::to_owned),
            figures: model.figures,
        });
        Self {
            name: group.name.as_deref().map(str::to_owned),
            figures: group.figures,
            providers,
            models: names,
            directory: group.directory.as_deref().map(str::to_owned),
            first: group.first,
            last: group.last,
            by_model: models.collect(),
        }
    }
}

fn providers(group: &Group) -> Vec<String> {
    let providers = group.providers.iter();
    providers.map(|it| it.id().to_owned()).collect()
}

fn names(group: &Group) -> Vec<String> {
    group.models.iter().map(|it| (**it).to_owned()).collect()
}
