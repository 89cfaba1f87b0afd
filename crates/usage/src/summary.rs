//! The report of usage, from accounts.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::fmt::temporal::DateTimePrinter;
use jiff::tz::TimeZone;
use teamster_api::usage::{
    Dimension, LimitList, ModelFigures, PriceSource, UnpricedModel, UsageGroup, UsageLimit,
    UsageSummary,
};

use crate::scan::timestamp;
use crate::{Accounts, Group, Joined, Limit, prices};

/// Returns the report of these limits.
pub fn limit_list(limits: Vec<Limit>) -> LimitList {
    let limits = limits.into_iter().map(|limit| {
        let mut report =
            UsageLimit::new(limit.provider.id(), limit.used_percent, timestamp(limit.at));
        report.window_minutes = limit.window_minutes;
        report.resets_at = limit.resets_at.map(timestamp);
        report
    });
    LimitList::new(limits.collect())
}

impl Accounts {
    /// Returns the usage by a dimension. `joined` is the result of [`join`](Self::join), and `of_others` the number of runs
    /// of agents whose files are not known.
    pub fn summary(&self, by: Dimension, joined: Joined, of_others: u64) -> UsageSummary {
        self.summary_of(by, Vec::new(), joined, of_others)
    }

    /// Returns the [`summary`](Self::summary) with the models of each group.
    pub fn summary_with_models(
        &self,
        by: Dimension,
        joined: Joined,
        of_others: u64,
    ) -> UsageSummary {
        self.summary_of(by, self.models_by(by), joined, of_others)
    }

    fn summary_of(
        &self,
        by: Dimension,
        models: Vec<(Option<Arc<str>>, Vec<Group>)>,
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
            | Dimension::Key
            | Dimension::Account => groups.sort_by(|a, b| {
                let cost = |group: &Group| group.figures.spent_usd.unwrap_or_default();
                let tokens = |group: &Group| group.figures.usage.total_tokens();
                cost(b)
                    .total_cmp(&cost(a))
                    .then_with(|| tokens(b).cmp(&tokens(a)))
            }),
        }
        let mut by_model: HashMap<_, _> = models.into_iter().collect();
        let groups = groups.into_iter().map(|group| {
            let models = by_model.remove(&group.name).unwrap_or_default();
            group_of(&group, models)
        });
        let unpriced = self.by(Dimension::Model).into_iter();
        let unpriced = unpriced
            .filter(|model| model.figures.unpriced_requests > 0)
            .map(|model| {
                let name = model.name.as_deref().unwrap_or_default();
                UnpricedModel::new(
                    name,
                    model.figures.unpriced_requests,
                    model.figures.requests,
                )
            });
        let zone = self.zone.clone().unwrap_or(TimeZone::UTC);
        let mut prices = PriceSource::new(prices::source(), prices::date());
        // JSON must be UTF-8, which a path need not be.
        prices.file = self.prices.file().map(|file| file.display().to_string());
        let mut summary = UsageSummary::new(by, self.total(), prices);
        summary.since = self.since;
        summary.until = self.until;
        // A time zone that was read from a copied file has no name.
        summary.time_zone = DateTimePrinter::new().time_zone_to_string(&zone).ok();
        summary.groups = groups.collect();
        summary.unpriced = unpriced.collect();
        summary.history.only_there = joined.only_there;
        summary.history.with_cost = joined.with_cost;
        summary.history.of_other_agents = of_others;
        summary.diagnostics = self.diagnostics.clone();
        summary
    }
}

fn group_of(group: &Group, models: Vec<Group>) -> UsageGroup {
    let mut summary = UsageGroup::new(group.figures, timestamp(group.first), timestamp(group.last));
    summary.name = group.name.as_deref().map(str::to_owned);
    summary.providers = providers(group);
    summary.models = names(group);
    summary.directory = group.directory.as_deref().map(str::to_owned);
    let models = models.into_iter().map(|model| {
        let name = model.name.as_deref().map(str::to_owned);
        ModelFigures::new(name, providers(&model), model.figures)
    });
    summary.by_model = models.collect();
    summary
}

fn providers(group: &Group) -> Vec<String> {
    let providers = group.providers.iter();
    providers.map(|it| it.id().to_owned()).collect()
}

fn names(group: &Group) -> Vec<String> {
    group.models.iter().map(|it| (**it).to_owned()).collect()
}
