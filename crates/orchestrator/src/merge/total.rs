//! Sums of the figures of all attempts.

use std::collections::BTreeMap;
use std::mem;
use std::ops::Add;

use teamster_core::{
    CostSource, Diagnostics, ModelUsage, PermissionDenial, RunResult, UsageLedger, UsageReport,
};

/// Usage of all attempts. A figure that no attempt reported is absent.
#[derive(Debug, Default)]
pub(super) struct Total {
    used: UsageLedger,
    usage_by_model: BTreeMap<String, ModelUsage>,
    num_turns: Option<u32>,
    api_duration_ms: Option<u64>,
    denials: Vec<PermissionDenial>,
    diagnostics: Diagnostics,
}

impl Total {
    /// Moves the figures out of the result of an attempt and adds them.
    pub(super) fn add(&mut self, result: &mut RunResult) {
        self.used = self.used.plus(UsageLedger {
            usage: result.usage.take(),
            cost_usd: result.total_cost_usd.take(),
            is_estimate: result.cost_source.take() == Some(CostSource::Estimated),
        });
        for (model, more) in mem::take(&mut result.usage_by_model) {
            let so_far = self.usage_by_model.entry(model).or_default();
            so_far.usage = so_far.usage.plus(more.usage);
            so_far.cost_usd = sum(so_far.cost_usd, more.cost_usd, f64::add);
            so_far.context_window = more.context_window.or(so_far.context_window);
            so_far.max_output_tokens = more.max_output_tokens.or(so_far.max_output_tokens);
        }
        let turns = result.num_turns.take();
        self.num_turns = sum(self.num_turns, turns, u32::saturating_add);
        let millis = result.api_duration_ms.take();
        self.api_duration_ms = sum(self.api_duration_ms, millis, u64::saturating_add);
        self.denials.append(&mut result.permission_denials);
        let more = mem::take(&mut result.diagnostics);
        self.diagnostics.lines += more.lines;
        self.diagnostics.malformed += more.malformed;
        self.diagnostics.oversize += more.oversize;
        self.diagnostics.unknown += more.unknown;
        self.diagnostics.unfinished_calls += more.unfinished_calls;
    }

    /// Adds the usage of all attempts to the report of the current one.
    pub(super) fn add_to(&self, report: &mut UsageReport) {
        let used = self.used.plus(UsageLedger {
            usage: Some(report.usage),
            cost_usd: report.cost_usd,
            is_estimate: report.cost_source == Some(CostSource::Estimated),
        });
        report.usage = used.usage.unwrap_or_default();
        report.cost_usd = used.cost_usd;
        let is_estimate = |source: &CostSource| *source == CostSource::Estimated;
        report.cost_source = used.cost_source().filter(is_estimate);
    }

    pub(super) fn put(self, result: &mut RunResult) {
        result.usage = self.used.usage;
        result.usage_by_model = self.usage_by_model;
        result.total_cost_usd = self.used.cost_usd;
        result.cost_source = self.used.cost_source();
        result.num_turns = self.num_turns;
        result.api_duration_ms = self.api_duration_ms;
        result.permission_denials = self.denials;
        result.diagnostics = self.diagnostics;
    }
}

/// Adds two values, or returns the one that is present.
fn sum<T>(a: Option<T>, b: Option<T>, add: impl FnOnce(T, T) -> T) -> Option<T> {
    match (a, b) {
        (Some(a), Some(b)) => Some(add(a, b)),
        (one, None) | (None, one) => one,
    }
}
