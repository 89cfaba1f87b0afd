//! Tests of concurrency limits, and of rate limits shared by runs.

use std::sync::Arc;

use serde_json::json;
use teamster_core::{ErrorKind, RunStatus};
use teamster_orchestrator::{Action, Limits, Orchestrator, Run, RunRequest};
use teamster_testkit::mock_runtime::{MockRuntime, Script};

use crate::common::*;

pub(crate) fn busy(provider: &str) -> Arc<MockRuntime> {
    Arc::new(MockRuntime::new(provider).run_by(|_| Script::new().delay(secs(1)).text("x")))
}

pub(crate) fn start(orchestrator: &Orchestrator, mut request: RunRequest) -> Run {
    request.id = None;
    orchestrator.start(request)
}

#[tokio::test(start_paused = true)]
async fn as_many_at_once_as_allowed() {
    let (a, b) = (busy("a"), busy("b"));
    let orchestrator = limited(
        Limits::default()
            .overall(4)
            .per_provider(3)
            .provider("b", 2),
    );
    let runs: Vec<_> = (0..10)
        .flat_map(|n| [&a, if n < 6 { &b } else { &a }])
        .map(|mock| start(&orchestrator, request(&[mock])))
        .collect();
    let mut most = 0;
    for run in runs {
        most = most.max(a.active() + b.active());
        assert_eq!(run.outcome().await.result.status, RunStatus::Completed);
    }
    assert_eq!((a.max_active(), b.max_active(), most), (3, 2, 4));
    assert_over(&orchestrator, &[&a, &b]).await;
}

#[tokio::test(start_paused = true)]
async fn a_run_that_waits_for_its_retry_leaves_its_slot() {
    let a = mock("a", [fails(ErrorKind::Network), Script::new()]);
    let b = busy("b");
    let orchestrator = limited(Limits::default().overall(1));
    let first = start(&orchestrator, request(&[&a]));
    a.wait_for_runs(1).await;
    let second = start(&orchestrator, request(&[&b])).outcome().await;
    assert_eq!(second.duration_ms, 1000);
    assert_eq!(first.outcome().await.result.status, RunStatus::Completed);
}

#[tokio::test(start_paused = true)]
async fn waiter_for_a_slot_of_a_throttled_run_does_not_begin() {
    let a = mock(
        "a",
        [
            Script::new()
                .delay(ms(10))
                .failed(error(ErrorKind::RateLimit).retry_after_ms(30_000)),
            Script::new(),
            Script::new(),
        ],
    );
    let began = tokio::time::Instant::now();
    let orchestrator = limited(Limits::default().overall(1));
    let first = start(&orchestrator, request(&[&a]));
    let second = start(&orchestrator, request(&[&a]));
    assert_eq!(first.outcome().await.attempts.len(), 2);
    assert_eq!(second.outcome().await.attempts.len(), 1);
    for run in &a.runs()[1..] {
        assert_eq!((run.started - began).as_millis(), 30_010);
    }
    assert_eq!(orchestrator.holds().await, []);
}

#[tokio::test(start_paused = true)]
async fn each_wait_is_in_the_log_with_its_cause() {
    let a = mock(
        "a",
        [
            Script::new()
                .delay(ms(10))
                .failed(error(ErrorKind::RateLimit).retry_after_ms(30_000)),
            Script::new().session("s"),
        ],
    );
    let orchestrator = limited(Limits::default().overall(1));
    let mut first = request(&[&a]);
    first.retry.retries = 0;
    let first = start(&orchestrator, first);
    let second = start(&orchestrator, request(&[&a]));
    let second_id = second.id().clone();
    assert_eq!(
        story(first).await,
        ["start a", "error RateLimit", "end error"]
    );
    let events = events(second).await;
    let lines: Vec<_> = events.iter().map(brief).collect();
    assert_eq!(
        lines,
        [
            "start a",
            "hold a",
            "hold a until 30010",
            "attempt 1 a",
            "end success"
        ]
    );
    assert_eq!(
        wire(&events[1]),
        json!({"type": "run:hold", "runId": second_id, "group": "a"})
    );
    let reason = json!({"code": "CLI_ERROR", "kind": "rate_limit", "message": "RateLimit", "retryable": true,
                        "retryAfterMs": 30_000});
    assert_eq!(
        wire(&events[2]),
        json!({"type": "run:hold", "runId": second_id, "group": "a", "untilMs": T0 + 30_010, "reason": reason})
    );
}

