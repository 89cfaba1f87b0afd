//! Tests of runs that the orchestrator, or their caller, ended.

use serde_json::json;
use teamster_core::{RunStatus, ToolKind};

use super::*;

/// Polls the stream until an event of this type.
async fn until(events: &mut EventStream, kind: &str) {
    while let Some(event) = events.next().await {
        if event.type_name() == kind {
            return;
        }
    }
    panic!("no {kind}");
}

#[tokio::test(start_paused = true)]
async fn aborted_while_it_waits_for_the_next_attempt() {
    let claude = mock(
        "claude",
        [Script::new()
            .session("a")
            .text("half")
            .cost_usd(0.5)
            .structured_output(json!(1))
            .failed(error(ErrorKind::Network))],
    );
    let mut events = orchestrator().execute(request(&claude));
    let mut seen = Vec::new();
    while let Some(event) = events.next().await {
        if event.type_name() == "retry" {
            events.abort();
        }
        seen.push(event);
    }
    assert_eq!(grammar::check(&seen), Ok(()));
    assert_eq!(
        short(&seen),
        [
            "session a",
            "text attempt-1 half",
            "retract attempt-1",
            "retry 1 after 1000 CliError Network",
            "error Aborted the run was stopped by its caller",
            "done Aborted ",
        ]
    );
    assert_errors_in_result(&seen);
    let result = result(&seen);
    assert!(result.aborted);
    assert_eq!(result.total_cost_usd, Some(0.5));
    assert_eq!(result.session_id.as_deref(), Some("a"));
    assert_eq!(
        (result.final_message.as_deref(), result.exit_code),
        (None, Some(1))
    );
    assert_eq!(result.structured_output, None);
}

#[tokio::test(start_paused = true)]
async fn on_hold() {
    let orchestrator = orchestrator();
    let mut limited = error(ErrorKind::Quota);
    limited.retry_after_ms = Some(3_600_000);
    let claude = mock("claude", [Script::new().failed(limited)]);
    all(orchestrator.execute(request(&claude))).await;

    let events = all(orchestrator.execute(request(&claude))).await;
    assert_eq!(
        short(&events),
        [
            "error ProviderOnHold claude is on hold because of an earlier error: Quota",
            "done Failed ",
        ]
    );
    assert_eq!(result(&events).errors[0].kind, ErrorKind::Quota);
    assert_eq!(claude.runs().len(), 1);

    let codex = mock("codex", [Script::new().text_in("m", "b")]);
    let request = request(&claude).fallback(candidate(&codex));
    assert_eq!(
        short(&all(orchestrator.execute(request)).await),
        [
            "notice claude failed (claude is on hold because of an earlier error: Quota): continuing \
             with codex",
            "text m b",
            "done Completed b",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn why_it_does_not_go_on_is_reported() {
    let claude = mock(
        "claude",
        [Script::new()
            .tool_use("Bash", "t", ToolKind::Execute, json!({}))
            .failed(error(ErrorKind::Network))],
    );
    let mut request = request(&claude);
    request.retry.side_effects.then = crate::AfterSideEffects::End;
    let events = all(orchestrator().execute(request)).await;
    let lines = short(&events);
    assert!(
        lines[1].starts_with("notice not started over, because"),
        "{lines:#?}"
    );
    assert_eq!(lines[2..], ["error CliError Network", "done Failed "]);
}

#[tokio::test(start_paused = true)]
async fn dropped_stream_stops_its_run_and_unpolled_one_starts_none() {
    let orchestrator = orchestrator();
    let claude = mock("claude", [Script::new().text("a").wait_for_abort()]);
    drop(orchestrator.execute(request(&claude)));
    let mut events = orchestrator.execute(request(&claude));
    assert_eq!(claude.runs().len(), 0);
    until(&mut events, "text").await;
    assert_eq!(claude.active(), 1);
    drop(events);
    claude.wait_until_idle().await;
    while !orchestrator.active_runs().await.is_empty() {
        tokio::task::yield_now().await;
    }
    assert_eq!(claude.runs().len(), 1);
}

#[test]
fn without_tokio_there_is_an_error() {
    let tokio = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let orchestrator = tokio.block_on(async { orchestrator() });
    let claude = mock("claude", [Script::new()]);
    let mut events = orchestrator.execute(request(&claude));
    let mut seen = Vec::new();
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    loop {
        let next = std::pin::pin!(events.next());
        match next.poll(&mut cx) {
            std::task::Poll::Ready(Some(event)) => seen.push(event),
            std::task::Poll::Ready(None) => break,
            std::task::Poll::Pending => panic!("it waits for what cannot come"),
        }
    }
    assert_eq!(grammar::check(&seen), Ok(()));
    let lines = short(&seen);
    assert!(
        lines[0].starts_with("error Io an orchestrated run needs a Tokio runtime"),
        "{lines:?}"
    );
    assert_eq!(lines[1..], ["done Failed "]);
    assert_eq!(claude.runs().len(), 0);
}

#[test]
fn a_tokio_runtime_without_a_clock_gives_an_error() {
    let tokio = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let orchestrator = tokio.block_on(async { orchestrator() });
    let clockless = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    // The run has to wait before the next attempt.
    let claude = mock("claude", [Script::new().failed(error(ErrorKind::Network))]);
    let _guard = tokio.enter();
    let seen =
        std::thread::spawn(move || clockless.block_on(all(orchestrator.execute(request(&claude)))));
    // The registry lives on the first runtime, which must run meanwhile.
    let seen = tokio.block_on(async move {
        while !seen.is_finished() {
            tokio::task::yield_now().await;
        }
        seen.join().unwrap()
    });
    assert_eq!(result(&seen).status, RunStatus::Failed);
    assert_eq!(result(&seen).errors.len(), 1);
}
