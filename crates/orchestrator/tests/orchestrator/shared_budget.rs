//! Tests of a budget that several runs share.

use std::sync::Arc;

use teamster_core::{BudgetKind, ErrorCode, ErrorKind, RunStatus, Usage};
use teamster_core::{Outcome, RunEvent};
use teamster_orchestrator::{Budget, RunRequest, SharedBudget};
use teamster_testkit::mock_runtime::{MockRuntime, Script};

use crate::common::*;

fn tokens(count: u64) -> Usage {
    Usage::default().output_tokens(count)
}

fn part(id: &str, agent: &Arc<MockRuntime>, budget: &SharedBudget) -> RunRequest {
    let request = request(&[agent]).budget(Budget::default().shared(budget.clone()));
    request.id(id)
}

fn assert_spent(events: &[RunEvent], limit: &str) -> Outcome {
    let done = outcome(events);
    let error = done.error.clone().unwrap();
    assert_eq!(
        (error.code, error.kind),
        (ErrorCode::BudgetExceeded, ErrorKind::Budget)
    );
    assert_eq!(
        error.message,
        format!("the budget of {limit} that several runs share is spent")
    );
    assert_eq!(done.result.status, RunStatus::Failed);
    done
}

#[tokio::test(start_paused = true)]
async fn parallel_runs_of_a_spent_budget_stop_together() {
    let quiet = mock(
        "claude",
        [Script::new()
            .usage(tokens(60))
            .delay(secs(100))
            .text("never")],
    );
    let busy = mock(
        "codex",
        [Script::new()
            .usage(tokens(30))
            .delay(secs(1))
            .usage(tokens(39))
            .delay(secs(1))
            .usage(tokens(40))
            .delay(secs(100))
            .text("never")],
    );
    let budget = SharedBudget::tokens(100);
    let orchestrator = orchestrator();
    let (first, second) = tokio::join!(
        events(orchestrator.start(part("r", &quiet, &budget))),
        events(orchestrator.start(part("s", &busy, &budget))),
    );
    for (events, used) in [(&first, 60), (&second, 40)] {
        let done = assert_spent(events, "100 tokens");
        assert_eq!(done.duration_ms, 2000);
        assert_eq!(done.result.usage, Some(tokens(used)));
        let error = done.error.unwrap();
        assert_eq!(error.budget(), Some(BudgetKind::Tokens));
        assert_eq!(done.attempts.len(), 1);
        assert_eq!(done.attempts[0].error, Some(error));
    }
    assert!((budget.used() - 100.0).abs() < f64::EPSILON);

    // A later run does not start an agent.
    let later = mock("gemini", [Script::new()]);
    let refused = events(orchestrator.start(part("t", &later, &budget))).await;
    let done = assert_spent(&refused, "100 tokens");
    assert_eq!(done.attempts.len(), 0);
    assert_eq!(later.runs().len(), 0);
    assert_over(&orchestrator, &[&quiet, &busy, &later]).await;
}

#[tokio::test(start_paused = true)]
async fn run_that_completes_over_a_shared_budget_succeeds() {
    let script = |usd| Script::new().text("Done.").cost_usd(usd).completed();
    let claude = mock("claude", [script(0.4), script(0.7), script(0.1)]);
    let budget = SharedBudget::usd(1.0);
    let orchestrator = orchestrator();
    for (id, is_spent) in [("first", false), ("second", true)] {
        let done = orchestrator
            .start(part(id, &claude, &budget))
            .outcome()
            .await;
        assert_eq!(done.error, None);
        assert_eq!(budget.is_spent(), is_spent, "{id}");
    }
    // Its CLI's own limit was what the first one had left.
    let left = claude.runs()[1].params.max_budget_usd.unwrap();
    assert!((left - 0.6).abs() < 1e-9, "{left}");
    assert!((budget.used() - 1.1).abs() < 1e-9);

    let refused = events(orchestrator.start(part("third", &claude, &budget))).await;
    assert_spent(&refused, "1 USD");
    assert_eq!(claude.runs().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn waiting_run_ends_once_a_shared_budget_is_spent() {
    let failing = mock("claude", [fails_for(ErrorKind::Network, 100_000)]);
    let spending = mock(
        "codex",
        [Script::new()
            .delay(secs(3))
            .result_usage(tokens(10))
            .completed()],
    );
    let budget = SharedBudget::tokens(10);
    let orchestrator = orchestrator();
    let (waited, spent) = tokio::join!(
        events(orchestrator.start(part("r", &failing, &budget))),
        events(orchestrator.start(part("s", &spending, &budget))),
    );
    assert_eq!(outcome(&spent).error, None);
    let done = assert_spent(&waited, "10 tokens");
    assert_eq!(done.duration_ms, 3000);
    assert_eq!(failing.runs().len(), 1);
}

#[tokio::test]
async fn shared_budget_that_cannot_count_is_refused() {
    let mut silent = MockRuntime::new("silent");
    let can = silent.capabilities_mut();
    (can.usage, can.live_usage, can.cost, can.live_cost) = (false, false, false, false);
    let silent = Arc::new(silent);
    let good = mock("good", []);
    for (agent, budget, begin) in [
        (&silent, SharedBudget::tokens(10), "silent does not report"),
        (&silent, SharedBudget::usd(1.0), "silent reports neither"),
        (&good, SharedBudget::tokens(0), "it must be more than 0"),
        (&good, SharedBudget::usd(f64::NAN), "it must be more than 0"),
    ] {
        let done = orchestrator()
            .start(part("r", agent, &budget))
            .outcome()
            .await;
        let error = done.error.unwrap();
        assert_eq!(error.parameter(), Some("budget.shared"));
        let begin = format!("budget.shared: {begin}");
        assert!(error.message.starts_with(&begin), "{}", error.message);
        assert_eq!(agent.runs().len(), 0);
    }
}

#[tokio::test]
async fn shared_budget_in_dollars_takes_costs_or_tokens() {
    for (has_tokens, has_cost) in [(true, false), (false, true)] {
        let mut agent = MockRuntime::new("one").run(Script::new().completed());
        let can = agent.capabilities_mut();
        (can.usage, can.live_usage) = (has_tokens, false);
        (can.cost, can.live_cost) = (false, has_cost);
        let agent = Arc::new(agent);
        let budget = SharedBudget::usd(1.0);
        let done = orchestrator().start(part("r", &agent, &budget));
        assert_eq!(done.outcome().await.error, None);
        assert_eq!(agent.runs().len(), 1);
    }
}
