//! Tests of answers that broke off after a call, and of sessions that were not kept.

use std::sync::Arc;

use serde_json::json;
use teamster_core::{AgentEvent, ErrorCode, ErrorKind, RunEvent, RunStatus, ToolKind};
use teamster_orchestrator::Action;
use teamster_testkit::mock_runtime::{MockRuntime, Script};

use crate::common::*;
use crate::side_effects::{assert_restarted, assert_resumed, tool};

/// Executes a run that fails after a resumed attempt with side effects.
async fn lost_session(then: Vec<Script>) -> (Vec<Arc<MockRuntime>>, Vec<RunEvent>) {
    let mut scripts = vec![
        tool(ToolKind::Edit).failed(error(ErrorKind::Network)),
        fails(ErrorKind::SessionNotFound),
    ];
    scripts.extend(then);
    let claude = mock("claude", scripts);
    let codex = mock("codex", [Script::new()]);
    let events = events(orchestrator().start(request(&[&claude, &codex]))).await;
    (vec![claude, codex], events)
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_gone_ends_the_run_with_the_first_error() {
    let (mocks, events) = lost_session(vec![Script::new()]).await;
    assert_eq!((mocks[0].runs().len(), mocks[1].runs().len()), (2, 0));
    let done = outcome(&events);
    assert_eq!(done.result.status, RunStatus::Failed);
    let error = done.error.unwrap();
    assert_eq!(error.kind, ErrorKind::Network);
    assert_eq!(
        error.message,
        "Network (its session could not be resumed: SessionNotFound; not started over, because the \
         agent had used `X`, which can change things; look at what has been done before you ask \
         again)"
    );
    assert_eq!(done.session_id, None);
    let kinds: Vec<_> = (done.attempts.iter())
        .map(|attempt| attempt.error.as_ref().unwrap().kind)
        .collect();
    assert_eq!(kinds, [ErrorKind::Network, ErrorKind::SessionNotFound]);
}

#[tokio::test(start_paused = true)]
async fn stream_ends_with_the_first_error_not_with_the_session_error() {
    let claude = mock(
        "claude",
        [
            tool(ToolKind::Edit).failed(error(ErrorKind::Network)),
            fails(ErrorKind::SessionNotFound),
        ],
    );
    let mut stream = orchestrator().execute(request(&[&claude]));
    let (mut errors, mut notices, mut result) = (Vec::new(), Vec::new(), None);
    while let Some(event) = stream.next().await {
        match event {
            AgentEvent::Error(e) => errors.push((e.error.code, e.error.kind)),
            AgentEvent::Notice(e) => notices.push(e.message),
            AgentEvent::Done(e) => result = Some(e.result),
            _ => {}
        }
    }
    let first = (ErrorCode::CliError, ErrorKind::Network);
    assert_eq!(errors, [first]);
    assert!(
        notices[0].starts_with("its session could not be resumed: SessionNotFound; "),
        "{notices:?}"
    );
    let result = result.unwrap();
    assert_eq!(result.status, RunStatus::Failed);
    let errors: Vec<_> = result.errors.iter().map(|e| (e.code, e.kind)).collect();
    assert_eq!(errors, [first]);
}

#[tokio::test(start_paused = true)]
async fn a_session_of_the_callers_that_is_gone_is_the_error() {
    let claude = mock(
        "claude",
        [
            fails(ErrorKind::Network),
            fails(ErrorKind::SessionNotFound),
            Script::new(),
        ],
    );
    let mut request = request(&[&claude]);
    request.candidates[0].params.session_id = Some("theirs".into());
    let events = events(orchestrator().start(request)).await;
    assert_eq!(claude.runs().len(), 2);
    let error = outcome(&events).error.unwrap();
    assert_eq!(
        (error.kind, &*error.message),
        (ErrorKind::SessionNotFound, "SessionNotFound")
    );
}

#[tokio::test(start_paused = true)]
async fn a_new_session_that_was_not_kept_is_made_once_more() {
    let claude = mock(
        "claude",
        [
            Script::new()
                .session("new")
                .text("x")
                .failed(error(ErrorKind::Network)),
            fails(ErrorKind::SessionNotFound),
            Script::new().session("new").text("done"),
        ],
    );
    let mut request = request(&[&claude]);
    request.retry.retries = 1;
    request.candidates[0].params.new_session_id = Some("new".into());
    let events = events(orchestrator().start(request)).await;
    assert_eq!(outcome(&events).result.status, RunStatus::Completed);
    let runs: Vec<_> = (claude.runs().into_iter())
        .map(|run| (run.params.session_id, run.params.new_session_id))
        .collect();
    let new = || Some("new".to_owned());
    assert_eq!(runs, [(None, new()), (new(), None), (None, new())]);
}

/// Returns a mock that behaves like Gemini CLI: it runs the calls of an answer after the answer is complete.
fn runs_calls_after_answer(first: Script) -> Arc<MockRuntime> {
    let mut runtime = MockRuntime::new("claude");
    runtime.capabilities_mut().runs_calls_after_answer = true;
    let runtime = runtime.run(first);
    Arc::new(runtime.run(Script::new().session("s").text("done")))
}

#[tokio::test(start_paused = true)]
async fn a_call_of_an_answer_that_broke_off_has_not_run() {
    for kind in [
        ErrorKind::Network,
        ErrorKind::Overloaded,
        ErrorKind::RateLimit,
        ErrorKind::Protocol,
    ] {
        let broken = || tool(ToolKind::Execute).failed(error(kind));
        let claude = runs_calls_after_answer(broken());
        assert_restarted(&claude, request(&[&claude])).await;
        // Other CLIs may have run the call during the answer.
        let claude = mock("claude", [broken(), Script::new().session("s")]);
        assert_resumed(&claude, request(&[&claude])).await;
        // An earlier read does not count either.
        let read = Script::new()
            .session("s")
            .tool_use("R", "r", ToolKind::Read, json!({}))
            .tool_result("r", "ok")
            .tool_use("X", "t", ToolKind::Execute, json!({}));
        let claude = runs_calls_after_answer(read.failed(error(kind)));
        assert_restarted(&claude, request(&[&claude])).await;
    }
    // The fallback is used as well.
    let claude = runs_calls_after_answer(tool(ToolKind::Edit).failed(error(ErrorKind::Quota)));
    let codex = mock("codex", [Script::new()]);
    events(orchestrator().start(request(&[&claude, &codex]))).await;
    assert_eq!((claude.runs().len(), codex.runs().len()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_call_counts_where_anything_may_have_run() {
    let died = |code| {
        let error = teamster_core::AgentError::new(code, ErrorKind::Network, "gone");
        tool(ToolKind::Edit).failed(error)
    };
    let two = tool(ToolKind::Edit).tool_use("Y", "u", ToolKind::Edit, json!({}));
    let network = || error(ErrorKind::Network);
    for script in [
        // The failure is not that of a request.
        tool(ToolKind::Edit).failed(error(ErrorKind::Internal)),
        tool(ToolKind::Edit).incomplete(),
        tool(ToolKind::Edit).timed_out(error(ErrorKind::Timeout)),
        died(ErrorCode::CliExitError),
        died(ErrorCode::WatchdogTimeout),
        // The call has run, or another call of the same answer has.
        tool(ToolKind::Edit)
            .tool_result("t", "ok")
            .failed(network()),
        tool(ToolKind::Edit).tool_error("t", "no").failed(network()),
        two.clone().tool_result("u", "ok").failed(network()),
        two.tool_result("t", "ok").failed(network()),
    ] {
        let claude = runs_calls_after_answer(script);
        let mut request = request(&[&claude]);
        request
            .retry
            .actions
            .insert(ErrorKind::Internal, Action::Retry);
        assert_resumed(&claude, request).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_continuation_does_not_name_a_call_that_has_not_run() {
    let script = tool(ToolKind::Edit)
        .tool_result("t", "ok")
        .tool_use("Y", "u", ToolKind::Edit, json!({"z": 1}))
        .failed(error(ErrorKind::Network));
    let claude = runs_calls_after_answer(script);
    let request = request(&[&claude]);
    let continuation = request.retry.side_effects.continuation.clone();
    assert_resumed(&claude, request).await;
    assert_eq!(claude.runs()[1].params.prompt, continuation);
}
