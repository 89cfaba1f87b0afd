//! Hand-made lines, in the shapes that were measured, for what no recorded run shows alone.

use proptest::prelude::*;
use serde_json::{Value, json};
use teamster_core::{
    AgentEvent, Decoder, ErrorKind, Events, Exit, PlanStatus, RunAssembler, RunResult, RunStatus,
    grammar,
};

use super::ClaudeDecoder;
use super::fast::{self, FastDelta};
use super::wire::StreamLine;

const SESSION: &str = "4e7c1419-faa6-4b9e-a712-01520d2026c2";
const UUID: &str = "ad2e5fef-3f54-4bd7-8082-516ca8c0beb7";

fn init() -> String {
    json!({"type": "system", "subtype": "init", "session_id": SESSION, "model": "m",
           "tools": [], "mcp_servers": [{"name": "a__b", "status": "connected"}]})
    .to_string()
}

fn stream(event: &Value) -> String {
    json!({"type": "stream_event", "event": event, "session_id": SESSION,
           "parent_tool_use_id": null, "uuid": UUID})
    .to_string()
}

fn start(id: &str) -> String {
    stream(&json!({"type": "message_start", "message": {"id": id}}))
}

fn block(index: u64, kind: &str) -> String {
    stream(
        &json!({"type": "content_block_start", "index": index, "content_block": {"type": kind, "text": ""}}),
    )
}

/// As the CLI prints it, so that it takes the fast way.
fn delta(index: u64, json_text: &str) -> String {
    format!(
        r#"{{"type":"stream_event","event":{{"type":"content_block_delta","index":{index},"delta":{{"type":"text_delta","text":"{json_text}"}}}},"session_id":"{SESSION}","parent_tool_use_id":null,"uuid":"{UUID}"}}"#
    )
}

fn whole(id: &str, content: &Value) -> String {
    json!({"type": "assistant", "message": {"id": id, "model": "m", "content": [content]},
           "parent_tool_use_id": null, "session_id": SESSION})
    .to_string()
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn user(content: &Value) -> String {
    json!({"type": "user", "message": {"role": "user", "content": content},
           "parent_tool_use_id": null, "session_id": SESSION})
    .to_string()
}

fn end(fields: &Value) -> String {
    let mut line = json!({"type": "result", "subtype": "success", "is_error": false,
        "result": "", "num_turns": 1, "total_cost_usd": 0.5, "session_id": SESSION});
    for (name, value) in fields.as_object().unwrap() {
        line[name] = value.clone();
    }
    line.to_string()
}

fn run(lines: &[String]) -> (Vec<AgentEvent>, RunResult) {
    let mut assembler = RunAssembler::new(Box::new(ClaudeDecoder::new()), false);
    let mut out = Events::new();
    for line in lines {
        assembler.line(line.as_bytes(), &mut out);
    }
    let exit = Exit {
        code: Some(0),
        ..Exit::default()
    };
    assembler.finish(exit, 0, &mut out);
    let events: Vec<_> = out.drain().collect();
    grammar::check(&events).unwrap();
    let Some(AgentEvent::Done(done)) = events.last() else {
        panic!("no done");
    };
    let result = (*done.result).clone();
    (events, result)
}

fn names(events: &[AgentEvent]) -> Vec<&'static str> {
    events.iter().map(AgentEvent::type_name).collect()
}

#[test]
fn a_whole_block_adds_what_its_deltas_lacked() {
    let (events, result) = run(&[
        init(),
        start("a"),
        block(0, "text"),
        delta(0, "one "),
        whole("a", &text("one two")),
        delta(0, "two"),
        end(&json!({"result": "one two"})),
    ]);
    assert_eq!(
        names(&events),
        ["session", "text", "text", "turn_end", "done"]
    );
    assert_eq!(result.text, "one two");
}

#[test]
fn a_whole_block_that_differs_from_its_deltas_wins() {
    let (events, result) = run(&[
        init(),
        start("a"),
        block(0, "text"),
        delta(0, "first "),
        whole("a", &text("first ")),
        block(1, "text"),
        delta(1, "wrong"),
        whole("a", &text("right")),
        end(&json!({})),
    ]);
    assert_eq!(
        names(&events),
        [
            "session", "text", "text", "retract", "text", "turn_end", "done"
        ]
    );
    assert_eq!(result.text, "first right");
}

