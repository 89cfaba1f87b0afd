use serde_json::json;
use teamster_acp::replay::{Replay, names, result};
use teamster_core::{
    AgentEvent, PermissionAnswer, SessionOptions, SessionProvider, ToolResult, ToolUse,
};
use teamster_testkit::events::{payloads, tokens};

use super::*;
use crate::recording::{ANSWERED, lines, opened, turn};

#[test]
fn an_error_of_the_service_is_known_by_its_status() {
    let dialect = (QWEN.dialect)(&ExecuteParams::default());
    let kind = |details: &str| {
        let mut error = RpcError::new(-32603, "Internal error");
        error.data = Some(json!({"details": details}));
        let error = dialect.error(&error, RequestKind::Prompt);
        (error.kind, error.retryable)
    };
    // As the CLI printed it.
    let missing = "404 The model `no-such-model` does not exist or you do not have access to it.";
    assert_eq!(Some(kind(missing).0), ErrorKind::of_http_status(404));
    let server = "500 The server had an error while processing your request. Sorry about that!";
    assert!(kind(server).1);
    assert_eq!(kind("Connection error."), (ErrorKind::Network, true));
    assert_eq!(kind("terminated"), (ErrorKind::Network, true));
    assert_eq!(kind("it was terminated"), (ErrorKind::Internal, false));
    for words in [
        "Model stream ended with empty response text.",
        "Unterminated string in JSON at position 6 (line 1 column 7)",
    ] {
        assert_eq!(kind(words), (ErrorKind::Protocol, true), "{words}");
    }
    assert_eq!(kind("it rained"), (ErrorKind::Internal, false));
}

#[test]
fn lines_about_its_own_speed_are_no_evidence() {
    let dialect = (QWEN.dialect)(&ExecuteParams::default());
    // As a process on a busy machine wrote it.
    let perf = "[perf] acp agent event loop stall: max=1845.493759ms";
    assert_eq!(dialect.stderr_evidence(perf), "");
    let both = format!("{perf}\nNo space left.\n");
    assert_eq!(dialect.stderr_evidence(&both), "No space left.");
    assert_eq!(
        dialect.stderr_evidence("No space left.\n"),
        "No space left.\n"
    );
}

#[expect(clippy::needless_pass_by_value, reason = "shorter tests")]
fn text(text: &str, meta: Value) -> Value {
    json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text},
           "_meta": meta})
}

// Made by hand: lines of version 0.24.4, shortened.
#[test]
fn a_background_agent_s_turn_is_a_part_of_a_run_s_answer() {
    let task = json!({"taskId": "t", "toolUseId": "c1", "status": "completed"});
    let announced = |method: &str, id: Option<u64>| {
        let mut line = json!({"jsonrpc": "2.0", "method": method, "params": {"sessionId": "s1"}});
        if let Some(id) = id {
            line["id"] = id.into();
        }
        line
    };
    let before = opened(&[
        json!({"sessionUpdate": "tool_call", "toolCallId": "c1", "status": "in_progress",
               "title": "Agent", "rawInput": {"prompt": "count"}, "_meta": {"toolName": "agent"}}),
        json!({"sessionUpdate": "tool_call_update", "toolCallId": "c1", "status": "completed",
               "content": [{"type": "content", "content": {"type": "text", "text": "Background agent launched"}}],
               "rawOutput": {"type": "task_execution", "executionMode": "background"}}),
        text("It runs. ", Value::Null),
    ]);
    let after = [
        text(
            "Background agent completed.",
            json!({"source": REPORT, "qwenDiscreteMessage": true, "backgroundTask": task}),
        ),
        announced("_qwencode/start_turn", Some(1)),
        text(
            "Background agent completed.",
            json!({"source": NOTIFICATION, "qwenDiscreteMessage": true, "backgroundTask": task}),
        ),
        text(
            "It is over.",
            json!({"source": "background_notification_response", "qwenDiscreteMessage": true}),
        ),
        announced("_qwencode/end_turn", None),
    ];
    let recording = format!("{before}{ANSWERED}\n{}", lines(&after));
    let options = SessionOptions::default().one_turn(true);
    let mut replay = Replay::new(QWEN.protocol(&options), &recording);
    let events = replay.turn("hi");
    assert_eq!(
        names(&events).join(" "),
        "session tool_use tool_result text notice text turn_end done"
    );
    assert_eq!(result(&events).text, "It runs. It is over.");
}

