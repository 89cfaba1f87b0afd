//! Estimated cost of agents that report tokens and no cost.

use jiff::Timestamp;
use teamster_core::{AgentEvent, Capabilities, CostSource, RunResult, Usage, UsageReport};
use teamster_prices::{PriceList, Request};

/// Fills in the estimated cost of an attempt, from its tokens and the list prices of its model.
#[derive(Debug, Default)]
pub(crate) struct Estimator {
    prices: PriceList,
    provider: String,
    model: Option<String>,
    /// True if the agent reports no cost.
    is_needed: bool,
    /// The usage so far, and its cost. The cost is absent once a part of it has no price.
    usage: Usage,
    cost_usd: Option<f64>,
    /// True if tokens were used of a model without a price.
    is_unpriced: bool,
}

impl Estimator {
    pub(crate) fn new(prices: PriceList) -> Self {
        Self {
            prices,
            ..Self::default()
        }
    }

    /// Sets the state for an attempt. `model` is the requested one.
    pub(crate) fn begin(&mut self, provider: &str, model: Option<&str>, can: &Capabilities) {
        *self = Self {
            prices: std::mem::take(&mut self.prices),
            provider: provider.to_owned(),
            model: model.map(str::to_owned),
            is_needed: !can.cost,
            ..Self::default()
        };
    }

    /// Returns whether the cost of this attempt is unknown, although the agent has used tokens.
    pub(crate) fn is_unpriced(&self) -> bool {
        self.is_unpriced
    }

    pub(crate) fn model(&self) -> Option<&str> {
        self.model.as_deref()
    }

    /// Fills in the cost of an event that has none.
    pub(crate) fn event(&mut self, event: &mut AgentEvent) {
        if !self.is_needed {
            return;
        }
        match event {
            AgentEvent::SessionStarted(session) if session.model.is_some() => {
                self.model.clone_from(&session.model);
            }
            AgentEvent::Usage(report) => self.report(report),
            AgentEvent::Done(done) => self.result(&mut done.result),
            _ => {}
        }
    }

    fn report(&mut self, report: &mut UsageReport) {
        if report.cost_usd.is_some() {
            return;
        }
        // Each part is of the model that was in use.
        let more = increase(&report.usage, &self.usage);
        self.usage = report.usage;
        if !more.is_empty() {
            let part = (self.model.as_deref()).and_then(|model| self.estimate(model, &more));
            self.is_unpriced |= part.is_none() && more.total_tokens() != Some(0);
            self.cost_usd = match (self.is_unpriced, part) {
                (true, _) => None,
                (false, None) => self.cost_usd,
                (false, Some(part)) => Some(self.cost_usd.unwrap_or_default() + part),
            };
        }
        report.cost_usd = self.cost_usd;
        report.cost_source = self.cost_usd.map(|_| CostSource::Estimated);
    }

    fn result(&mut self, result: &mut RunResult) {
        if result.total_cost_usd.is_some() {
            return;
        }
        if result.model.is_some() {
            self.model.clone_from(&result.model);
        }
        let cost = if result.usage_by_model.is_empty() {
            let used = result.usage.filter(|usage| usage.total_tokens() != Some(0));
            used.map(|usage| {
                let model = self.model.as_deref()?;
                self.estimate(model, &usage)
            })
        } else {
            let models = result.usage_by_model.iter();
            let used = models.filter(|(_, of)| of.usage.total_tokens() != Some(0));
            let costs = used.map(|(model, of)| self.estimate(model, &of.usage));
            Some(costs.sum::<Option<f64>>())
        };
        // Without tokens, there is nothing to estimate.
        let Some(cost) = cost else {
            return;
        };
        self.is_unpriced = cost.is_none();
        result.total_cost_usd = cost;
        result.cost_source = cost.map(|_| CostSource::Estimated);
    }

    fn estimate(&self, model: &str, usage: &Usage) -> Option<f64> {
        let request = Request::new(&self.provider, model, usage, Timestamp::now());
        self.prices.estimate(&request.sum())
    }
}

