//! Tests of the updates for log entries.

use serde_json::{Value, json};
use teamster_api::RunLogEntry;

use super::*;

/// Parses wire events into numbered log entries.
fn log(entries: &[Value]) -> Vec<RunLogEntry> {
    let entries = entries.iter().zip(1..);
    entries
        .map(|(event, seq)| {
            let mut line = json!({"seq": seq, "atMs": 1, "attempt": 1});
            let fields = event.as_object().unwrap().clone();
            line.as_object_mut().unwrap().extend(fields);
            serde_json::from_value(line).unwrap()
        })
        .collect()
}

fn shown_in(context: UpdateContext<'_>, entries: &[Value]) -> Vec<Value> {
    let mut view = View::default();
    let mut updates = Vec::new();
    for entry in log(entries) {
        view.apply(&entry, context, &mut updates);
    }
    updates.iter().map(|update| json!(update)).collect()
}

fn shown(entries: &[Value]) -> Vec<Value> {
    shown_in(UpdateContext::default(), entries)
}

fn text(id: &str, text: &str) -> Value {
    json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}, "messageId": id})
}

#[test]
fn pieces_of_a_message_have_one_id() {
    assert_eq!(
        shown(&[
            json!({"type": "text", "text": "a"}),
            json!({"type": "text", "text": "b"}),
            json!({"type": "thinking", "text": "hm"}),
            json!({"type": "text", "text": "c"}),
            json!({"type": "text", "text": "d", "messageId": "own"}),
        ]),
        [
            text("m1", "a"),
            text("m1", "b"),
            json!({"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": "hm"}, "messageId": "t2"}),
            text("m3", "c"),
            text("own", "d"),
        ]
    );
}

#[test]
fn a_tool_call_from_its_begin_to_its_end() {
    let shown = shown(&[
        json!({"type": "tool_use", "toolName": "Bash", "toolId": "t1", "kind": "execute", "input": {"command": "ls"}}),
        json!({"type": "tool_result", "toolId": "t1", "output": "a\n"}),
        json!({"type": "tool_use", "toolName": "X", "toolId": "t2", "kind": "other", "input": {}}),
        json!({"type": "tool_result", "toolId": "t2", "output": "no", "isError": true}),
        json!({"type": "tool_result", "toolId": "unknown", "output": "x"}),
    ]);
    assert_eq!(shown.len(), 4, "{shown:#?}");
    assert_eq!(shown[0]["sessionUpdate"], "tool_call");
    assert_eq!(shown[0]["_meta"], json!({"teamster": {"kind": "execute"}}));
    assert_eq!(shown[1]["sessionUpdate"], "tool_call_update");
    assert_eq!(shown[1]["status"], "completed");
    assert_eq!(shown[1]["rawOutput"], "a\n");
    assert_eq!(shown[3]["status"], "failed");
}

#[test]
fn sub_agent_text_is_in_its_call() {
    let shown = shown(&[
        json!({"type": "tool_use", "toolName": "Task", "toolId": "t1", "kind": "task", "input": {"prompt": "look"}}),
        json!({"type": "text", "text": "I ", "parentToolId": "t1"}),
        json!({"type": "text", "text": "look", "parentToolId": "t1"}),
        json!({"type": "thinking", "text": "hm", "parentToolId": "t1"}),
    ]);
    assert_eq!(shown.len(), 3);
    assert_eq!(shown[2]["toolCallId"], "t1");
    assert_eq!(shown[2]["content"][0]["content"]["text"], "I look");
}

#[test]
fn a_plan_has_all_its_entries() {
    let shown = shown(&[json!({"type": "plan", "entries": [
        {"content": "one", "status": "completed"}, {"content": "two", "status": "in_progress"}]})]);
    assert_eq!(
        shown[0],
        json!({"sessionUpdate": "plan", "entries": [
            {"content": "one", "priority": "medium", "status": "completed"},
            {"content": "two", "priority": "medium", "status": "in_progress"}]})
    );
}