#[test]
fn streamed_and_whole_messages_mix() {
    let (_, result) = run(&[
        init(),
        whole("a", &text("whole. ")),
        start("b"),
        block(0, "text"),
        delta(0, "streamed. "),
        whole("b", &text("streamed. ")),
        stream(&json!({"type": "message_stop"})),
        whole("c", &text("again whole.")),
        whole("c", &text(" And more.")),
        end(&json!({"result": "again whole. And more."})),
    ]);
    assert_eq!(result.text, "whole. streamed. again whole. And more.");
    assert_eq!(
        result.final_message.as_deref(),
        Some("again whole. And more.")
    );
}

#[test]
fn a_block_of_white_space_has_no_whole_copy() {
    let (_, result) = run(&[
        init(),
        start("a"),
        block(0, "text"),
        delta(0, " "),
        block(1, "text"),
        delta(1, " hello"),
        whole("a", &text(" hello")),
        end(&json!({"result": " hello"})),
    ]);
    assert_eq!(result.text, "  hello");
}

#[test]
fn a_message_that_broke_off_is_retracted_when_another_takes_its_place() {
    for next in [whole("b", &text("new")), start("b")] {
        let (events, _) = run(&[init(), start("a"), block(0, "text"), delta(0, "old"), next]);
        assert_eq!(names(&events)[..3], ["session", "text", "retract"]);
    }
    // It was used: a part of it is whole.
    let (events, result) = run(&[
        init(),
        start("a"),
        block(0, "text"),
        delta(0, "kept"),
        whole("a", &text("kept")),
        block(1, "text"),
        delta(1, " half"),
        start("b"),
    ]);
    assert!(!names(&events).contains(&"retract"));
    assert_eq!(result.text, "kept half");
}

#[test]
fn halves_of_a_surrogate_pair_meet() {
    let (events, result) = run(&[
        init(),
        start("a"),
        block(0, "text"),
        delta(0, r"hi \ud83d"),
        delta(0, r"\ude00 end"),
        whole("a", &text("hi \u{1F600} end")),
        end(&json!({"result": "hi \u{1F600} end"})),
    ]);
    assert_eq!(result.text, "hi \u{1F600} end");
    assert_eq!(result.diagnostics.malformed, 0);
    assert!(!names(&events).contains(&"retract"));
}

#[test]
fn a_lone_surrogate_costs_no_line() {
    let tool = r#"{"type":"assistant","message":{"id":"a","model":"m","content":[{"type":"tool_use","id":"t","name":"Bash","input":{"command":"echo \ud83d"}}]},"parent_tool_use_id":null,"session_id":"x"}"#;
    let (events, result) = run(&[init(), tool.to_owned(), end(&json!({}))]);
    let Some(AgentEvent::ToolUse(tool)) =
        events.iter().find(|e| matches!(e, AgentEvent::ToolUse(_)))
    else {
        panic!("no tool use: {events:?}");
    };
    assert_eq!(tool.input["command"], "echo \u{FFFD}");
    assert_eq!(result.diagnostics.malformed, 0);
}

#[test]
fn tools_of_sub_agents_carry_their_parent() {
    let call = |id: &str, parent: Value| {
        json!({"type": "assistant", "message": {"id": id, "content": [
            {"type": "tool_use", "id": id, "name": "Bash", "input": {}}]},
            "parent_tool_use_id": parent, "session_id": SESSION})
        .to_string()
    };
    let (events, result) = run(&[
        init(),
        call("t1", Value::Null),
        call("t2", json!("t1")),
        call("t3", json!("t2")),
        end(&json!({})),
    ]);
    let parents: Vec<_> = events
        .iter()
        .filter_map(|e| match e {
            AgentEvent::ToolUse(t) => Some(t.parent_tool_id.as_deref().map(str::to_owned)),
            _ => None,
        })
        .collect();
    assert_eq!(parents, [None, Some("t1".into()), Some("t2".into())]);
    assert_eq!(result.open_tool_ids.len(), 3);
}

#[test]
fn the_names_of_mcp_tools_are_taken_apart_and_to_do_lists_are_plans() {
    let (events, _) = run(&[
        init(),
        whole(
            "a",
            &json!({"type": "tool_use", "id": "1", "name": "mcp__a__b__c", "input": {}}),
        ),
        whole(
            "a",
            &json!({"type": "tool_use", "id": "2", "name": "TodoWrite",
            "input": {"todos": [{"content": "x", "status": "in_progress", "activeForm": "x"}]}}),
        ),
    ]);
    let AgentEvent::ToolUse(tool) = &events[1] else {
        panic!("{events:?}")
    };
    let mcp = tool.mcp.as_ref().unwrap();
    assert_eq!((mcp.server.as_str(), mcp.tool.as_str()), ("a__b", "c"));
    let AgentEvent::Plan(plan) = &events[3] else {
        panic!("{events:?}")
    };
    assert_eq!(plan.entries[0].status, PlanStatus::InProgress);
}