/// Returns what was added. A figure that became less, as of a session that was cleared, counts as 0.
fn increase(now: &Usage, before: &Usage) -> Usage {
    let less = |now: Option<u64>, before: Option<u64>| {
        now.map(|now| now.saturating_sub(before.unwrap_or_default()))
    };
    let mut more = Usage::default();
    more.input_tokens = less(now.input_tokens, before.input_tokens);
    more.output_tokens = less(now.output_tokens, before.output_tokens);
    more.cache_read_tokens = less(now.cache_read_tokens, before.cache_read_tokens);
    more.cache_write_tokens = less(now.cache_write_tokens, before.cache_write_tokens);
    more.reasoning_tokens = less(now.reasoning_tokens, before.reasoning_tokens);
    more
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use teamster_core::{Done, ModelUsage, SessionStarted};

    use super::*;

    fn estimator(can: &Capabilities) -> Estimator {
        let text = "
            [models.a]
            input = 1
            output = 10
            [models.b]
            input = 2
            output = 20";
        let prices = PriceList::with_text(text, Path::new("prices.toml")).unwrap();
        let mut estimator = Estimator::new(prices);
        estimator.begin("codex", Some("a"), can);
        estimator
    }

    fn usage(input: u64, output: u64) -> Usage {
        Usage::default().input_tokens(input).output_tokens(output)
    }

    fn reported(estimator: &mut Estimator, usage: Usage) -> (Option<f64>, Option<CostSource>) {
        let mut event = AgentEvent::Usage(Box::new(UsageReport::new(usage)));
        estimator.event(&mut event);
        let AgentEvent::Usage(report) = event else {
            panic!("{event:?}");
        };
        (report.cost_usd, report.cost_source)
    }

    fn ended(estimator: &mut Estimator, result: RunResult) -> (Option<f64>, Option<CostSource>) {
        let mut event = AgentEvent::Done(Done::new(Box::new(result)));
        estimator.event(&mut event);
        let AgentEvent::Done(done) = event else {
            panic!("{event:?}");
        };
        (done.result.total_cost_usd, done.result.cost_source)
    }

    const ABOUT: Option<CostSource> = Some(CostSource::Estimated);

    #[test]
    fn each_part_costs_what_its_model_does() {
        let mut it = estimator(&Capabilities::none());
        assert_eq!(reported(&mut it, usage(1_000_000, 0)), (Some(1.0), ABOUT));
        it.event(&mut SessionStarted::new("s").model("b").into());
        let of_both = reported(&mut it, usage(2_000_000, 100_000));
        assert_eq!(of_both, (Some(5.0), ABOUT));
        // The result has the models of all tokens.
        let mut result = RunResult::default().usage(usage(2_000_000, 100_000));
        for (model, usage) in [("a", usage(1_000_000, 0)), ("b", usage(1_000_000, 100_000))] {
            let of = ModelUsage::new(usage);
            result.usage_by_model.insert(model.to_owned(), of);
        }
        assert_eq!(ended(&mut it, result), (Some(5.0), ABOUT));
        assert!(!it.is_unpriced());
    }

    #[test]
    fn a_cost_that_the_agent_reports_is_kept() {
        let mut can = Capabilities::none();
        can.cost = true;
        let mut it = estimator(&can);
        assert_eq!(reported(&mut it, usage(1_000_000, 0)), (None, None));
        let mut it = estimator(&Capabilities::none());
        let result = RunResult::default().usage(usage(1, 1)).total_cost_usd(0.5);
        assert_eq!(ended(&mut it, result), (Some(0.5), None));
    }

    #[test]
    fn tokens_of_a_model_without_a_price_have_no_cost() {
        let mut it = estimator(&Capabilities::none());
        assert_eq!(reported(&mut it, usage(0, 0)), (Some(0.0), ABOUT));
        it.event(&mut SessionStarted::new("s").model("unknown").into());
        assert_eq!(reported(&mut it, usage(1, 0)), (None, None));
        assert!(it.is_unpriced());
        // Part of the tokens has a price.
        it.event(&mut SessionStarted::new("s").model("a").into());
        assert_eq!(reported(&mut it, usage(2, 0)), (None, None));
        let result = RunResult::default().usage(usage(2, 0)).model("unknown");
        assert_eq!(ended(&mut it, result), (None, None));
        assert!(it.is_unpriced());
        // A run that was refused has used nothing.
        let mut it = estimator(&Capabilities::none());
        assert_eq!(ended(&mut it, RunResult::default()), (None, None));
        assert!(!it.is_unpriced());
    }
}