#[test]
fn first_prompt_is_the_title_and_own_prompts_are_not_repeated() {
    let entries = [
        json!({"type": "user:message", "runId": "s.1", "text": "\nFix it\nnow", "from": "zed"}),
        json!({"type": "user:message", "runId": "s.2", "text": "more", "from": "terminal pts/1"}),
    ];
    let context = UpdateContext {
        own_source: Some("zed"),
        ..UpdateContext::default()
    };
    let title = json!({"sessionUpdate": "session_info_update", "title": "Fix it"});
    let live = shown_in(context, &entries);
    assert_eq!(live[0], title);
    assert_eq!(live[1]["sessionUpdate"], "user_message_chunk");
    assert_eq!(live.len(), 2);
    // A loaded session shows all messages.
    assert_eq!(shown(&entries).len(), 3);
}

#[test]
fn waiting_is_a_notice_or_a_thought() {
    let error =
        json!({"message": "limit", "code": "CLI_ERROR", "kind": "rate_limit", "retryable": true});
    let entries = [
        json!({"type": "run:fallback", "runId": "r", "reason": error, "delayMs": 0,
        "next": {"attempt": 2, "provider": "codex"}}),
    ];
    let thought = &shown(&entries)[0];
    assert_eq!(thought["content"]["text"], "Continuing with codex: limit\n");
    let context = UpdateContext {
        notices: true,
        ..UpdateContext::default()
    };
    let notice = &shown_in(context, &entries)[0];
    assert_eq!(
        (
            &notice["sessionUpdate"],
            &notice["title"],
            &notice["description"]
        ),
        (
            &json!("notice"),
            &json!("Continuing with codex"),
            &json!("limit")
        )
    );
}

#[test]
fn a_warning_is_a_notice_or_a_thought() {
    let long = format!("the MCP server files failed to start: {}", "x".repeat(80));
    let notice = |level: &str, message: &str| json!({"type": "notice", "level": level, "source": "stdout", "message": message});
    let entries = [
        notice("warning", "no login"),
        notice("warning", &long),
        notice("info", "compacting"),
    ];
    let texts: Vec<_> = shown(&entries)
        .iter()
        .map(|it| (it["sessionUpdate"].clone(), it["content"]["text"].clone()))
        .collect();
    let thought = |text: &str| (json!("agent_thought_chunk"), json!(format!("{text}\n")));
    assert_eq!(texts, [thought("no login"), thought(&long)]);
    let context = UpdateContext {
        notices: true,
        ..UpdateContext::default()
    };
    let notices = shown_in(context, &entries);
    assert_eq!(notices.len(), 2);
    assert_eq!(
        (&notices[0]["title"], &notices[0]["description"]),
        (&json!("no login"), &Value::Null)
    );
    assert_eq!(notices[1]["description"], json!(long));
}

#[test]
fn the_context_is_shown_once_its_size_is_known() {
    let usage = |n: u64| json!({"type": "usage", "usage": {"inputTokens": n, "outputTokens": 10}});
    let done = json!({"type": "done", "result": {"status": "completed", "text": "", "durationMs": 1, "aborted": false,
        "diagnostics": {"lines": 0, "malformed": 0, "oversize": 0, "unknown": 0},
        "usageByModel": {"m": {"usage": {}, "contextWindow": 200_000}}, "totalCostUsd": 0.5}});
    let shown = shown(&[usage(100), usage(300), done.clone(), usage(50), done]);
    assert_eq!(
        shown,
        [
            json!({"sessionUpdate": "usage_update", "used": 200, "size": 200_000, "cost": {"amount": 0.5, "currency": "USD"}}),
            json!({"sessionUpdate": "usage_update", "used": 60, "size": 200_000, "cost": {"amount": 0.5, "currency": "USD"}}),
            json!({"sessionUpdate": "usage_update", "used": 60, "size": 200_000, "cost": {"amount": 1.0, "currency": "USD"}}),
        ]
    );
}

#[test]
fn a_retracted_message_is_not_replayed() {
    let entries = log(&[
        json!({"type": "text", "text": "stale", "messageId": "a"}),
        json!({"type": "retract", "messageId": "a"}),
        json!({"type": "text", "text": "good", "messageId": "b"}),
    ]);
    let mut view = View::default();
    view.hide_retracted(&entries);
    let mut updates = Vec::new();
    for entry in &entries {
        view.apply(entry, UpdateContext::default(), &mut updates);
    }
    let texts: Vec<_> = updates
        .iter()
        .map(|it| json!(it)["content"]["text"].clone())
        .collect();
    assert_eq!(texts, [Value::Null, json!("good")]);
}