#[test]
fn an_error_that_was_overcome_is_a_notice_and_a_slash_command_answers_with_text() {
    let synthetic = |error: Value| {
        json!({"type": "assistant", "message": {"id": "s", "model": "<synthetic>",
            "content": [{"type": "text", "text": "said"}]}, "error": error, "session_id": SESSION})
        .to_string()
    };
    let (events, result) = run(&[
        init(),
        synthetic(json!("server_error")),
        start("b"),
        end(&json!({"result": "ok"})),
    ]);
    assert_eq!(
        names(&events),
        ["session", "notice", "text", "turn_end", "done"]
    );
    assert_eq!(result.status, RunStatus::Completed);

    let (_, result) = run(&[
        init(),
        synthetic(Value::Null),
        end(&json!({"result": "said"})),
    ]);
    assert_eq!(result.text, "said");

    let (_, result) = run(&[
        init(),
        synthetic(json!("rate_limit")),
        end(&json!({"is_error": true, "result": "said", "api_error_status": 429})),
    ]);
    assert_eq!((result.text.as_str(), result.errors.len()), ("", 1));
    assert_eq!(result.errors[0].kind, ErrorKind::RateLimit);
}

#[test]
fn a_limit_of_the_account_is_a_quota_with_its_reset() {
    let limit = json!({"type": "rate_limit_event", "rate_limit_info": {"status": "rejected",
        "resetsAt": 1_800_000_000, "rateLimitType": "five_hour", "utilization": 1.0}});
    let (events, result) = run(&[
        init(),
        limit.to_string(),
        end(&json!({"is_error": true, "result": "You've hit your limit", "api_error_status": 429})),
    ]);
    assert_eq!(
        names(&events),
        ["session", "rate_limit", "error", "turn_end", "done"]
    );
    assert_eq!(result.errors[0].kind, ErrorKind::Quota);
    assert_eq!(result.errors[0].resets_at, Some(1_800_000_000_000));
    assert!(!result.errors[0].retryable);
}

#[test]
fn several_results_make_one_run() {
    let used = |tokens: u64| json!({"m": {"inputTokens": tokens, "outputTokens": 1}});
    let (events, result) = run(&[
        init(),
        end(
            &json!({"result": "one", "modelUsage": used(10), "total_cost_usd": 1.0, "num_turns": 2}),
        ),
        init(),
        end(&json!({"result": "two", "modelUsage": used(30), "total_cost_usd": 1.5})),
    ]);
    let turns: Vec<_> = events
        .iter()
        .filter_map(|e| match e {
            AgentEvent::TurnEnd(t) => Some((t.usage.unwrap().input_tokens, t.cost_usd)),
            _ => None,
        })
        .collect();
    assert_eq!(turns, [(Some(10), Some(1.0)), (Some(20), Some(0.5))]);
    assert_eq!(result.text, "onetwo");
    assert_eq!(result.final_message.as_deref(), Some("two"));
    assert_eq!(result.usage.unwrap().input_tokens, Some(30));
    assert_eq!(result.total_cost_usd, Some(1.5));
    assert_eq!(result.num_turns, Some(3));
}

#[test]
fn figures_of_a_run_without_an_end_come_from_its_messages() {
    let (events, result) = run(&[
        init(),
        stream(&json!({"type": "message_start", "message": {"id": "a",
            "usage": {"input_tokens": 7, "cache_read_input_tokens": 2, "output_tokens": 1}}})),
        stream(
            &json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"},
            "usage": {"output_tokens": 5}}),
        ),
        start("b"),
    ]);
    assert_eq!(names(&events)[1], "usage");
    let usage = result.usage.unwrap();
    assert_eq!(
        (
            usage.input_tokens,
            usage.output_tokens,
            usage.cache_read_tokens
        ),
        (Some(7), Some(5), Some(2))
    );
    assert_eq!(usage.cache_write_tokens, None);
    assert_eq!(result.status, RunStatus::Incomplete);
}

