//! Tests of stopping a run at every moment and from everywhere.

use std::sync::Arc;

use serde_json::json;
use teamster_core::{ErrorKind, RunStatus, ToolKind};
use teamster_orchestrator::{Limits, RunPhase};
use teamster_testkit::mock_runtime::{MockRuntime, Script};

use crate::common::*;

fn waits() -> Script {
    Script::new().session("s").text("half").wait_for_abort()
}

#[tokio::test(start_paused = true)]
async fn before_the_first_attempt() {
    let claude = mock("claude", [waits()]);
    let orchestrator = orchestrator();
    let run = orchestrator.start(request(&[&claude]));
    run.abort();
    run.abort();
    assert_eq!(story(run).await, ["start claude", "end aborted"]);
    assert_eq!(claude.runs().len(), 0);
    assert_over(&orchestrator, &[&claude]).await;
}

#[tokio::test(start_paused = true)]
async fn from_everywhere() {
    for way in ["run", "handle", "kill", "cancel", "id", "all"] {
        let claude = mock("claude", [waits()]);
        let orchestrator = orchestrator();
        let request = request(&[&claude]);
        let cancel = request.candidates[0].params.cancel.clone();
        let run = orchestrator.start(request);
        claude.wait_for_runs(1).await;
        settle().await;
        match way {
            "run" => run.abort(),
            "handle" => run.abort_handle().abort(),
            "kill" => run.abort_handle().kill(),
            "cancel" => cancel.cancel(),
            "id" => assert!(orchestrator.abort("r").await),
            _ => assert_eq!(orchestrator.abort_all().await, 1),
        }
        run.abort();
        assert_eq!(
            story(run).await,
            ["start claude", "chunk half", "message half", "end aborted"],
            "{way}"
        );
        assert!(!orchestrator.abort("r").await);
        assert_eq!(orchestrator.abort_all().await, 0);
        // Only the run was cancelled, not the caller's own token.
        assert_eq!(cancel.is_cancelled(), way == "cancel");
        assert_over(&orchestrator, &[&claude]).await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_cancel_of_a_fallback_has_no_effect() {
    let (claude, codex) = (
        mock("claude", [fails(ErrorKind::Auth)]),
        mock("codex", [Script::new().delay(secs(1)).text("x")]),
    );
    let request = request(&[&claude, &codex]);
    request.candidates[1].params.cancel.cancel();
    let done = orchestrator().start(request).outcome().await;
    assert_eq!(done.result.status, RunStatus::Completed);
}

#[tokio::test(start_paused = true)]
async fn while_queued() {
    let claude = mock("claude", [waits(), waits()]);
    let orchestrator = limited(Limits::default().overall(1));
    let mut first = request(&[&claude]);
    first.id = Some("first".into());
    let first = orchestrator.start(first);
    claude.wait_for_runs(1).await;
    let second = orchestrator.start(request(&[&claude]));
    settle().await;
    let phase = orchestrator.active_runs().await[1].phase;
    assert_eq!(phase, RunPhase::Queued);
    assert!(orchestrator.abort("r").await);
    assert_eq!(
        story(second).await,
        ["start claude", "hold claude", "end aborted"]
    );
    first.abort();
    let first = events(first).await;
    assert_eq!(outcome(&first).result.status, RunStatus::Aborted);
    assert_eq!(claude.runs().len(), 1);
    assert_over(&orchestrator, &[&claude]).await;
}

#[tokio::test(start_paused = true)]
async fn while_its_provider_is_on_hold() {
    let claude = mock("claude", [fails_for(ErrorKind::RateLimit, 60_000), waits()]);
    let orchestrator = orchestrator();
    let mut first = request(&[&claude]);
    first.id = Some("first".into());
    first.retry.retries = 0;
    events(orchestrator.start(first)).await;
    let run = orchestrator.start(request(&[&claude]));
    settle().await;
    let active = orchestrator.active_runs().await.remove(0);
    assert_eq!(
        (active.phase, active.until_ms),
        (RunPhase::OnHold, Some(T0 + 60_000))
    );
    run.abort();
    assert_eq!(
        story(run).await,
        ["start claude", "hold claude until 60000", "end aborted"]
    );
    assert_eq!(claude.runs().len(), 1);
    assert_over(&orchestrator, &[&claude]).await;
}

#[tokio::test(start_paused = true)]
async fn in_a_delay() {
    let claude = mock("claude", [fails(ErrorKind::Network), waits()]);
    let orchestrator = orchestrator();
    let mut run = orchestrator.start(request(&[&claude]));
    let mut seen = Vec::new();
    while seen
        .last()
        .is_none_or(|last: &String| !last.starts_with("retry"))
    {
        seen.push(brief(&run.next().await.unwrap()));
    }
    settle().await;
    let active = orchestrator.active_runs().await.remove(0);
    assert_eq!(
        (active.phase, active.until_ms, active.attempt),
        (RunPhase::Waiting, Some(T0 + 1000), 2)
    );
    run.abort();
    while let Some(event) = run.next().await {
        seen.push(brief(&event));
    }
    assert_eq!(
        seen,
        [
            "start claude",
            "attempt 1 claude",
            "retry 2 Network +1000 claude",
            "end aborted"
        ]
    );
    assert_eq!(claude.runs().len(), 1);
    assert_over(&orchestrator, &[&claude]).await;
}

#[tokio::test(start_paused = true)]
async fn in_a_tool() {
    let claude = mock(
        "claude",
        [Script::new()
            .tool_use("Bash", "a", ToolKind::Execute, json!({}))
            .tool_use("Read", "b", ToolKind::Read, json!({}))
            .delay(ms(40))
            .tool_result("b", "")
            .delay(secs(100))],
    );
    let orchestrator = orchestrator();
    let run = orchestrator.start(request(&[&claude]));
    claude.wait_for_runs(1).await;
    tokio::time::sleep(ms(100)).await;
    assert_eq!(orchestrator.active_runs().await[0].phase, RunPhase::InTool);
    run.abort();
    assert_eq!(
        story(run).await,
        [
            "start claude",
            "tool a",
            "tool b",
            "tool-end b ok 40",
            "tool-end a error 100",
            "end aborted"
        ]
    );
    assert_over(&orchestrator, &[&claude]).await;
}

#[tokio::test(start_paused = true)]
async fn by_dropping_it() {
    let claude = mock("claude", [waits()]);
    let orchestrator = orchestrator();
    let (send, mut heard) = tokio::sync::mpsc::unbounded_channel();
    let request = request(&[&claude]).on_event(move |event| send.send(brief(event)).unwrap());
    let run = orchestrator.start(request);
    claude.wait_for_runs(1).await;
    settle().await;
    drop(run);
    claude.wait_until_idle().await;
    settle().await;
    let mut seen = Vec::new();
    while let Ok(line) = heard.try_recv() {
        seen.push(line);
    }
    // The callback receives all events.
    assert_eq!(
        seen,
        [
            "start claude",
            "attempt 1 claude",
            "chunk half",
            "message half",
            "end aborted"
        ]
    );
    assert_over(&orchestrator, &[&claude]).await;
}

#[tokio::test(start_paused = true)]
async fn a_run_that_completes_all_the_same_is_a_success() {
    // The agent is asked to stop, but its result arrives.
    let claude = mock(
        "claude",
        [Script::new().text("all").delay(secs(5)).adjust(|result| {
            result.status = RunStatus::Completed;
            result.errors.clear();
        })],
    );
    let run = orchestrator().start(request(&[&claude]));
    claude.wait_for_runs(1).await;
    settle().await;
    run.abort();
    let events = events(run).await;
    assert_eq!(
        briefs(&events),
        ["start claude", "chunk all", "message all", "end success"]
    );
    assert_eq!(outcome(&events).error, None);
}

#[tokio::test(start_paused = true)]
async fn an_aborted_run_is_not_tried_again() {
    for kind in [ErrorKind::Network, ErrorKind::Auth, ErrorKind::Quota] {
        let claude = mock(
            "claude",
            [Script::new().wait_for_abort().adjust(move |result| {
                result.status = RunStatus::Failed;
                result.errors = vec![error(kind)];
            })],
        );
        let codex = mock("codex", [Script::new()]);
        let run = orchestrator().start(request(&[&claude, &codex]));
        claude.wait_for_runs(1).await;
        run.abort();
        assert_eq!(story(run).await, ["start claude", "end aborted"]);
        assert_eq!(codex.runs().len(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_runtime_that_does_not_stop_is_dropped_after_its_grace() {
    let claude = mock(
        "claude",
        [Script::new()
            .tool_use("Bash", "t", ToolKind::Execute, json!({}))
            .hang()],
    );
    let orchestrator = orchestrator();
    let run = orchestrator.start(request(&[&claude]));
    claude.wait_for_runs(1).await;
    settle().await;
    run.abort();
    settle().await;
    assert_eq!(
        orchestrator.active_runs().await[0].phase,
        RunPhase::Stopping
    );
    let events = events(run).await;
    assert_eq!(
        briefs(&events),
        [
            "start claude",
            "tool t",
            "tool-end t error 30000",
            "end aborted"
        ]
    );
    let log = &outcome(&events).attempts;
    let why = log[0].error.as_ref().unwrap();
    assert_eq!(why.kind, ErrorKind::Aborted, "{}", why.message);
    assert_over(&orchestrator, &[&claude]).await;
}

#[tokio::test(start_paused = true)]
async fn a_grace_without_end_is_no_panic() {
    let mut config = config();
    config.abort_grace = std::time::Duration::MAX;
    let orchestrator = teamster_orchestrator::Orchestrator::new(config).unwrap();
    let claude = mock("claude", [waits()]);
    let run = orchestrator.start(request(&[&claude]));
    claude.wait_for_runs(1).await;
    settle().await;
    run.abort();
    assert_eq!(story(run).await.last().unwrap(), "end aborted");
}

#[tokio::test(start_paused = true)]
async fn a_kill_after_an_abort_reaches_the_runtime() {
    let claude = mock("claude", [waits().stop_takes(secs(20))]);
    let run = orchestrator().start(request(&[&claude]));
    claude.wait_for_runs(1).await;
    settle().await;
    run.abort();
    tokio::time::sleep(secs(3)).await;
    run.abort_handle().kill();
    let done = run.outcome().await;
    assert_eq!(done.duration_ms, 3000);
    assert_eq!(done.result.status, RunStatus::Aborted);
}

#[tokio::test]
async fn with_many_threads_at_any_moment() {
    let claude = Arc::new(MockRuntime::new("claude").run_by(|_| {
        Script::new()
            .session("s")
            .tool_use("Bash", "t", ToolKind::Execute, json!({}))
            .text("x")
            .failed(error(ErrorKind::Network))
    }));
    let orchestrator = limited(Limits::default().overall(3));
    let mut tasks = Vec::new();
    for n in 0..60_u32 {
        let mut request = request(&[&claude]);
        request.id = None;
        request.retry.base_delay = ms(1);
        request.retry.retries = 20;
        let run = orchestrator.start(request);
        let abort = run.abort_handle();
        tasks.push(tokio::spawn(events(run)));
        tokio::spawn(async move {
            for _ in 0..n * 7 {
                tokio::task::yield_now().await;
            }
            abort.abort();
        });
    }
    for task in tasks {
        let events = task.await.unwrap();
        assert_eq!(outcome(&events).result.status, RunStatus::Aborted);
    }
    assert!(claude.max_active() <= 3);
    assert_over(&orchestrator, &[&claude]).await;
}