#[test]
fn a_replay_has_what_a_call_printed_in_one_update() {
    let piece = |id: &str, text: &str| json!({"type": "tool_output", "toolId": id, "text": text});
    let begin = |id: &str| json!({"type": "tool_use", "toolName": "Bash", "toolId": id, "kind": "execute", "input": {"command": "make"}});
    let said =
        |text: &str| json!({"type": "text", "text": text, "messageId": "m", "parentToolId": "b"});
    let context = UpdateContext {
        is_replay: true,
        ..UpdateContext::default()
    };
    let shown = shown_in(
        context,
        &[
            begin("a"),
            piece("a", "one\n"),
            json!({"type": "tool_use", "toolName": "Task", "toolId": "b", "kind": "task", "input": {}}),
            said("I "),
            piece("a", "two\n"),
            said("look"),
            piece("a", "three\n"),
            json!({"type": "tool_result", "toolId": "a", "output": "one\ntwo\nthree\n"}),
            // Its result never came.
            begin("c"),
            piece("c", "half"),
        ],
    );
    let shown: Vec<_> = (shown.iter())
        .map(|it| {
            let text = it["content"][0]["content"]["text"].clone();
            (it["toolCallId"].clone(), text)
        })
        .filter(|(_, text)| text.is_string())
        .collect();
    let whole = "```\none\ntwo\nthree\n\n```";
    let expected = [
        (json!("a"), json!(whole)),
        (json!("b"), json!("I look")),
        (json!("a"), json!(whole)),
        (json!("c"), json!("```\nhalf\n```")),
    ];
    assert_eq!(shown, expected);
}

#[test]
fn a_compaction_is_an_update_of_its_own_or_a_notice() {
    let notice = |code: &str, message: &str| json!({"type": "notice", "level": "info", "source": "stdout", "message": message, "code": code});
    let entries = [
        notice("compaction_started", "it begins"),
        notice("compacted", "it is done"),
        notice("compaction_failed", "too long"),
        notice("of_a_newer_version", "hidden, as any information"),
    ];
    let context = UpdateContext {
        compactions: true,
        ..UpdateContext::default()
    };
    let update = |id: &str, status: &str| json!({"sessionUpdate": "compaction_update", "compactionId": id, "status": status});
    let mut failed = update("c2", "failed");
    failed["error"] = json!("too long");
    assert_eq!(
        shown_in(context, &entries),
        [
            update("c1", "in_progress"),
            update("c1", "completed"),
            failed
        ]
    );
    let thoughts: Vec<_> = (shown(&entries).iter())
        .map(|it| it["content"]["text"].clone())
        .collect();
    assert_eq!(thoughts, ["it begins\n", "it is done\n", "too long\n"]);
}

#[test]
fn a_reported_context_counts_from_the_first_request() {
    let done = json!({"type": "done", "result": {"status": "completed", "text": "", "durationMs": 1, "aborted": false,
        "diagnostics": {"lines": 0, "malformed": 0, "oversize": 0, "unknown": 0},
        "usage": {"inputTokens": 900, "outputTokens": 10}, "totalCostUsd": 0.5}});
    let shown = shown(&[
        json!({"type": "usage", "usage": {"inputTokens": 300, "outputTokens": 10}}),
        json!({"type": "context", "tokens": 120, "window": 1000}),
        done,
    ]);
    assert_eq!(
        shown,
        [
            json!({"sessionUpdate": "usage_update", "used": 120, "size": 1000}),
            json!({"sessionUpdate": "usage_update", "used": 120, "size": 1000, "cost": {"amount": 0.5, "currency": "USD"}}),
        ]
    );
}

#[test]
fn output_of_a_running_command_is_in_its_call() {
    let shown = shown(&[
        json!({"type": "tool_use", "toolName": "Bash", "toolId": "t1", "kind": "execute", "input": {"command": "make"}}),
        json!({"type": "tool_output", "toolId": "t1", "text": "one\n"}),
        json!({"type": "tool_output", "toolId": "unknown", "text": "x"}),
        json!({"type": "tool_result", "toolId": "t1", "output": "one\ntwo\n"}),
    ]);
    assert_eq!(shown.len(), 3, "{shown:#?}");
    assert_eq!(shown[1]["sessionUpdate"], "tool_call_update");
    assert_eq!(shown[1]["content"][0]["content"]["text"], "```\none\n\n```");
    assert_eq!(
        shown[2]["content"][0]["content"]["text"],
        "```\none\ntwo\n\n```"
    );
}
