//! Tests of runs that the orchestrator, or their caller, ended.

use serde_json::json;
use teamster_core::{RunStatus, ToolKind, Usage};

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
async fn a_budget_that_is_spent_on_the_way() {
    let claude = mock(
        "claude",
        [Script::new()
            .text_in("m", "a")
            .usage(Usage::default().output_tokens(20))
            .wait_for_abort()],
    );
    let mut request = request(&claude);
    request.budget.tokens = Some(10);
    let events = all(orchestrator().execute(request)).await;
    assert_eq!(
        short(&events),
        [
            "text m a",
            "usage",
            "error BudgetExceeded the run's budget of 10 tokens is spent",
            "done Failed a",
        ]
    );
    let result = result(&events);
    assert_eq!(result.errors[0].kind, ErrorKind::Budget);
    assert!(!result.aborted);
    assert_eq!(result.usage.unwrap().output_tokens, Some(20));
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
async fn on_hold_after_an_attempt() {
    let orchestrator = orchestrator();
    let mut limited = error(ErrorKind::Quota);
    limited.retry_after_ms = Some(3_600_000);
    let codex = mock("codex", [Script::new().failed(limited.clone())]);
    let gemini = mock("gemini", [Script::new().failed(limited)]);
    for runtime in [&codex, &gemini] {
        all(orchestrator.execute(request(runtime))).await;
    }
    let claude = mock(
        "claude",
        [Script::new()
            .session("s")
            .cost_usd(0.5)
            .failed(error(ErrorKind::Auth))],
    );
    let request = request(&claude)
        .fallback(candidate(&codex))
        .fallback(candidate(&gemini));
    let events = all(orchestrator.execute(request)).await;
    let hold = "is on hold because of an earlier error: Quota";
    assert_eq!(
        short(&events),
        [
            "session s".to_owned(),
            "notice claude failed (Auth): continuing with codex".into(),
            format!("notice codex failed (codex {hold}): continuing with gemini"),
            format!("error ProviderOnHold gemini {hold}"),
            "done Failed ".into(),
        ]
    );
    let result = result(&events);
    assert_eq!(result.exit_code, Some(1));
    assert_eq!(result.session_id.as_deref(), Some("s"));
    assert_eq!(result.total_cost_usd, Some(0.5));
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
async fn a_runtime_that_breaks_its_promise() {
    let mut request = request(&mock(
        "claude",
        [Script::new()
            .session("s")
            .text("a")
            .permission_denied("Bash", "t", "no")
            .usage(Usage::default().output_tokens(3))
            .breaks_off()],
    ));
    request.retry.retries = 0;
    let events = all(orchestrator().execute(request)).await;
    let lines = short(&events);
    assert!(lines[4].starts_with("error StreamEndedEarly"), "{lines:#?}");
    assert_eq!(lines[5], "done Failed a");
    let result = result(&events);
    assert_eq!(result.session_id.as_deref(), Some("s"));
    assert_eq!(result.final_message.as_deref(), Some("a"));
    assert_eq!(result.usage.unwrap().output_tokens, Some(3));
    assert_eq!(result.permission_denials[0].tool_name, "Bash");
}

#[tokio::test(start_paused = true)]
async fn refused_before_any_attempt() {
    let claude = mock("claude", [Script::new()]);
    let mut empty = request(&claude);
    empty.candidates.clear();
    let events = all(orchestrator().execute(empty)).await;
    assert_eq!(
        short(&events),
        [
            "error InvalidParams candidates: at least one is needed",
            "done Failed "
        ]
    );

    let stream = orchestrator().execute(request(&claude));
    stream.abort();
    let expected = [
        "error Aborted the run was stopped by its caller",
        "done Aborted ",
    ];
    assert_eq!(short(&all(stream).await), expected);
    let mut cancelled = request(&claude);
    cancelled.candidates[0].params.cancel.cancel();
    cancelled.id = Some("r".into());
    let (sender, events) = std::sync::mpsc::channel();
    let cancelled = cancelled.on_event(move |event| sender.send(event.type_name()).unwrap());
    assert_eq!(
        short(&all(orchestrator().execute(cancelled)).await),
        expected
    );
    assert_eq!(claude.runs().len(), 0);
    assert_eq!(events.iter().count(), 0);
}

#[tokio::test(start_paused = true)]
async fn aborted_in_the_queue() {
    let mut config = OrchestratorConfig::default();
    config.limits.overall = Some(1);
    let orchestrator = Orchestrator::new(config).unwrap();
    let claude = mock("claude", [Script::new().text("a").wait_for_abort()]);
    let mut first = orchestrator.execute(request(&claude));
    until(&mut first, "text").await;

    let cancel = teamster_core::CancellationToken::new();
    let mut second = request(&claude);
    second.candidates[0].params.cancel = cancel.clone();
    second.id = Some("second".into());
    let waiting = tokio::spawn(all(orchestrator.execute(second)));
    while !orchestrator.is_run_active("second").await {
        tokio::task::yield_now().await;
    }
    cancel.cancel();
    assert_eq!(
        short(&waiting.await.unwrap()),
        [
            "error Aborted the run was stopped by its caller",
            "done Aborted "
        ]
    );
    assert_eq!(claude.active(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_kill_reaches_the_runtime() {
    let script = Script::new()
        .text("a")
        .wait_for_abort()
        .stop_takes(seconds(20));
    let claude = mock("claude", [script]);
    let mut events = orchestrator().execute(request(&claude));
    until(&mut events, "text").await;
    let begun = tokio::time::Instant::now();
    events.abort_handle().kill();
    assert_eq!(events.result().await.status, RunStatus::Aborted);
    assert_eq!(begun.elapsed(), Duration::ZERO);
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
