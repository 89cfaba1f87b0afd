//! The stream has the events of the script, and the result is derived from them.

use serde_json::json;
use teamster_core::provider::grammar;
use teamster_core::{
    AgentEvent, AgentRuntime, ChangeKind, CostSource, ErrorCode, ErrorKind, ExecuteParams,
    NoticeLevel, RawJson, RunStatus, ToolKind, Unknown, Usage,
};
use teamster_testkit::mock_runtime::{MockRuntime, Script};

use super::{overloaded, params, play, result, types};

fn used(input: u64, output: u64) -> Usage {
    Usage::default().input_tokens(input).output_tokens(output)
}

#[tokio::test]
async fn a_complete_run() {
    let events = play(
        Script::new()
            .session("s1")
            .thinking("Hm.")
            .text_in("m1", "I shall ")
            .text_in("m1", "look.")
            .tool_use("Bash", "t1", ToolKind::Execute, json!({"command": "ls"}))
            .tool_result("t1", "a.txt")
            .mcp_tool_use("db", "query", "t2", json!({}))
            .tool_error("t2", "no such table")
            .tool_use("Write", "t3", ToolKind::Edit, json!({}))
            .permission_denied("Write", "t3", "read only")
            .file_change("a.txt", ChangeKind::Update)
            .usage(used(1, 2))
            .usage(used(10, 20))
            .retry(1, overloaded())
            .rate_limit("allowed_warning", Some(5))
            .notice(NoticeLevel::Info, "hello")
            .text_in("m2", "half")
            .retract("m2")
            .text_in("m3", "Done.")
            .model("opus")
            .cost_usd(0.25)
            .num_turns(3)
            .stop_reason("end_turn")
            .structured_output(json!({"ok": true}))
            .completed(),
    )
    .await;
    assert_eq!(grammar::check(&events), Ok(()));
    assert_eq!(
        types(&events).join(" "),
        "session thinking text text tool_use tool_result tool_use tool_result tool_use permission \
         file_change usage usage retry rate_limit notice text retract text done"
    );
    let wire = |index: usize| serde_json::to_value(&events[index]).unwrap();
    assert_eq!(
        wire(0),
        json!({"type": "session", "sessionId": "s1", "model": "opus"})
    );
    assert_eq!(
        wire(6),
        json!({"type": "tool_use", "toolName": "mcp__db__query", "toolId": "t2", "input": {},
               "kind": "mcp", "mcp": {"server": "db", "tool": "query"}})
    );
    assert_eq!(
        wire(7),
        json!({"type": "tool_result", "toolId": "t2", "output": "no such table", "isError": true})
    );
    let done = result(&events);
    assert_eq!(done.status, RunStatus::Completed);
    assert_eq!(done.text, "I shall look.Done.");
    assert_eq!(done.final_message.as_deref(), Some("Done."));
    assert_eq!(done.session_id.as_deref(), Some("s1"));
    assert_eq!(done.model.as_deref(), Some("opus"));
    assert_eq!(done.usage, Some(used(10, 20)));
    assert_eq!(done.total_cost_usd, Some(0.25));
    assert_eq!(done.cost_source, Some(CostSource::Reported));
    assert_eq!(done.num_turns, Some(3));
    assert_eq!(done.stop_reason.as_deref(), Some("end_turn"));
    assert_eq!(done.structured_output, Some(json!({"ok": true})));
    assert_eq!(done.open_tool_ids, ["t3".into()]);
    assert_eq!(done.permission_denials.len(), 1);
    assert_eq!(done.permission_denials[0].tool_id.as_deref(), Some("t3"));
    assert_eq!(done.errors, []);
    assert_eq!(done.exit_code, Some(0));
    assert!(!done.aborted);
}

