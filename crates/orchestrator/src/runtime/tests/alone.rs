//! Tests that a run with one attempt has the same stream as without an orchestrator.

use serde_json::json;
use teamster_core::{
    AgentRuntime, ChangeKind, Decision, FileChange, NoticeLevel, PermissionEvent, Plan, PlanEntry,
    PlanStatus, RawJson, Text, Thinking, ToolKind, ToolResult, ToolUse, TurnEnd, Unknown, Usage,
};

use super::*;

/// Returns a script with every type of event, with all ids that they can have.
fn everything() -> Script {
    let used = |tokens| Usage::default().input_tokens(tokens);
    let text = |id: &str, parent: Option<&str>| {
        Text::new(format!("text of {id} "))
            .message_id(id)
            .parent_tool_id(parent.map(Into::into))
    };
    Script::new()
        .session("s")
        .model("big")
        .event(text("m1", None))
        .retract("m1")
        .event(text("m1", None))
        .event(Thinking::new("hm").message_id("m2"))
        .tool_use("Task", "t1", ToolKind::Task, json!({"a": 1}))
        .event(text("m3", Some("t1")))
        .event(ToolUse::new("Edit", "t2", ToolKind::Edit, json!({})).parent_tool_id("t1"))
        .event(FileChange::new("a", ChangeKind::Update).tool_id("t2"))
        .event(ToolResult::new("t2", "ok").parent_tool_id("t1"))
        .event(Plan::new(vec![PlanEntry::new("go", PlanStatus::Pending)]))
        .permission_denied("Bash", "t3", "no")
        .event(PermissionEvent::new("Bash", Decision::Allowed).tool_id("t4"))
        .usage(used(7))
        .retry(1, error(ErrorKind::Overloaded))
        .rate_limit("allowed_warning", Some(5))
        .notice(NoticeLevel::Info, "so it is")
        .event(Unknown::new(RawJson::new(r#"{"new": 1}"#.into()).unwrap()))
        .error(error(ErrorKind::Mcp))
        .event(text("m4", None))
        .error(error(ErrorKind::Internal))
        .event(
            TurnEnd::new(false)
                .stop_reason("end")
                .usage(used(8))
                .cost_usd(0.25),
        )
        .cost_usd(0.3)
        .num_turns(2)
        .stop_reason("end")
        .structured_output(json!({"x": [1]}))
        .adjust(|result| {
            result.stderr = Some("warning".into());
            result.session_usage = Some(Usage::default());
        })
}

async fn same(script: Script, change: impl Fn(&mut RunRequest)) -> Vec<AgentEvent> {
    let params = || {
        let mut params = ExecuteParams::new("do it");
        params.include_native = true;
        params
    };
    let alone = mock("claude", [script.clone()]).execute(params());
    let mut request = RunRequest::new(mock("claude", [script]), params());
    change(&mut request);
    let orchestrated = all(orchestrator().execute(request)).await;
    assert_eq!(json(&orchestrated), json(&all(alone).await));
    orchestrated
}

#[tokio::test(start_paused = true)]
async fn every_type_of_event_comes_as_it_is() {
    let events = same(everything(), |_| {}).await;
    let mut types: Vec<_> = events.iter().map(AgentEvent::type_name).collect();
    types.sort_unstable();
    types.dedup();
    assert_eq!(types.len(), 17, "{types:?}");
    assert_eq!(result(&events).open_tool_ids, ["t1".into()]);
}

#[tokio::test(start_paused = true)]
async fn however_it_ends() {
    for script in [
        everything().failed(error(ErrorKind::Invalid)),
        everything().timed_out(error(ErrorKind::Permission)),
        everything()
            .delay(seconds(3))
            .failed(error(ErrorKind::Budget)),
        Script::new().permission_denied("Bash", "t", "no"),
        Script::new().failed(error(ErrorKind::Auth)),
    ] {
        same(script, |_| {}).await;
    }
}

#[tokio::test(start_paused = true)]
async fn text_without_a_message_gets_none_where_nothing_can_follow() {
    let script = || Script::new().text("a").failed(error(ErrorKind::RateLimit));
    let events = same(script(), |request| {
        request.retry.retries = 0;
        request.retry.max_wait = Duration::ZERO;
    })
    .await;
    assert_eq!(short(&events)[0], "text - a");

    let mut waits = request(&mock("claude", [script()]));
    waits.retry.retries = 0;
    let events = all(orchestrator().execute(waits)).await;
    assert_eq!(short(&events)[0], "text attempt-1 a");
}

#[tokio::test(start_paused = true)]
async fn a_stop_is_that_of_the_runtime() {
    let script = || Script::new().text_in("m", "a").wait_for_abort();
    let mut streams = [
        mock("claude", [script()]).execute(ExecuteParams::new("do it")),
        orchestrator().execute(request(&mock("claude", [script()]))),
    ];
    let mut ends = Vec::new();
    for stream in &mut streams {
        let mut events = vec![stream.next().await.unwrap()];
        stream.abort();
        while let Some(event) = stream.next().await {
            events.push(event);
        }
        ends.push(json(&events));
    }
    assert_eq!(ends[0], ends[1]);
}

#[tokio::test(start_paused = true)]
async fn its_duration_is_that_of_the_attempt_and_not_of_the_queue() {
    let mut config = OrchestratorConfig::default();
    config.limits.overall = Some(1);
    let orchestrator = Orchestrator::new(config).unwrap();
    let script = || Script::new().delay(seconds(2));
    let claude = mock("claude", [script(), script()]);
    let run = || orchestrator.execute(request(&claude)).result();
    let begun = tokio::time::Instant::now();
    let (one, two) = tokio::join!(run(), run());
    assert_eq!((one.duration_ms, two.duration_ms), (2000, 2000));
    assert_eq!(begun.elapsed(), seconds(4));
}
