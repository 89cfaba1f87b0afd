//! Stopped runs.

use std::time::Duration;

use serde_json::json;
use teamster_core::provider::{RunAssembler, grammar};
use teamster_core::{AgentEvent, AgentRuntime, RunStatus, ToolKind, Usage};
use teamster_testkit::mock_runtime::{MockRuntime, Script};
use tokio::time::{Instant, timeout};

use super::{drain, params, result, types};

const HOUR: Duration = Duration::from_hours(1);

/// Asserts the complete end of an aborted run.
fn is_aborted(events: &[AgentEvent]) {
    let end = &events[events.len() - 2..];
    assert_eq!(types(end), ["error", "done"]);
    let result = result(events);
    assert_eq!(result.status, RunStatus::Aborted);
    assert!(result.aborted);
    assert_eq!(result.errors, [RunAssembler::aborted_error()]);
}

#[tokio::test(start_paused = true)]
async fn in_a_delay() {
    let usage = Usage::default().input_tokens(5);
    let script = Script::new()
        .text("a")
        .usage(usage)
        .tool_use("Bash", "t1", ToolKind::Execute, json!({}))
        .delay(HOUR)
        .text("never")
        .cost_usd(1.0);
    let mock = MockRuntime::new("claude").run(script);
    let start = Instant::now();
    let stream = mock.execute(params());
    let handle = stream.abort_handle();
    let reader = tokio::spawn(drain(stream));
    mock.wait_for_runs(1).await;
    tokio::time::sleep(HOUR / 2).await;
    assert_eq!(mock.active(), 1);
    handle.abort();
    let events = reader.await.unwrap();
    assert_eq!(start.elapsed(), HOUR / 2);
    assert_eq!(grammar::check(&events), Ok(()));
    is_aborted(&events);
    let result = result(&events);
    assert_eq!(result.text, "a");
    assert_eq!(result.usage, Some(usage));
    assert_eq!(result.total_cost_usd, None);
    assert_eq!(result.open_tool_ids, ["t1".into()]);
    assert_eq!(result.exit_signal.as_deref(), Some("SIGTERM"));
    assert_eq!(mock.active(), 0);
}

#[tokio::test]
async fn by_the_token_of_the_parameters() {
    let mock = MockRuntime::new("claude").run(Script::new().wait_for_abort().text("never"));
    let params = params();
    let cancel = params.cancel.clone();
    let reader = tokio::spawn(drain(mock.execute(params)));
    mock.wait_for_runs(1).await;
    cancel.cancel();
    let events = reader.await.unwrap();
    assert_eq!(events.len(), 2);
    is_aborted(&events);
}

#[tokio::test]
async fn between_two_events_that_nothing_separates() {
    let mock = MockRuntime::new("claude").run(Script::new().text("a").text("b"));
    let mut stream = mock.execute(params());
    assert_eq!(stream.next().await.unwrap().type_name(), "text");
    stream.abort();
    let events = drain(stream).await;
    assert_eq!(events.len(), 2);
    is_aborted(&events);
}

#[tokio::test]
async fn before_the_first_poll_nothing_is_started() {
    let mock = MockRuntime::new("claude").run(Script::new().text("a"));
    let stream = mock.execute(params());
    stream.abort();
    let events = drain(stream).await;
    assert_eq!(events.len(), 2);
    is_aborted(&events);
    assert_eq!(mock.runs().len(), 0);
    assert_eq!(mock.max_active(), 0);
    // The script is still queued for the next run.
    assert_eq!(mock.execute(params()).result().await.text, "a");
}

#[tokio::test(start_paused = true)]
async fn slow_stop_is_awaited() {
    let script = Script::new().wait_for_abort().stop_takes(HOUR);
    let mock = MockRuntime::new("claude").run(script).repeat_last();
    for (killed, takes) in [(false, HOUR), (true, HOUR / 4)] {
        let stream = mock.execute(params());
        let handle = stream.abort_handle();
        let reader = tokio::spawn(drain(stream));
        mock.wait_for_runs(1 + usize::from(killed)).await;
        let stopped = Instant::now();
        handle.abort();
        tokio::time::sleep(HOUR / 4).await;
        assert_eq!(mock.active(), 1);
        if killed {
            handle.kill();
        }
        is_aborted(&reader.await.unwrap());
        assert_eq!(stopped.elapsed(), takes);
    }
}

#[tokio::test(start_paused = true)]
async fn hanging_stop_ends_only_on_drop() {
    let mock = MockRuntime::new("claude").run(Script::new().text("a").hang());
    let mut stream = mock.execute(params());
    stream.next().await.unwrap();
    // Polled before the abort, so that it already hangs.
    timeout(HOUR, stream.next()).await.unwrap_err();
    stream.abort_handle().kill();
    timeout(HOUR, stream.next()).await.unwrap_err();
    assert_eq!(mock.active(), 1);
    drop(stream);
    assert_eq!(mock.active(), 0);
}

#[tokio::test]
async fn after_the_end_it_changes_nothing() {
    let mock = MockRuntime::new("claude").run(Script::new().text("a"));
    let mut stream = mock.execute(params());
    stream.next().await.unwrap();
    let Some(AgentEvent::Done(done)) = stream.next().await else {
        panic!("no done");
    };
    stream.abort();
    assert_eq!(stream.next().await, None);
    assert_eq!(done.result.status, RunStatus::Completed);
}