#[tokio::test]
async fn every_ending() {
    let error = overloaded();
    let script = Script::new().text("so far").cost_usd(0.5);

    let events = play(script.clone().failed(error.clone())).await;
    assert_eq!(types(&events), ["text", "error", "done"]);
    let failed = result(&events);
    assert_eq!(failed.status, RunStatus::Failed);
    assert_eq!(failed.errors, std::slice::from_ref(&error));
    assert_eq!(failed.text, "so far");
    assert_eq!(failed.total_cost_usd, Some(0.5));

    let events = play(script.clone().timed_out(error.clone())).await;
    assert_eq!(types(&events), ["text", "error", "done"]);
    assert_eq!(result(&events).status, RunStatus::TimedOut);
    assert_eq!(result(&events).errors, std::slice::from_ref(&error));
    assert_eq!(result(&events).exit_signal.as_deref(), Some("SIGTERM"));

    // The same after an intermediate error.
    let events = play(script.clone().error(error.clone()).incomplete()).await;
    assert_eq!(types(&events), ["text", "error", "error", "done"]);
    let incomplete = result(&events);
    assert_eq!(incomplete.status, RunStatus::Incomplete);
    assert_eq!(incomplete.errors[1].code, ErrorCode::StreamEndedEarly);
    assert_eq!(incomplete.errors[1].kind, ErrorKind::Protocol);

    let events = play(script.clone().error(error.clone()).completed()).await;
    assert_eq!(types(&events), ["text", "error", "done"]);
    assert_eq!(result(&events).status, RunStatus::Completed);
    assert_eq!(result(&events).errors, [error]);

    let events = play(script.clone().breaks_off()).await;
    assert_eq!(types(&events), ["text"]);

    // The last of two endings applies.
    let events = play(script.failed(overloaded()).completed()).await;
    assert_eq!(types(&events), ["text", "done"]);
}

#[tokio::test]
async fn the_result_can_be_adjusted() {
    let script = Script::new()
        .failed(overloaded())
        .adjust(|result| result.stderr = Some("boo".into()))
        .adjust(|result| result.stderr = result.stderr.take().map(|text| text + "!"));
    let events = play(script).await;
    assert_eq!(result(&events).stderr.as_deref(), Some("boo!"));
    assert_eq!(result(&events).status, RunStatus::Failed);
}

#[tokio::test]
async fn events_that_break_the_grammar_are_reported() {
    let done = AgentEvent::Done(teamster_core::Done::new(Box::default()));
    let tool = |script: Script| script.tool_use("Read", "t1", ToolKind::Read, json!({}));
    for (script, name, why) in [
        (Script::new().event(done), "done", "completed"),
        (Script::new().tool_result("t9", ""), "tool_result", "open"),
        (
            tool(tool(Script::new())).tool_result("t1", ""),
            "tool_use",
            "used before",
        ),
    ] {
        let events = play(script).await;
        assert_eq!(grammar::check(&events), Ok(()), "{name}");
        let at = types(&events).iter().position(|t| *t == "unknown").unwrap();
        let AgentEvent::Notice(notice) = &events[at + 1] else {
            panic!("{name}: {events:?}");
        };
        assert_eq!(notice.level, NoticeLevel::Warning);
        assert!(
            notice.message.contains(name) && notice.message.contains(why),
            "{}",
            notice.message
        );
        assert_eq!(result(&events).diagnostics.unknown, 1);
    }
}

#[tokio::test]
async fn native_lines_come_if_requested() {
    let raw = |text: &str| RawJson::new(text.into()).unwrap();
    let unknown = AgentEvent::Unknown(Unknown::new(raw(r#"{"new":1}"#)));
    let script = Script::new().text("a").event(unknown);
    for (asked, of_text) in [(false, None), (true, Some(r#"{"type":"text","text":"a"}"#))] {
        let mut params = ExecuteParams::new("x");
        params.include_native = asked;
        let mock = MockRuntime::new("claude").run(script.clone());
        let mut stream = mock.execute(params);
        let mut entries = Vec::new();
        while let Some(entry) = stream.next_entry().await {
            entries.push(entry);
        }
        let native: Vec<_> = entries
            .iter()
            .map(|entry| entry.native().map(RawJson::get))
            .collect();
        assert_eq!(native, [of_text, Some(r#"{"new":1}"#), None]);
        let numbers: Vec<_> = entries.iter().map(|entry| entry.seq).collect();
        assert_eq!(numbers, [1, 2, 3]);
        assert!(entries.iter().all(|entry| entry.at_ms > 0));
        let events: Vec<_> = entries.into_iter().map(|entry| entry.event).collect();
        assert_eq!(result(&events).diagnostics.unknown, 1);
    }
}

#[test]
fn a_script_without_delays_needs_no_tokio() {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    let mock = MockRuntime::new("claude").run(Script::new().text("a"));
    let mut result = pin!(mock.execute(params()).result());
    let Poll::Ready(result) = result
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()))
    else {
        panic!("it waits for something");
    };
    assert_eq!(result.text, "a");
}
