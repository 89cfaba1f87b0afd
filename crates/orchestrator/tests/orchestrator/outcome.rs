//! Tests of outcomes over all attempts of a run.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::json;
use teamster_core::sync::lock;
use teamster_core::{
    AgentEvent, ErrorKind, NoticeLevel, NoticeSource, RunLogEntry, RunStatus, ToolKind, Usage,
    WorkspaceKind, WorkspaceResult,
};
use teamster_orchestrator::{Closed, Outcome, RunObserver};
use teamster_testkit::mock_runtime::Script;

use crate::common::*;

fn usage(input: u64, output: Option<u64>) -> Usage {
    Usage::default().input_tokens(input).output_tokens(output)
}

#[tokio::test(start_paused = true)]
async fn figures_are_summed_and_messages_are_those_that_stand() {
    let claude = mock(
        "claude",
        [
            // This text is discarded, because the prompt is sent again.
            Script::new()
                .session("a")
                .model("m1")
                .text("draft")
                .usage(usage(1, None))
                .usage(usage(10, None))
                .cost_usd(0.25)
                .delay(secs(2))
                .failed(error(ErrorKind::Network)),
            // This text is kept, because the session is resumed.
            Script::new()
                .session("b")
                .model("m2")
                .text("first")
                .tool_use("Edit", "t", ToolKind::Edit, json!({}))
                .tool_result("t", "")
                .text("half")
                .usage(usage(5, Some(7)))
                .num_turns(2)
                .failed(error(ErrorKind::Overloaded)),
            Script::new()
                .session("b")
                .text("last")
                .result_usage(usage(100, Some(1)))
                .cost_usd(0.5)
                .num_turns(3)
                .structured_output(json!({"ok": true}))
                .delay(ms(500)),
        ],
    );
    let mut request = request(&[&claude]);
    request.candidates[0].params.model = Some("alias".into());
    let events = events(orchestrator().start(request)).await;
    let done = outcome(&events);
    assert_eq!(messages(&events), ["first", "half", "last"]);
    assert_eq!(done.answer(), Some("last"));
    assert_eq!(done.result.usage, Some(usage(115, Some(8))));
    assert_eq!(done.result.total_cost_usd, Some(0.75));
    assert_eq!(done.result.num_turns, Some(5));
    assert_eq!(done.session_id.as_deref(), Some("b"));
    assert_eq!(done.model.as_deref(), Some("alias"));
    assert_eq!(done.duration_ms, 2000 + 1000 + 2000 + 500);
    assert_eq!(done.result.structured_output, Some(json!({"ok": true})));
    let log = &done.attempts;
    assert_eq!(log.len(), 3);
    let durations: Vec<_> = log.iter().map(|attempt| attempt.duration_ms).collect();
    assert_eq!(durations, [2000, 0, 500]);
    let models: Vec<_> = log.iter().map(|attempt| attempt.model.as_deref()).collect();
    assert_eq!(models, [Some("m1"), Some("m2"), Some("alias")]);
    assert_eq!(log[0].usage, Some(usage(10, None)));
    assert_eq!(log[1].cost_usd, None);
    assert_eq!(log[1].error.as_ref().unwrap().kind, ErrorKind::Overloaded);
    assert!(log[2].error.is_none() && log[2].resumed);
}

#[tokio::test(start_paused = true)]
async fn a_failed_run_keeps_its_text() {
    let claude = mock(
        "claude",
        [Script::new()
            .session("a")
            .text("as far as I got")
            .structured_output(json!({"half": 1}))
            .usage(usage(3, None))
            .failed(error(ErrorKind::Invalid))],
    );
    let events = events(orchestrator().start(request(&[&claude]))).await;
    assert_eq!(
        briefs(&events),
        [
            "start claude",
            "chunk as far as I got",
            "message as far as I got",
            "error Invalid",
            "end error"
        ]
    );
    let done = outcome(&events);
    assert_eq!(done.result.status, RunStatus::Failed);
    assert_eq!(done.answer(), Some("as far as I got"));
    assert_eq!(done.result.usage, Some(usage(3, None)));
    assert_eq!(done.result.structured_output, Some(json!({"half": 1})));
    let end = wire(events.last().unwrap());
    assert_eq!(end["result"].get("structuredOutput"), None);
}

