//! Estimated costs, and budgets of agents that report tokens and no cost.

use std::path::Path;
use std::sync::Arc;

use teamster_core::{CostSource, ErrorCode, ErrorKind, RunStatus, Usage};
use teamster_orchestrator::{Orchestrator, OrchestratorConfig, PriceList};
use teamster_testkit::mock_runtime::{MockRuntime, Script};

use crate::common::*;

/// Returns an agent that reports tokens only.
fn tokens_only(scripts: impl IntoIterator<Item = Script>) -> Arc<MockRuntime> {
    let mut runtime = MockRuntime::new("codex");
    let can = runtime.capabilities_mut();
    (can.cost, can.live_cost, can.max_budget_usd) = (false, false, false);
    for script in scripts {
        runtime.add(script);
    }
    Arc::new(runtime)
}

/// Returns an orchestrator with a price for the model `m` only: 1 USD for a million tokens of either kind.
fn orchestrator() -> Orchestrator {
    let text = "[models.m]\ninput = 1\noutput = 1";
    let prices = PriceList::with_text(text, Path::new("prices.toml")).unwrap();
    Orchestrator::new(OrchestratorConfig::default().prices(prices)).unwrap()
}

fn million(count: u64) -> Usage {
    Usage::default()
        .input_tokens(count * 1_000_000)
        .output_tokens(0)
}

#[tokio::test(start_paused = true)]
async fn a_cost_is_estimated_where_the_agent_reports_none() {
    let codex = tokens_only([Script::new().usage(million(2)).text("x")]);
    let mut request = request(&[&codex]);
    request.candidates[0].params.model = Some("m".to_owned());
    let done = orchestrator().start(request.clone()).outcome().await;
    let estimate = (Some(2.0), Some(CostSource::Estimated));
    let result = &done.result;
    assert_eq!((result.total_cost_usd, result.cost_source), estimate);
    let attempt = &done.attempts[0];
    assert_eq!((attempt.cost_usd, attempt.cost_source), estimate);
    // So has the line of the log.
    let line = serde_json::to_value(&done).unwrap();
    assert_eq!(line["result"]["costSource"], "estimated", "{line}");
    // A model without a price has no cost.
    request.candidates[0].params.model = Some("other".to_owned());
    let codex = tokens_only([Script::new().usage(million(2)).text("x")]);
    request.candidates[0].runtime = codex;
    let done = orchestrator().start(request).outcome().await;
    assert_eq!(done.result.status, RunStatus::Completed);
    assert_eq!(
        (done.result.total_cost_usd, done.result.cost_source),
        (None, None)
    );
}

#[tokio::test(start_paused = true)]
async fn a_budget_in_usd_holds_by_estimates() {
    let steps = (1..=9).fold(Script::new(), |script, n| {
        let report = teamster_core::UsageReport::new(million(n));
        let script = script.event(report);
        script.delay(secs(1))
    });
    let codex = tokens_only([steps]);
    let mut request = request(&[&codex]);
    request.candidates[0].params.model = Some("m".to_owned());
    request.budget.usd = Some(2.5);
    let done = orchestrator().start(request).outcome().await;
    let error = done.error.unwrap();
    assert_eq!(error.code, ErrorCode::BudgetExceeded);
    assert_eq!(error.message, "the run's budget of 2.5 USD is spent");
    assert_eq!(done.result.total_cost_usd, Some(3.0));
    assert_eq!(done.duration_ms, 2000);
    // The figures are requested on the way.
    assert!(codex.runs()[0].params.usage_updates);
}

#[tokio::test(start_paused = true)]
async fn estimate_limits_attempts_when_usage_comes_at_the_end() {
    let failing = || {
        Script::new()
            .usage(million(2))
            .failed(error(ErrorKind::Network))
    };
    let mut runtime = MockRuntime::new("kimi");
    let can = runtime.capabilities_mut();
    (can.cost, can.live_cost, can.max_budget_usd) = (false, false, false);
    can.live_usage = false;
    for _ in 0..3 {
        runtime.add(failing());
    }
    let kimi = Arc::new(runtime);
    let mut request = request(&[&kimi]);
    request.candidates[0].params.model = Some("m".to_owned());
    request.budget.usd = Some(3.0);
    let done = orchestrator().start(request).outcome().await;
    assert_eq!(done.error.unwrap().code, ErrorCode::BudgetExceeded);
    assert_eq!(kimi.runs().len(), 2);
    assert!(!kimi.runs()[0].params.usage_updates);
}

#[tokio::test(start_paused = true)]
async fn a_budget_in_usd_that_no_price_can_hold_ends_the_run() {
    for (model, named) in [
        (Some("other"), "the model other"),
        (None, "the model of codex, which it does not name"),
    ] {
        let report = teamster_core::UsageReport::new(million(1));
        let script = Script::new().event(report);
        let codex = tokens_only([script.delay(secs(50)).text("x")]);
        let mut request = request(&[&codex]);
        request.candidates[0].params.model = model.map(str::to_owned);
        request.budget.usd = Some(1.0);
        let done = orchestrator().start(request).outcome().await;
        let error = done.error.unwrap();
        assert_eq!(error.kind, ErrorKind::Budget);
        let begin = format!("the limit of 1 USD cannot be enforced: there is no price for {named}");
        assert!(error.message.starts_with(&begin), "{}", error.message);
        assert_eq!(done.duration_ms, 0);
    }
}