// Made by hand: lines of version 0.24.4, shortened.
#[test]
fn a_sub_agent_s_words_are_not_the_answer() {
    let of_agent = json!({"parentToolCallId": "c1", "subagentType": "general-purpose"});
    let recording = turn(&[
        json!({"sessionUpdate": "tool_call", "toolCallId": "c1", "status": "in_progress",
               "title": "Agent", "rawInput": {"prompt": "count"}, "_meta": {"toolName": "agent"}}),
        text("I look. ", of_agent.clone()),
        json!({"sessionUpdate": "tool_call", "toolCallId": "c2", "status": "in_progress",
               "title": "Shell", "rawInput": {"command": "ls"}, "_meta": {"toolName": "run_shell_command", "parentToolCallId": "c1"}}),
        text("The helper has counted.", Value::Null),
    ]);
    let events = Replay::of(&QWEN, &recording, |_| {}).turn("hi");
    assert_eq!(result(&events).text, "The helper has counted.");
    let parents: Vec<_> = (events.iter())
        .filter_map(|event| match event {
            AgentEvent::ToolUse(call) => Some(call.parent_tool_id.as_deref()),
            AgentEvent::Text(text) => Some(text.parent_tool_id.as_deref()),
            _ => None,
        })
        .collect();
    assert_eq!(parents, [None, Some("c1"), Some("c1"), None]);
    let kinds = payloads::<ToolUse>(&events).map(|call| call.kind);
    assert_eq!(kinds.collect::<Vec<_>>()[0], ToolKind::Task);
}

// Lines of version 0.24.4, shortened.
#[test]
fn a_call_that_a_hook_blocks_is_denied_and_no_text() {
    let recording = turn(&[
        json!({"sessionUpdate": "tool_call_update", "toolCallId": "c1", "status": "in_progress",
               "title": "Shell: touch made.txt", "content": [], "kind": "execute",
               "rawInput": {"command": "touch made.txt"}, "_meta": {"toolName": "run_shell_command"}}),
        json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text",
               "text": "\u{2717} **PreToolUse blocked**: run_shell_command - not this command"}}),
        json!({"sessionUpdate": "tool_call_update", "toolCallId": "c1", "status": "failed",
               "content": [{"type": "content", "content": {"type": "text", "text": "not this command"}}],
               "_meta": {"toolName": "run_shell_command"}}),
        json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "I may not."}}),
    ]);
    let events = Replay::of(&QWEN, &recording, |_| {}).turn("hi");
    let result = result(&events);
    assert_eq!(result.text, "I may not.");
    let [denial] = &result.permission_denials[..] else {
        panic!("one denial");
    };
    assert_eq!(denial.reason.as_deref(), Some("not this command"));
    assert_eq!(denial.tool_id.as_deref(), Some("c1"));
}

// Made by hand: a line of version 0.24.4, shortened.
#[test]
fn an_edit_is_reported_in_words() {
    let recording = turn(&[
        json!({"sessionUpdate": "tool_call", "toolCallId": "c1", "status": "completed", "kind": "edit",
               "content": [{"type": "diff", "path": "/w/a.txt", "oldText": "", "newText": "Hello.\n"}],
               "rawInput": {"file_path": "/w/a.txt"}, "_meta": {"toolName": "write_file"},
               "rawOutput": {"fileDiff": "+Hello.", "fileName": "a.txt", "filePath": "/w/a.txt",
                   "originalContent": "", "newContent": "Hello.\n",
                   "diffStat": {"model_added_lines": 1, "model_removed_lines": 0}}}),
    ]);
    let events = Replay::of(&QWEN, &recording, |_| {}).turn("hi");
    let output = payloads::<ToolResult>(&events)
        .map(|end| end.output.as_str())
        .next();
    assert_eq!(output, Some("/w/a.txt: 1 lines added, 0 removed"));
}

#[test]
fn usage_of_a_sub_agent_is_added_to_the_main_agents() {
    let mut dialect = (QWEN.dialect)(&ExecuteParams::default());
    // As version 0.24.4 wrote it, shortened: the sub-agent's last request is before the turn about it, whose own
    // request is printed and not recorded yet.
    let line = r#"{"type":"assistant","agentName":"general-purpose","isSidechain":true,"usageMetadata":{"promptTokenCount":60,"candidatesTokenCount":5,"thoughtsTokenCount":0,"totalTokenCount":65,"cachedContentTokenCount":0}}"#;
    dialect.record_line(line);
    dialect.meta(&json!({"usage": {"inputTokens": 100, "outputTokens": 20}}));
    let mut usage = || {
        let figures = dialect.figures(&Value::Null, &TurnSoFar::default());
        figures.usage.map(|it| (it.input_tokens, it.output_tokens))
    };
    assert_eq!(usage(), Some((Some(160), Some(25))));
    assert_eq!(usage(), None);
    // One in the foreground is printed too, and counts once.
    dialect.record_line(line);
    dialect.meta(
        &json!({"parentToolCallId": "c1", "usage": {"inputTokens": 60, "outputTokens": 5,
        "thoughtTokens": 0, "cachedReadTokens": 0}}),
    );
    let figures = dialect.figures(&Value::Null, &TurnSoFar::default());
    assert_eq!(figures.usage.unwrap().input_tokens, Some(60));
}