#[test]
fn work_in_the_background_is_waited_for() {
    let mut decoder = ClaudeDecoder::new();
    let mut out = Events::new();
    let mut line = |line: Value| {
        decoder.line(line.to_string().as_bytes(), &mut out);
        decoder.expects_more()
    };
    let done = json!({"type": "result", "is_error": false});
    assert!(!line(done.clone()));
    assert!(line(
        json!({"type": "system", "subtype": "task_started", "task_id": "t"})
    ));
    assert!(line(done.clone()));
    let report = |status: &str| json!({"type": "system", "subtype": "task_notification", "task_id": "t", "status": status});
    // The model is told in a turn of its own.
    assert!(line(report("completed")));
    assert!(!line(done.clone()));
    assert!(line(
        json!({"type": "system", "subtype": "task_started", "task_id": "t"})
    ));
    assert!(!line(report("stopped")));
}

#[test]
fn compaction_hooks_and_denials_are_told() {
    let (events, result) = run(&[
        init(),
        json!({"type": "system", "subtype": "status", "status": "compacting"}).to_string(),
        json!({"type": "system", "subtype": "compact_boundary",
            "compact_metadata": {"trigger": "auto", "pre_tokens": 9}})
        .to_string(),
        json!({"type": "system", "subtype": "permission_denied", "tool_name": "Bash",
            "tool_use_id": "t", "message": "no"})
        .to_string(),
        end(&json!({"permission_denials": [{"tool_name": "Bash", "tool_use_id": "t"}]})),
    ]);
    assert_eq!(
        names(&events),
        [
            "session",
            "notice",
            "notice",
            "permission",
            "turn_end",
            "done"
        ]
    );
    assert_eq!(result.permission_denials[0].reason.as_deref(), Some("no"));
    // Nothing was said, and all that happened was a denial.
    assert_eq!(result.status, RunStatus::Incomplete);
}

#[test]
fn what_is_new_is_unknown_and_never_dropped() {
    let new = [
        r#"{"type":"brand_new","x":1}"#.to_owned(),
        r#"{"type":"system","subtype":"brand_new"}"#.to_owned(),
        r#"{"no":"type"}"#.to_owned(),
        stream(&json!({"type": "brand_new"})),
        whole("a", &json!({"type": "brand_new"})),
    ];
    for line in new {
        let (events, result) = run(std::slice::from_ref(&line));
        let Some(AgentEvent::Unknown(unknown)) =
            events.iter().find(|e| matches!(e, AgentEvent::Unknown(_)))
        else {
            panic!("{line} was dropped: {events:?}");
        };
        assert_eq!(unknown.native.get(), line);
        assert_eq!(result.diagnostics.unknown, 1);
    }
}

#[test]
fn a_user_line_with_results_in_any_order_and_images() {
    let call = |id: &str| {
        whole(
            "a",
            &json!({"type": "tool_use", "id": id, "name": "Read", "input": {}}),
        )
    };
    let (events, _) = run(&[
        init(),
        call("1"),
        call("2"),
        user(
            &json!([{"type": "tool_result", "tool_use_id": "2", "content": [
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}]}]),
        ),
        user(
            &json!([{"type": "tool_result", "tool_use_id": "1", "content": "x", "is_error": true}]),
        ),
    ]);
    let outputs: Vec<_> = events
        .iter()
        .filter_map(|e| match e {
            AgentEvent::ToolResult(t) => Some((&*t.tool_id, t.output.as_str(), t.is_error)),
            _ => None,
        })
        .collect();
    assert_eq!(
        outputs,
        [
            ("2", "[image: image/png, 3 bytes]", None),
            ("1", "x", Some(true))
        ]
    );
}

proptest! {
    /// Whatever the fast way takes, the parser takes too, and reads the same.
    #[test]
    fn the_fast_way_reads_what_the_parser_reads(
        text in ".{0,40}", index in 0u64..2_000_000_000, cut in 0usize..300, byte: u8,
    ) {
        let json_text = serde_json::to_string(&text).unwrap();
        let line = delta(index, &json_text[1..json_text.len() - 1]);
        let mut changed = line.clone().into_bytes();
        let at = cut % changed.len();
        changed[at] = byte;
        for line in [line.as_bytes(), &changed] {
            let Some(FastDelta::Text(index, text)) = fast::delta(line, SESSION) else {
                continue;
            };
            let parsed: StreamLine<'_> = serde_json::from_slice(line).unwrap();
            prop_assert_eq!(parsed.event.index, index);
            let parsed_text = parsed.event.delta.unwrap().text.unwrap();
            prop_assert_eq!(&*parsed_text.0, text.as_bytes());
        }
    }
}