#[tokio::test(start_paused = true)]
async fn a_hold_of_a_quota_waits_or_falls_back_as_each_run_may() {
    let a = mock(
        "a",
        [
            fails_for(ErrorKind::Quota, 100_000),
            Script::new(),
            Script::new(),
        ],
    );
    let b = busy("b");
    let orchestrator = orchestrator();
    let mut first = request(&[&a]);
    first.retry.max_wait = secs(1);
    let first = start(&orchestrator, first).outcome().await;
    assert_eq!(first.error.unwrap().kind, ErrorKind::Quota);
    let held = orchestrator.holds().await;
    assert_eq!(held.len(), 1);
    assert_eq!(
        (held[0].provider.as_str(), held[0].until_ms),
        ("a", T0 + 100_000)
    );
    assert_eq!(held[0].reason.message, "Quota");

    let alone = start(&orchestrator, request(&[&a]));
    let either = start(&orchestrator, request(&[&a, &b]));
    let mut patient = request(&[&a, &b]);
    patient.retry.actions.insert(ErrorKind::Quota, Action::Wait);
    let patient = start(&orchestrator, patient);
    let mut strict = request(&[&a]);
    strict.retry.actions.insert(ErrorKind::Quota, Action::End);
    let strict = start(&orchestrator, strict);
    let mut hasty = request(&[&a]);
    hasty.retry.max_wait = secs(99);
    let hasty = start(&orchestrator, hasty);

    let lines = story(either).await;
    assert_eq!(
        lines,
        [
            "start a",
            "fallback 1 Quota +0 b",
            "chunk x",
            "message x",
            "end success"
        ]
    );
    for run in [strict, hasty] {
        let done = run.outcome().await;
        assert_eq!((done.attempts.len(), done.duration_ms < 2000), (0, true));
        let error = done.error.unwrap();
        assert_eq!(error.kind, ErrorKind::Quota);
        assert_eq!(
            error.message,
            "a is on hold because of an earlier error: Quota"
        );
    }
    for run in [alone, patient] {
        let done = run.outcome().await;
        assert_eq!(done.result.status, RunStatus::Completed);
        assert_eq!((done.attempts.len(), done.duration_ms), (1, 100_000));
    }
    assert_eq!(a.runs().len(), 3);
    assert_over(&orchestrator, &[&a, &b]).await;
}

#[tokio::test(start_paused = true)]
async fn a_hold_that_comes_while_one_waits_for_a_slot_is_noticed() {
    let slow = mock(
        "a",
        [
            Script::new().delay(secs(1000)),
            Script::new()
                .delay(secs(3))
                .failed(error(ErrorKind::Quota).retry_after_ms(3_600_000)),
        ],
    );
    let b = busy("b");
    let orchestrator = limited(Limits::default().per_provider(2));
    let _first = start(&orchestrator, request(&[&slow]));
    let second = start(&orchestrator, request(&[&slow]));
    slow.wait_for_runs(2).await;
    let third = start(&orchestrator, request(&[&slow, &b]));
    assert_eq!(second.outcome().await.duration_ms, 3000);
    let done = third.outcome().await;
    assert_eq!((done.provider.as_str(), done.attempts.len()), ("b", 1));
    assert!(done.duration_ms <= 5000, "{}", done.duration_ms);
}

#[tokio::test(start_paused = true)]
async fn a_throttling_without_a_time_uses_the_configured_one() {
    // The run has no retry left, so the default duration applies.
    for (kind, ms) in [(ErrorKind::RateLimit, 5000), (ErrorKind::Quota, 300_000)] {
        let a = mock("a", [fails(kind)]);
        let orchestrator = orchestrator();
        let mut request = request(&[&a]);
        request.retry.retries = 0;
        start(&orchestrator, request).outcome().await;
        assert_eq!(orchestrator.holds().await[0].until_ms, T0 + ms);
    }
    for kind in [ErrorKind::Overloaded, ErrorKind::Auth] {
        let a = mock("a", [fails_for(kind, 9000)]);
        let orchestrator = orchestrator();
        let mut request = request(&[&a]);
        request.retry.retries = 0;
        start(&orchestrator, request).outcome().await;
        assert_eq!(orchestrator.holds().await, []);
    }
}