#[test]
fn requests_that_are_not_printed_are_in_the_record() {
    let mut dialect = (QWEN.dialect)(&ExecuteParams::default());
    dialect.meta(
        &json!({"usage": {"inputTokens": 100, "outputTokens": 20, "thoughtTokens": 0,
        "cachedReadTokens": 30}}),
    );
    // As version 0.24.4 wrote it, shortened.
    let line = r#"{"type":"assistant","message":{"role":"model"},"usageMetadata":{"promptTokenCount":100,"candidatesTokenCount":20,"thoughtsTokenCount":0,"totalTokenCount":120,"cachedContentTokenCount":30}}"#;
    for _ in 0..5 {
        dialect.record_line(line);
    }
    let usage = dialect
        .figures(&Value::Null, &TurnSoFar::default())
        .usage
        .unwrap();
    assert_eq!(tokens(Some(usage)), Some((350, 100)));
    assert_eq!(usage.cache_read_tokens, Some(150));
    // Without a record, what is printed counts.
    dialect.meta(&json!({"usage": {"inputTokens": 100, "outputTokens": 25}}));
    let usage = dialect
        .figures(&Value::Null, &TurnSoFar::default())
        .usage
        .unwrap();
    assert_eq!(usage.output_tokens, Some(25));
}

#[test]
fn a_request_that_is_recorded_after_its_turn_counts_once() {
    let mut dialect = (QWEN.dialect)(&ExecuteParams::default());
    let printed = |input: u64| {
        json!({"usage": {"inputTokens": input, "outputTokens": 20, "thoughtTokens": 0,
            "cachedReadTokens": 0}})
    };
    let recorded = |input: u64| {
        json!({"type": "assistant", "usageMetadata": {"promptTokenCount": input,
            "candidatesTokenCount": 20, "thoughtsTokenCount": 0, "cachedContentTokenCount": 0}})
        .to_string()
    };
    let input = |dialect: &mut Box<dyn Dialect>| {
        let figures = dialect.figures(&Value::Null, &TurnSoFar::default());
        figures.usage.and_then(|usage| usage.input_tokens)
    };
    dialect.meta(&printed(100));
    assert_eq!(input(&mut dialect), Some(100));
    dialect.meta(&printed(300));
    dialect.record_line(&recorded(100));
    dialect.record_line(&recorded(300));
    assert_eq!(input(&mut dialect), Some(300));
    // Some services report no output of an answer without any.
    dialect.meta(&json!({"usage": {"inputTokens": 70, "outputTokens": 0}}));
    let line = json!({"type": "assistant", "usageMetadata": {"promptTokenCount": 70}});
    dialect.record_line(&line.to_string());
    assert_eq!(input(&mut dialect), Some(70));
}

// Made by hand: a line of version 0.24.4, shortened.
#[test]
fn its_questions_are_answered_by_their_numbers() {
    let questions = json!([{"header": "Colour", "question": "Which colour?",
        "options": [{"label": "Red"}, {"label": "Blue"}]},
        {"header": "Colour", "question": "And then?", "options": [{"label": "Grey"}]}]);
    let recording = turn(&[
        json!({"jsonrpc": "2.0", "id": 0, "method": "session/request_permission",
        "params": {"sessionId": "s1", "options": [
            {"optionId": "proceed_once", "name": "Submit", "kind": "allow_once"},
            {"optionId": "cancel", "name": "Cancel", "kind": "reject_once"}],
        "toolCall": {"toolCallId": "c1", "title": "Ask user 1 question", "rawInput": {"questions": questions},
            "_meta": {"toolName": "ask_user_question"}}}}),
    ]);
    let mut replay = Replay::of(&QWEN, &recording, |params| {
        params.permission = PermissionMode::Bypass;
    });
    replay.answer(PermissionAnswer::AllowWith(
        json!({"Colour": "Blue", "Colour 2": "Grey"}),
    ));
    replay.turn("hi");
    let asked = replay.asked();
    assert_eq!(
        asked[0].message.as_deref(),
        Some("Which colour?\nAnd then?")
    );
    assert_eq!(
        replay.written()[3]["result"],
        json!({"outcome": {"outcome": "selected", "optionId": "proceed_once"},
               "answers": {"0": "Blue", "1": "Grey"}})
    );
}
