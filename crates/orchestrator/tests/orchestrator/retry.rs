//! Tests of retry and fallback: the order, the times and the parameters of attempts.

use std::collections::BTreeMap;

use teamster_core::{AgentError, ErrorKind, ExecuteParams, RunStatus};
use teamster_orchestrator::{Action, Candidate};
use teamster_testkit::mock_runtime::{MockRuntime, Script};

use crate::common::*;

const ALL: [ErrorKind; 18] = [
    ErrorKind::Auth,
    ErrorKind::RateLimit,
    ErrorKind::Quota,
    ErrorKind::Overloaded,
    ErrorKind::Network,
    ErrorKind::ContextWindow,
    ErrorKind::ModelNotFound,
    ErrorKind::SessionNotFound,
    ErrorKind::Permission,
    ErrorKind::Budget,
    ErrorKind::MaxTurns,
    ErrorKind::Mcp,
    ErrorKind::Timeout,
    ErrorKind::Aborted,
    ErrorKind::NotFound,
    ErrorKind::Invalid,
    ErrorKind::Protocol,
    ErrorKind::Internal,
];

/// Returns the start times of a mock's runs, in milliseconds since the start of the test.
fn begun(mock: &MockRuntime, start: tokio::time::Instant) -> Vec<u64> {
    let since = |at: tokio::time::Instant| at.duration_since(start).as_millis();
    let runs = mock.runs();
    runs.iter()
        .map(|run| u64::try_from(since(run.started)).unwrap())
        .collect()
}

