//! Tests of budgets.

use std::sync::Arc;

use serde_json::json;
use teamster_core::{
    AgentEvent, BudgetKind, ErrorCode, ErrorKind, RunEvent, RunStatus, ToolKind, Usage,
};
use teamster_orchestrator::Limits;
use teamster_testkit::mock_runtime::{MockRuntime, Script};

use crate::common::*;

fn tokens(count: u64) -> Usage {
    Usage::default().input_tokens(count - 1).output_tokens(1)
}

/// Returns a mock without limits of its own.
fn plain(scripts: impl IntoIterator<Item = Script>) -> Arc<MockRuntime> {
    let mut runtime = MockRuntime::new("claude");
    runtime.capabilities_mut().max_turns = false;
    runtime.capabilities_mut().max_budget_usd = false;
    for script in scripts {
        runtime.add(script);
    }
    Arc::new(runtime)
}

fn assert_spent(events: &[RunEvent], message: &str) {
    let done = outcome(events);
    assert_eq!(done.result.status, RunStatus::Failed);
    let error = done.error.unwrap();
    assert_eq!(error.kind, ErrorKind::Budget, "{}", error.message);
    assert_eq!(error.message, message);
    assert_eq!(error.code, ErrorCode::BudgetExceeded);
    let unit = match error.budget() {
        Some(BudgetKind::Time) => "seconds",
        Some(BudgetKind::Tokens) => "tokens",
        Some(BudgetKind::Usd) => "USD",
        Some(BudgetKind::Turns) => "turns",
        other => panic!("{other:?}"),
    };
    assert!(message.contains(unit), "{message}: {unit}");
    assert!(!error.retryable);
    assert!(matches!(&events[events.len() - 2], RunEvent::Error { error: e, .. } if **e == error));
    if let Some(last) = done.attempts.last()
        && let Some(last) = &last.error
        && last.kind != ErrorKind::Network
    {
        assert_eq!(*last, error);
    }
}

#[tokio::test(start_paused = true)]
async fn tokens_over_all_attempts() {
    let claude = mock(
        "claude",
        [
            Script::new()
                .usage(tokens(60))
                .failed(error(ErrorKind::Network)),
            Script::new()
                .text("a")
                .usage(tokens(40))
                .delay(secs(1))
                .usage(tokens(41))
                .delay(secs(100))
                .text("never")
                .stop_takes(secs(2)),
        ],
    );
    let orchestrator = orchestrator();
    let mut request = request(&[&claude]);
    request.budget.tokens = Some(100);
    let events = events(orchestrator.start(request)).await;
    assert_spent(&events, "the run's budget of 100 tokens is spent");
    assert_eq!(
        briefs(&events)[2..],
        ["chunk a", "message a", "error Budget", "end error"]
    );
    let done = outcome(&events);
    // Stopped gracefully: the agent had its time to stop.
    assert_eq!(done.duration_ms, 1000 + 1000 + 2000);
    assert_eq!(done.result.usage, Some(tokens(60).plus(tokens(41))));
    assert_over(&orchestrator, &[&claude]).await;
}