#[tokio::test(start_paused = true)]
async fn a_withdrawal_holds_without_a_successor() {
    let claude = mock(
        "claude",
        [Script::new()
            .text_in("m", "draft")
            .text_in("n", "too")
            .failed(error(ErrorKind::Network))],
    );
    let run = orchestrator().start(request(&[&claude]));
    claude.wait_for_runs(1).await;
    settle().await;
    run.abort();
    let events = events(run).await;
    assert_eq!(briefs(&events).last().unwrap(), "end aborted");
    assert_eq!(outcome(&events).result.messages(), []);
}

#[tokio::test(start_paused = true)]
async fn a_run_with_only_denials_is_an_error_that_names_them() {
    let claude = mock(
        "claude",
        [Script::new()
            .tool_use("Bash", "t", ToolKind::Execute, json!({}))
            .permission_denied("Bash", "t", "no")
            .completed()],
    );
    let events = events(orchestrator().start(request(&[&claude]))).await;
    let error = outcome(&events).error.unwrap();
    assert_eq!(error.kind, ErrorKind::Permission);
    assert_eq!(error.message, "nothing was done; denied tools: Bash");
}

#[tokio::test(start_paused = true)]
async fn a_session_that_was_given_is_there_to_go_on_with() {
    let claude = mock("claude", [fails(ErrorKind::Auth)]);
    let mut request = request(&[&claude]);
    request.candidates[0].params.session_id = Some("old".into());
    let done = orchestrator().start(request).outcome().await;
    assert_eq!(done.session_id.as_deref(), Some("old"));
}

#[tokio::test(start_paused = true)]
async fn events_closed_at_the_end_are_in_every_result() {
    let observer = Arc::new(Seen::default());
    for script in [
        Script::new().text("yes"),
        Script::new().failed(error(ErrorKind::Auth)),
    ] {
        let claude = mock("claude", [script]);
        let mut request = request(&[&claude]);
        request.observer = Some(observer.clone());
        let calls = Arc::new(AtomicU32::new(0));
        let called = calls.clone();
        request.closing = Some(Arc::new(move || {
            called.fetch_add(1, Ordering::Relaxed);
            Box::pin(async {
                tokio::time::sleep(secs(5)).await;
                let notice = AgentEvent::notice(NoticeLevel::Info, NoticeSource::Runtime, "kept");
                Closed::new(Some(workspace()), vec![notice])
            })
        }));
        let mut log = orchestrator().start_log(request);
        let mut names = Vec::new();
        let mut result = None;
        while let Some(entry) = log.next().await {
            match entry {
                RunLogEntry::Agent(entry) => {
                    names.push(entry.event.type_name().to_owned());
                    if let AgentEvent::Done(done) = entry.event {
                        result = Some(done.result);
                    }
                }
                RunLogEntry::Run(entry) => names.push(entry.event.type_name().to_owned()),
                _ => {}
            }
        }
        assert_eq!(names[names.len() - 2..], ["notice", "done"], "{names:?}");
        assert_eq!(result.unwrap().workspace, Some(workspace()));
        assert_eq!(calls.load(Ordering::Relaxed), 1);
    }
    let seen = lock(&observer.0);
    assert_eq!(*seen, [Some(workspace()), Some(workspace())]);
}

#[tokio::test(start_paused = true)]
async fn a_panic_at_the_end_ends_the_run_all_the_same() {
    let claude = mock("claude", [Script::new().text("yes")]);
    let mut request = request(&[&claude]);
    request.closing = Some(Arc::new(|| Box::pin(async { panic!("of the test") })));
    let done = orchestrator().start(request).outcome().await;
    assert_eq!(
        (done.answer(), &done.result.workspace),
        (Some("yes"), &None)
    );
}

fn workspace() -> WorkspaceResult {
    WorkspaceResult::new(WorkspaceKind::Worktree, "base")
}

/// The workspaces of the runs that have ended.
#[derive(Default)]
struct Seen(Mutex<Vec<Option<WorkspaceResult>>>);

#[async_trait::async_trait]
impl RunObserver for Seen {
    async fn ended(&self, outcome: &Outcome) {
        lock(&self.0).push(outcome.result.workspace.clone());
    }
}