#[tokio::test(start_paused = true)]
async fn the_table_row_by_row() {
    for kind in ALL {
        let expected: &[&str] = match kind {
            ErrorKind::RateLimit
            | ErrorKind::Overloaded
            | ErrorKind::Network
            | ErrorKind::Timeout
            | ErrorKind::Protocol => &["start a", "retry 2 +1000 a", "end success"],
            ErrorKind::Quota
            | ErrorKind::Auth
            | ErrorKind::ModelNotFound
            | ErrorKind::NotFound
            | ErrorKind::ContextWindow
            | ErrorKind::Internal => &["start a", "fallback 2 +0 b", "end success"],
            _ => &["start a", "error", "end error"],
        };
        let (a, b) = (
            mock("a", [fails(kind), Script::new()]),
            mock("b", [Script::new()]),
        );
        let events = story(orchestrator().start(request(&[&a, &b]))).await;
        let name = format!(" {kind:?}");
        let events: Vec<_> = events.iter().map(|line| line.replace(&name, "")).collect();
        assert_eq!(events, expected, "{kind:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_table_can_be_overridden_row_by_row() {
    for kind in ALL {
        for action in [Action::Retry, Action::Wait, Action::FallBack, Action::End] {
            let mut error = error(kind).retry_after_ms(7000);
            // The error's own property has no effect then.
            error.retryable = !error.retryable;
            let script = Script::new().failed(error);
            let (a, b) = (
                mock("a", [script, Script::new()]),
                mock("b", [Script::new()]),
            );
            let mut request = request(&[&a, &b]);
            request.retry.actions.insert(kind, action);
            let story = story(orchestrator().start(request)).await;
            let second = match action {
                Action::Retry | Action::Wait => format!("retry 2 {kind:?} +7000 a"),
                Action::FallBack => format!("fallback 2 {kind:?} +0 b"),
                _ => format!("error {kind:?}"),
            };
            assert_eq!(story[1], second, "{action:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_errors_own_property_corrects_the_table() {
    for kind in ALL {
        for retryable in [false, true] {
            let mut error = error(kind);
            error.retryable = retryable;
            let (a, b) = (
                mock("a", [Script::new().failed(error), Script::new()]),
                mock("b", [Script::new()]),
            );
            let story = story(orchestrator().start(request(&[&a, &b]))).await;
            let expected = match (Action::for_kind(kind), retryable, kind) {
                (Action::Retry, true, _) | (Action::FallBack, true, ErrorKind::Internal) => "retry",
                (Action::Retry | Action::FallBack, _, _) => "fallback",
                _ => "error",
            };
            let got = story[1].split(' ').next().unwrap();
            assert_eq!(got, expected, "{kind:?} {retryable}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn delays_double_up_to_the_longest() {
    let start = tokio::time::Instant::now();
    let claude = always("claude", fails(ErrorKind::Network));
    let mut request = request(&[&claude]);
    request.retry.retries = 6;
    request.retry.max_delay = secs(10);
    let done = orchestrator().start(request).outcome().await;
    assert_eq!(
        begun(&claude, start),
        [0, 1000, 3000, 7000, 15_000, 25_000, 35_000]
    );
    assert_eq!(done.attempts.len(), 7);
    assert_eq!(done.duration_ms, 35_000);
    assert_eq!(done.error.unwrap().message, "Network");
}

#[tokio::test(start_paused = true)]
async fn no_delay_is_longer_than_the_longest() {
    let claude = mock("claude", [fails(ErrorKind::Network), Script::new()]);
    let mut request = request(&[&claude]);
    request.retry.base_delay = secs(30);
    request.retry.max_delay = secs(2);
    assert_eq!(
        story(orchestrator().start(request)).await[1],
        "retry 2 Network +2000 claude"
    );
}

#[tokio::test(start_paused = true)]
async fn jitter_adds_at_most_the_delay_itself() {
    let mut delays: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
    for _ in 0..40 {
        let claude = always("claude", fails(ErrorKind::Network));
        let mut request = request(&[&claude]);
        request.retry.jitter = true;
        request.retry.retries = 3;
        for event in events(orchestrator().start(request)).await {
            if let teamster_core::RunEvent::Retry { next, delay_ms, .. } = event {
                delays.entry(next.attempt).or_default().push(delay_ms);
            }
        }
    }
    for (attempt, base) in [(2, 1000), (3, 2000), (4, 4000)] {
        let mut drawn = delays[&attempt].clone();
        assert!(
            drawn.iter().all(|ms| (base..=2 * base).contains(ms)),
            "{drawn:?}"
        );
        drawn.sort_unstable();
        drawn.dedup();
        assert!(drawn.len() > 10, "that is no jitter: {drawn:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_delay_of_the_service_is_kept_exactly() {
    let start = tokio::time::Instant::now();
    let reset = |at: u64| Script::new().failed(error(ErrorKind::RateLimit).resets_at_ms(at));
    let claude = mock(
        "claude",
        [
            fails_for(ErrorKind::RateLimit, 1234),
            reset(T0 + 50_001),
            // A reset in the past is ignored.
            reset(T0 - 5),
            // Reported only by an earlier event, with the status `rejected`.
            Script::new()
                .rate_limit("allowed_warning", Some(T0 + 999_000))
                .rate_limit("rejected", Some(T0 + 100_000))
                .failed(error(ErrorKind::RateLimit)),
            Script::new(),
        ],
    );
    let mut request = request(&[&claude]);
    request.retry.jitter = true;
    request.retry.retries = 4;
    request.retry.base_delay = secs(0);
    let done = orchestrator().start(request).outcome().await;
    assert_eq!(done.result.status, RunStatus::Completed);
    assert_eq!(begun(&claude, start), [0, 1234, 50_001, 50_001, 100_000]);
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_is_too_long_falls_back() {
    for kind in [ErrorKind::RateLimit, ErrorKind::Overloaded] {
        let (a, b) = (
            mock("a", [fails_for(kind, 300_001)]),
            mock("b", [Script::new()]),
        );
        assert_eq!(
            story(orchestrator().start(request(&[&a, &b]))).await[1],
            format!("fallback 2 {kind:?} +0 b")
        );
        let a = mock("a", [fails_for(kind, 300_001)]);
        let story1 = story(orchestrator().start(request(&[&a]))).await;
        assert_eq!(story1[1], format!("error {kind:?}"));
        let a = mock("a", [fails_for(kind, 300_000), Script::new()]);
        let story2 = story(orchestrator().start(request(&[&a]))).await;
        assert_eq!(story2[1], format!("retry 2 {kind:?} +300000 a"));
    }
}

#[tokio::test(start_paused = true)]
async fn every_candidate_has_its_own_retries_and_parameters() {
    let start = tokio::time::Instant::now();
    let network = || fails(ErrorKind::Network);
    let a = mock(
        "a",
        [
            Script::new()
                .session("sa")
                .failed(error(ErrorKind::Network)),
            network(),
            network(),
        ],
    );
    let b = mock("b", [network(), fails(ErrorKind::Auth)]);
    let c = mock("c", [Script::new().text("well")]);
    let mut request = request(&[&a, &b, &c]);
    request.candidates[0].params.model = Some("big".into());
    request.candidates[0].params.session_id = Some("old".into());
    request.candidates[1].params.prompt = "other words".into();
    request.candidates[1].params.effort = Some("low".into());
    let mut own = ExecuteParams::new("third");
    own.new_session_id = Some("mine".into());
    request.candidates[2] = Candidate::new(c.clone(), own).model("small");
    let lines = story(orchestrator().start(request)).await;
    assert_eq!(
        lines,
        [
            "start a",
            "retry 2 Network +1000 a",
            "retry 3 Network +2000 a",
            "fallback 4 Network +0 b",
            // The delays start over.
            "retry 5 Network +1000 b",
            "fallback 6 Auth +0 c",
            "chunk well",
            "message well",
            "end success"
        ]
    );
    assert_eq!(begun(&a, start), [0, 1000, 3000]);
    assert_eq!(begun(&b, start), [3000, 4000]);
    for run in a.runs() {
        assert_eq!(run.params.model.as_deref(), Some("big"));
        assert_eq!(run.params.session_id.as_deref(), Some("old"));
        assert_eq!(run.params.prompt, PROMPT);
    }
    for run in b.runs() {
        assert_eq!(run.params.model, None);
        assert_eq!(run.params.session_id, None);
        assert_eq!(run.params.new_session_id, None);
        assert_eq!(run.params.effort.as_deref(), Some("low"));
        assert_eq!(run.params.prompt, "other words");
    }
    let run = &c.runs()[0].params;
    assert_eq!(run.model.as_deref(), Some("small"));
    assert_eq!(run.new_session_id.as_deref(), Some("mine"));
    assert_eq!(run.session_id, None);
    assert_eq!(run.prompt, "third");
}

#[tokio::test(start_paused = true)]
async fn no_more_attempts_than_allowed() {
    for most in 1..=5 {
        let network = || fails(ErrorKind::Network);
        let (a, b) = (
            mock("a", [network(), network()]),
            mock("b", [network(), network(), network()]),
        );
        let mut request = request(&[&a, &b]);
        request.retry.retries = 1;
        request.retry.max_attempts = Some(most);
        let done = orchestrator().start(request).outcome().await;
        assert_eq!(done.attempts.len(), most.min(4) as usize);
    }
}

#[tokio::test(start_paused = true)]
async fn no_attempt_begins_too_late() {
    let start = tokio::time::Instant::now();
    let script = Script::new().delay(ms(500));
    let claude = always("claude", script.failed(error(ErrorKind::Network)));
    let mut request = request(&[&claude]);
    request.retry.retries = 9;
    request.retry.max_elapsed = Some(secs(5));
    let done = orchestrator().start(request).outcome().await;
    // The fourth attempt would begin after 1 + 2 + 4 seconds and the durations of the attempts.
    assert_eq!(begun(&claude, start), [0, 1500, 4000]);
    let message = done.error.unwrap().message;
    assert_eq!(
        message,
        "Network (not tried again: the time for attempts (5s) would be over)"
    );
}

#[tokio::test(start_paused = true)]
async fn retry_without_time_to_wait_falls_back_at_once() {
    let (a, b) = (
        mock("a", [fails_for(ErrorKind::RateLimit, 60_000)]),
        mock("b", [Script::new()]),
    );
    let mut request = request(&[&a, &b]);
    request.retry.max_elapsed = Some(secs(10));
    assert_eq!(
        story(orchestrator().start(request)).await,
        ["start a", "fallback 2 RateLimit +0 b", "end success"]
    );
}

#[tokio::test(start_paused = true)]
async fn attempt_that_waits_for_its_slot_keeps_the_time_limit() {
    let slow = mock("a", [Script::new().delay(secs(100))]);
    let orchestrator = limited(teamster_orchestrator::Limits::default().overall(1));
    let mut first = request(&[&slow]);
    first.id = Some("first".into());
    let first = tokio::spawn(events(orchestrator.start(first)));
    slow.wait_for_runs(1).await;
    let a = mock("a", [Script::new()]);
    let mut second = request(&[&a]);
    second.retry.max_elapsed = Some(secs(20));
    let done = orchestrator.start(second).outcome().await;
    assert_eq!(done.duration_ms, 20_000);
    assert_eq!(done.error.unwrap().kind, ErrorKind::Timeout);
    assert_eq!(a.runs().len(), 0);
    first.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_quota_waits_without_burning_attempts() {
    let start = tokio::time::Instant::now();
    let a = mock(
        "a",
        [
            fails_for(ErrorKind::Quota, 60_000),
            fails_for(ErrorKind::Quota, 90_000),
            fails_for(ErrorKind::Quota, 120_000),
            fails(ErrorKind::Network),
            Script::new(),
        ],
    );
    let mut request = request(&[&a]);
    request.retry.retries = 1;
    request.retry.max_attempts = Some(2);
    let lines = story(orchestrator().start(request)).await;
    assert_eq!(
        lines,
        [
            "start a",
            "retry 2 Quota +60000 a",
            "retry 3 Quota +90000 a",
            "retry 4 Quota +120000 a",
            // The only retry.
            "retry 5 Network +1000 a",
            "end success"
        ]
    );
    assert_eq!(begun(&a, start), [0, 60_000, 150_000, 270_000, 271_000]);
}

#[tokio::test(start_paused = true)]
async fn a_quota_falls_back_unless_the_policy_waits() {
    let scripts = || [fails_for(ErrorKind::Quota, 60_000), Script::new()];
    let (a, b) = (mock("a", scripts()), mock("b", [Script::new()]));
    let mut request = request(&[&a, &b]);
    // A fallback does not count as an attempt either.
    request.retry.max_attempts = Some(1);
    assert_eq!(
        story(orchestrator().start(request.clone())).await,
        ["start a", "fallback 2 Quota +0 b", "end success"]
    );
    let a = mock("a", scripts());
    request.candidates[0].runtime = a;
    request.retry.actions.insert(ErrorKind::Quota, Action::Wait);
    assert_eq!(
        story(orchestrator().start(request)).await,
        ["start a", "retry 2 Quota +60000 a", "end success"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_quota_that_resets_too_late_or_never_ends_the_run() {
    for script in [
        fails(ErrorKind::Quota),
        fails_for(ErrorKind::Quota, 300_001),
    ] {
        let a = mock("a", [script]);
        assert_eq!(
            story(orchestrator().start(request(&[&a]))).await,
            ["start a", "error Quota", "end error"]
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_limit_that_is_never_over_is_not_asked_all_the_time() {
    let a = always("a", fails_for(ErrorKind::Quota, 1));
    let mut request = request(&[&a]);
    request.budget.time = Some(secs(3600));
    let done = orchestrator().start(request).outcome().await;
    assert_eq!(done.error.unwrap().kind, ErrorKind::Budget);
    // The delays are 1 ms, 1 s, 2 s, and so on, up to a minute.
    assert!((60..80).contains(&a.runs().len()), "{}", a.runs().len());
}

#[tokio::test(start_paused = true)]
async fn a_run_that_failed_without_an_error_is_retried() {
    let claude = mock(
        "claude",
        [
            Script::new().incomplete(),
            Script::new().timed_out(AgentError::new(
                teamster_core::ErrorCode::WatchdogTimeout,
                ErrorKind::Timeout,
                "no line for 60 s",
            )),
            Script::new().adjust(|result| result.status = RunStatus::Failed),
        ],
    );
    assert_eq!(
        story(orchestrator().start(request(&[&claude]))).await,
        [
            "start claude",
            "retry 2 Protocol +1000 claude",
            "retry 3 Timeout +2000 claude",
            "error Protocol",
            "end error"
        ]
    );
}