#[tokio::test(start_paused = true)]
async fn exhausted_budget_begins_no_attempt() {
    let set: [fn(&mut teamster_orchestrator::Budget); 3] = [
        |b| b.tokens = Some(100),
        |b| b.usd = Some(0.5),
        |b| b.turns = Some(3),
    ];
    let messages = ["100 tokens", "0.5 USD", "3 turns"];
    for (set, what) in set.into_iter().zip(messages) {
        let claude = mock("claude", {
            let script = Script::new()
                .usage(tokens(100))
                .cost_usd(0.5)
                .num_turns(3)
                .failed(error(ErrorKind::Network));
            [script, Script::new()]
        });
        let mut request = request(&[&claude]);
        set(&mut request.budget);
        let events = events(orchestrator().start(request)).await;
        // Without announcing a retry that never begins.
        assert_eq!(
            briefs(&events),
            ["start claude", "error Budget", "end error"]
        );
        assert_spent(&events, &format!("the run's budget of {what} is spent"));
        assert_eq!(claude.runs().len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn the_remaining_budget_is_passed_to_the_cli() {
    let claude = mock(
        "claude",
        [
            Script::new()
                .num_turns(3)
                .cost_usd(0.25)
                .failed(error(ErrorKind::Network)),
            Script::new()
                .num_turns(1)
                .cost_usd(0.25)
                .failed(error(ErrorKind::Network)),
            Script::new(),
        ],
    );
    let mut request = request(&[&claude]);
    request.budget.turns = Some(10);
    request.budget.usd = Some(1.0);
    request.candidates[0].params.max_turns = Some(8);
    orchestrator().start(request).outcome().await;
    let runs = claude.runs();
    let turns: Vec<_> = runs
        .iter()
        .map(|run| run.params.max_turns.unwrap())
        .collect();
    assert_eq!(turns, [8, 7, 6]);
    let usd: Vec<_> = runs
        .iter()
        .map(|run| run.params.max_budget_usd.unwrap())
        .collect();
    assert_eq!(usd, [1.0, 0.75, 0.5]);
}

#[tokio::test(start_paused = true)]
async fn cli_limit_from_the_budget_is_reported_as_the_budget() {
    for kind in [ErrorKind::MaxTurns, ErrorKind::Budget] {
        for own in [false, true] {
            let claude = mock("claude", [fails(kind)]);
            let mut request = request(&[&claude]);
            request.budget.turns = Some(5);
            request.budget.usd = Some(2.0);
            if own {
                request.candidates[0].params.max_turns = Some(4);
                request.candidates[0].params.max_budget_usd = Some(1.0);
            }
            let events = events(orchestrator().start(request)).await;
            if own {
                let error = outcome(&events).error.unwrap();
                assert_eq!((error.kind, error.message), (kind, format!("{kind:?}")));
            } else {
                let what = if kind == ErrorKind::Budget {
                    "2 USD"
                } else {
                    "5 turns"
                };
                assert_spent(&events, &format!("the run's budget of {what} is spent"));
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_limit_that_a_candidate_has_of_its_own_may_fall_back() {
    let (a, b) = (
        mock("a", [fails(ErrorKind::Budget)]),
        mock("b", [Script::new()]),
    );
    let mut request = request(&[&a, &b]);
    request.candidates[0].params.max_budget_usd = Some(1.0);
    let fall_back = teamster_orchestrator::Action::FallBack;
    request.retry.actions.insert(ErrorKind::Budget, fall_back);
    assert_eq!(
        story(orchestrator().start(request)).await,
        ["start a", "fallback 2 Budget +0 b", "end success"]
    );
}

#[tokio::test(start_paused = true)]
async fn turns_are_counted_where_the_cli_has_no_limit() {
    let turns = |count: u32| {
        (0..count).fold(Script::new(), |script, n| {
            let id = format!("t{n}");
            script
                .thinking("hm")
                .text("now")
                .tool_use("Read", id.clone(), ToolKind::Read, json!({}))
                .tool_use("Read", format!("{id}b"), ToolKind::Read, json!({}))
                .tool_result(id.clone(), "")
                .tool_result(format!("{id}b"), "")
        })
    };
    // Three answers with tools and the last one are four.
    let enough = plain([turns(3).text("end")]);
    let mut request = request(&[&enough]);
    request.budget.turns = Some(4);
    let done = orchestrator().start(request.clone()).outcome().await;
    assert_eq!(done.result.status, RunStatus::Completed);
    assert_eq!(enough.runs()[0].params.max_turns, None);
    request.budget.turns = Some(3);
    let claude = plain([turns(3).text("too much").delay(secs(50))]);
    request.candidates[0].runtime = claude;
    let events = events(orchestrator().start(request)).await;
    assert_spent(&events, "the run's budget of 3 turns is spent");
    assert_eq!(outcome(&events).duration_ms, 0);
}

#[tokio::test(start_paused = true)]
async fn usd_where_the_cli_only_reports_them() {
    let cost = |usd: f64| {
        Script::new()
            .event(AgentEvent::TurnEnd(Box::new(
                serde_json::from_value(json!({"isError": false, "costUsd": usd})).unwrap(),
            )))
            .delay(secs(50))
    };
    let claude = plain([cost(0.5), cost(0.75)]);
    let mut request = request(&[&claude]);
    request.budget.usd = Some(0.5);
    let orchestrator = orchestrator();
    let done = orchestrator.start(request.clone()).outcome().await;
    assert_eq!(done.result.status, RunStatus::Completed);
    let events = events(orchestrator.start(request)).await;
    assert_spent(&events, "the run's budget of 0.5 USD is spent");
    assert_eq!(outcome(&events).result.total_cost_usd, Some(0.75));
}

#[tokio::test(start_paused = true)]
async fn time_is_over_wherever_the_run_is() {
    // Expiry in a tool, in a delay, in the queue, and during a hold.
    let tool = Script::new()
        .tool_use("Bash", "t", ToolKind::Execute, json!({}))
        .delay(secs(100));
    let claude = mock("claude", [tool]);
    let mut request1 = request(&[&claude]);
    request1.budget.time = Some(secs(30));
    let events1 = events(orchestrator().start(request1.clone())).await;
    assert_spent(&events1, "the run's budget of 30 seconds is spent");
    assert_eq!(briefs(&events1)[2], "tool-end t error 30000");

    let delayed = mock("claude", [fails_for(ErrorKind::Network, 40_000)]);
    request1.candidates[0].runtime = delayed;
    let events2 = events(orchestrator().start(request1.clone())).await;
    assert_spent(&events2, "the run's budget of 30 seconds is spent");
    assert_eq!(outcome(&events2).duration_ms, 30_000);

    let slow = mock("claude", [Script::new().delay(secs(1000))]);
    let orchestrator = limited(Limits::default().overall(1));
    let mut first = request(&[&slow]);
    first.id = Some("first".into());
    let _first = orchestrator.start(first);
    slow.wait_for_runs(1).await;
    request1.candidates[0].runtime = slow.clone();
    let events3 = events(orchestrator.start(request1)).await;
    assert_spent(&events3, "the run's budget of 30 seconds is spent");
    assert_eq!(outcome(&events3).duration_ms, 30_000);
    assert_eq!(outcome(&events3).attempts.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn abort_before_the_time_limit_is_reported_as_abort() {
    let claude = mock(
        "claude",
        [Script::new().delay(secs(90)).stop_takes(secs(20))],
    );
    let mut request = request(&[&claude]);
    request.budget.time = Some(secs(30));
    let run = orchestrator().start(request);
    claude.wait_for_runs(1).await;
    tokio::time::sleep(secs(20)).await;
    run.abort();
    let done = run.outcome().await;
    assert_eq!(done.result.status, RunStatus::Aborted);
    assert_eq!(done.duration_ms, 40_000);
}

#[tokio::test(start_paused = true)]
async fn a_runtime_that_hangs_over_its_budget_is_dropped() {
    let claude = mock(
        "claude",
        [Script::new()
            .usage(tokens(9))
            .delay(secs(1))
            .stop_takes(secs(100))],
    );
    let orchestrator = orchestrator();
    let mut request = request(&[&claude]);
    request.budget.tokens = Some(5);
    let events = events(orchestrator.start(request)).await;
    assert_spent(&events, "the run's budget of 5 tokens is spent");
    assert_eq!(outcome(&events).duration_ms, 30_000);
    assert_over(&orchestrator, &[&claude]).await;
}

#[tokio::test(start_paused = true)]
async fn completed_run_over_its_budget_reports_it_with_its_answer() {
    for (tokens_used, usd_used) in [(900, 0.5), (900, 0.2), (5, 0.5), (5, 0.2)] {
        let script = Script::new()
            .text("x")
            .result_usage(tokens(tokens_used))
            .cost_usd(usd_used);
        let claude = plain([script.clone(), script]);
        let mut request = request(&[&claude]);
        request.budget.tokens = Some(5);
        request.budget.usd = Some(0.2);
        let orchestrator = orchestrator();
        let events = events(orchestrator.start(request.clone())).await;
        let done = outcome(&events);
        assert_eq!(done.answer(), Some("x"));
        assert_eq!(done.result.usage, Some(tokens(tokens_used)));
        let message = match (tokens_used, usd_used) {
            (5, 0.2) => {
                assert_eq!(done.result.status, RunStatus::Completed);
                continue;
            }
            (900, _) => "the run's budget of 5 tokens is spent",
            _ => "the run's budget of 0.2 USD is spent",
        };
        assert_spent(&events, message);
        let mut stream = orchestrator.execute(request);
        let mut last = None;
        while let Some(event) = stream.next().await {
            last = Some(event);
        }
        let Some(AgentEvent::Done(done)) = last else {
            panic!("{last:?}");
        };
        let result = done.result;
        assert_eq!(result.status, RunStatus::Failed);
        assert_eq!(result.text, "x");
        let errors: Vec<_> = result.errors.iter().map(|error| error.code).collect();
        assert_eq!(errors, [ErrorCode::BudgetExceeded]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_cost_reported_during_the_run_ends_it() {
    let step = |script: Script, number: u32| {
        let usd = f64::from(number) * 0.25;
        let script = script.usage_and_cost(tokens(10 * u64::from(number)), usd);
        script.delay(secs(1))
    };
    let claude = plain([(1..=100).fold(Script::new(), step)]);
    let mut request = request(&[&claude]);
    request.budget.usd = Some(0.5);
    let events = events(orchestrator().start(request)).await;
    assert_spent(&events, "the run's budget of 0.5 USD is spent");
    let done = outcome(&events);
    assert_eq!(done.result.total_cost_usd, Some(0.75));
    assert_eq!(done.duration_ms, 2000);
}

#[tokio::test(start_paused = true)]
async fn a_run_without_reported_usage_is_not_left_without_a_limit() {
    let turns = (0..50).fold(Script::new(), |script, n| {
        let id = format!("t{n}");
        let script = script.tool_use("Read", id.clone(), ToolKind::Read, json!({}));
        script.tool_result(id, "").delay(secs(1))
    });
    let claude = plain([turns.clone(), turns.text("x")]);
    let mut request = request(&[&claude]);
    request.budget.tokens = Some(1000);
    let events = events(orchestrator().start(request.clone())).await;
    let done = outcome(&events);
    let error = done.error.unwrap();
    assert_eq!(error.kind, ErrorKind::Budget);
    let begin = "the limit of 1000 tokens cannot be enforced: claude reports no usage";
    assert!(error.message.starts_with(begin), "{}", error.message);
    assert_eq!(done.duration_ms, 10_000);
    request.budget.tokens = None;
    let done = orchestrator().start(request).outcome().await;
    assert_eq!(done.result.status, RunStatus::Completed);
}

#[tokio::test(start_paused = true)]
async fn usage_updates_are_requested_only_with_a_token_budget() {
    for budget in [None, Some(1000)] {
        let claude = mock("claude", [Script::new().text("x")]);
        let mut request = request(&[&claude]);
        request.budget.tokens = budget;
        orchestrator().start(request).outcome().await;
        assert_eq!(claude.runs()[0].params.usage_updates, budget.is_some());
    }
}

#[tokio::test(start_paused = true)]
async fn a_limit_takes_the_tools_that_no_figure_counts() {
    for (limit, allowed, denied) in [
        ("none", "", &["x"][..]),
        ("tokens", "", &["x", "task"]),
        ("usd", "", &["x", "task"]),
        ("usd", "task", &["x"]),
    ] {
        let mut runtime = MockRuntime::new("claude");
        runtime.add(Script::new().text("y"));
        runtime.capabilities_mut().uncounted_tools = &["task"];
        let runtime = Arc::new(runtime);
        let mut request = request(&[&runtime]);
        request.candidates[0].params.denied_tools = vec!["x".to_owned()];
        request.candidates[0].params.allowed_tools = vec![allowed.to_owned()];
        match limit {
            "tokens" => request.budget.tokens = Some(1000),
            "usd" => request.budget.usd = Some(1.0),
            _ => {}
        }
        orchestrator().start(request).outcome().await;
        assert_eq!(runtime.runs()[0].params.denied_tools, denied, "{limit}");
    }
}

#[tokio::test(start_paused = true)]
async fn provider_that_cannot_enforce_a_budget_is_refused() {
    for what in ["usd", "tokens"] {
        let (good, mut bad) = (mock("good", [Script::new()]), MockRuntime::new("bad"));
        let can = bad.capabilities_mut();
        // Figures that are reported only at the end cannot enforce a budget.
        (can.live_usage, can.live_cost, can.max_budget_usd) = (false, false, false);
        let bad = Arc::new(bad);
        let mut request = request(&[&good, &bad]);
        match what {
            "usd" => request.budget.usd = Some(1.0),
            _ => request.budget.tokens = Some(1),
        }
        let done = orchestrator().start(request).outcome().await;
        let error = done.error.unwrap();
        assert_eq!(error.kind, ErrorKind::Invalid);
        let begin = format!("budget.{what}: bad does not report ");
        assert!(error.message.starts_with(&begin), "{}", error.message);
        assert_eq!(good.runs().len(), 0);
    }
}