#[tokio::test(start_paused = true)]
async fn a_second_account_has_limits_of_its_own() {
    let a = mock("a", [fails_for(ErrorKind::Quota, 1_000_000), Script::new()]);
    let orchestrator = limited(Limits::default().per_provider(1));
    let mut request = request(&[&a, &a]);
    request.candidates[1].group = Some("a of work".into());
    let lines = story(start(&orchestrator, request)).await;
    assert_eq!(lines, ["start a", "fallback 2 Quota +0 a", "end success"]);
    assert_eq!(orchestrator.holds().await[0].provider, "a");
}

#[tokio::test(start_paused = true)]
async fn a_look_from_outside_sees_the_attempt_that_comes() {
    let a = mock(
        "a",
        [Script::new().session("s").failed(error(ErrorKind::Auth))],
    );
    let b = busy("b");
    let orchestrator = limited(Limits::default().provider("b", 1));
    let other = start(&orchestrator, request(&[&b]));
    b.wait_for_runs(1).await;
    let mut waits = request(&[&a, &b]);
    waits.candidates[1].params.model = Some("m".into());
    let run = start(&orchestrator, waits);
    a.wait_for_runs(1).await;
    settle().await;
    let seen = &orchestrator.active_runs().await[1];
    assert_eq!((seen.provider.as_str(), seen.attempt), ("b", 2));
    assert_eq!(
        (seen.model.as_deref(), seen.session_id.as_deref()),
        (Some("m"), None)
    );
    assert_eq!(seen.phase, teamster_orchestrator::RunPhase::Queued);
    run.abort();
    let done = run.outcome().await;
    // The last attempt was that of `a`, and so is its session.
    assert_eq!(done.provider, "a");
    assert_eq!(done.session_id.as_deref(), Some("s"));
    drop(other);
}

#[tokio::test(start_paused = true)]
async fn a_hold_can_be_ended_before_its_time() {
    let a = mock("a", [fails_for(ErrorKind::Quota, 100_000), Script::new()]);
    let orchestrator = orchestrator();
    let mut first = request(&[&a]);
    first.retry.max_wait = secs(1);
    start(&orchestrator, first).outcome().await;
    let waits = start(&orchestrator, request(&[&a]));
    tokio::time::sleep(secs(7)).await;
    assert!(!orchestrator.release("b").await);
    assert!(orchestrator.release("a").await);
    assert!(!orchestrator.release("a").await);
    let done = waits.outcome().await;
    assert_eq!(done.result.status, RunStatus::Completed);
    assert_eq!(done.duration_ms, 7000);
    assert_over(&orchestrator, &[&a]).await;
}

#[tokio::test(start_paused = true)]
async fn another_model_of_a_provider_that_is_on_hold_is_not_held_back() {
    let a = mock(
        "a",
        [
            fails_for(ErrorKind::RateLimit, 100_000),
            Script::new().text("small"),
            Script::new(),
            Script::new(),
        ],
    );
    let orchestrator = orchestrator();
    let mut both = request(&[&a, &a]);
    both.retry.retries = 0;
    both.retry.max_wait = secs(0);
    both.candidates[0].params.model = Some("large".into());
    both.candidates[1].params.model = Some("small".into());
    let done = start(&orchestrator, both).outcome().await;
    assert_eq!(done.result.status, RunStatus::Completed);
    assert_eq!(done.model.as_deref(), Some("small"));
    assert_eq!(done.duration_ms, 0);
    let held = orchestrator.holds().await;
    assert_eq!(held[0].model.as_deref(), Some("large"));

    // A run with the same model waits, and so does one without a model.
    let mut same = request(&[&a]);
    same.candidates[0].params.model = Some("large".into());
    let same = start(&orchestrator, same);
    let any = start(&orchestrator, request(&[&a]));
    for run in [same, any] {
        assert_eq!(run.outcome().await.duration_ms, 100_000);
    }
    assert_over(&orchestrator, &[&a]).await;
}
