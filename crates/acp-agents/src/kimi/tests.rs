use teamster_acp::replay::{Replay, names, result};
use teamster_core::{AgentEvent, ErrorKind, ExecuteParams, Notice, PermissionAnswer, RunStatus};
use teamster_testkit::events::{payloads, tokens};

use super::*;
use crate::recording::turn;

fn events_of(updates: &[Value], answer: PermissionAnswer) -> Vec<AgentEvent> {
    let lines = turn(updates);
    let mut replay = Replay::of(&KIMI, &lines, |_| {});
    replay.answer(answer).turn("hi")
}

/// As version 2.1.0 wrote it, shortened.
const FAILED: &str = r#"{"type":"turn.ended","agentId":"main","turnId":0,"reason":"failed","error":{"code":"provider.api_error","message":"503 {\"type\":\"error\",\"error\":{\"type\":\"api_error\",\"message\":\"Down\"}}","name":"APIStatusError","details":{"statusCode":503,"requestId":null},"retryable":true},"durationMs":48,"time":1795819700057}"#;
const USED: &str = r#"{"type":"usage.record","agentId":"main","model":"m","usage":{"inputOther":100,"output":20,"inputCacheRead":0,"inputCacheCreation":0},"usageScope":"turn","time":1795819700057}"#;

#[test]
fn a_failed_turn_has_its_cause_in_the_record() {
    let mut dialect = (KIMI.dialect)(&ExecuteParams::default());
    dialect.turn_begins(false);
    assert!(dialect.awaits_record());
    dialect.record_line(&USED.replace("main", "agent-0"));
    dialect.record_line(&FAILED.replace("main", "agent-0"));
    assert!(
        dialect.awaits_record(),
        "a sub-agent's turn is not the turn"
    );
    dialect.record_line(USED);
    dialect.record_line(FAILED);
    assert!(!dialect.awaits_record());
    let turn = TurnSoFar::default();
    assert_eq!(
        tokens(dialect.figures(&Value::Null, &turn).usage),
        Some((200, 40))
    );
    let error = dialect.failure(Some("end_turn"), &turn).unwrap();
    assert_eq!(Some(error.kind), ErrorKind::of_http_status(503));
    assert!(error.retryable);
    assert!(error.message.starts_with("503 "), "{error}");
    // The next turn begins without it.
    dialect.record_line(FAILED);
    dialect.turn_begins(false);
    assert_eq!(dialect.failure(Some("end_turn"), &turn), None);
}

/// As version 2.1.0 wrote it.
const CANCELLED: &str = r#"{"type":"turn.ended","agentId":"main","turnId":1,"reason":"cancelled","durationMs":2126,"time":1795956849933}"#;
const COMPLETED: &str = r#"{"type":"turn.ended","agentId":"main","turnId":2,"reason":"completed","durationMs":179,"time":1795956854211}"#;

#[test]
fn the_record_of_a_cancelled_turn_is_not_that_of_the_next() {
    let mut dialect = (KIMI.dialect)(&ExecuteParams::default());
    let input = |dialect: &mut Box<dyn Dialect>| {
        let figures = dialect.figures(&Value::Null, &TurnSoFar::default());
        figures.usage.and_then(|usage| usage.input_tokens)
    };
    let next = USED.replace("100", "80");
    // It is read after the next turn has begun.
    dialect.turn_begins(false);
    assert_eq!(input(&mut dialect), None);
    dialect.turn_begins(false);
    dialect.record_line(USED);
    dialect.record_line(CANCELLED);
    assert!(dialect.awaits_record());
    dialect.record_line(&next);
    dialect.record_line(COMPLETED);
    assert!(!dialect.awaits_record());
    assert_eq!(input(&mut dialect), Some(80));

    // It was read in time, and then not at all.
    for lines in [&[USED, CANCELLED][..], &[]] {
        dialect.turn_begins(false);
        for line in lines {
            dialect.record_line(line);
        }
        let _ = input(&mut dialect);
        dialect.turn_begins(false);
        dialect.record_line(&next);
        dialect.record_line(COMPLETED);
        assert!(!dialect.awaits_record());
        assert_eq!(input(&mut dialect), Some(80));
    }
}

#[test]
fn the_kind_of_a_failure_is_that_of_its_status() {
    let kind = |code: &str, status: &str| {
        let line = FAILED
            .replace("provider.api_error", code)
            .replace("\"statusCode\":503", status)
            .replace("503 ", "")
            .replace("api_error", "x");
        let mut record = Recorded::default();
        record.line(&line);
        record.take_failure().unwrap().kind
    };
    assert_eq!(
        kind("provider.rate_limit", "\"statusCode\":429"),
        ErrorKind::RateLimit
    );
    assert_eq!(
        kind("provider.auth_error", "\"statusCode\":401"),
        ErrorKind::Auth
    );
    assert_eq!(
        kind("auth.login_required", "\"statusCode\":null"),
        ErrorKind::Auth
    );
    assert_eq!(
        kind("provider.connection_error", "\"statusCode\":null"),
        ErrorKind::Network
    );
}

// Made by hand, with the message of version 2.1.0.
#[test]
fn an_empty_answer_is_no_lost_connection() {
    let error = json!({"code": "provider.x", "retryable": true,
        "message": "The API returned an empty response (no content, no tool calls).", "details": {}});
    let mut record = Recorded::default();
    let line = json!({"type": "turn.ended", "agentId": "main", "reason": "failed", "error": error});
    record.line(&line.to_string());
    assert_eq!(record.take_failure().unwrap().kind, ErrorKind::Protocol);
}

#[test]
fn its_record_is_in_the_folder_of_the_session() {
    let mut params = ExecuteParams::default();
    params.env.insert("KIMI_CODE_HOME".into(), "/kimi".into());
    let dialect = (KIMI.dialect)(&params);
    let files = dialect.record_files("s1").unwrap();
    assert_eq!(files.folder, PathBuf::from("/kimi/sessions"));
    assert_eq!(files.paths, ["*/s1/agents/*/wire.jsonl"]);
    assert_eq!(dialect.record_files("../x"), None);
}

// Made by hand: lines of version 2.1.0, shortened.
#[test]
fn a_sub_agent_s_call_is_known_by_its_request_alone() {
    let events = events_of(
        &[
            json!({"sessionUpdate": "tool_call", "toolCallId": "0:a", "title": "Agent", "kind": "other",
                   "status": "in_progress", "rawInput": {"prompt": "count"}}),
            json!({"jsonrpc": "2.0", "id": 0, "method": "session/request_permission", "params": {
                "sessionId": "s1",
                "options": [{"optionId": "approve_once", "name": "Approve once", "kind": "allow_once"}],
                "toolCall": {"toolCallId": "0:b", "title": "Bash", "content": [{"type": "content",
                    "content": {"type": "text", "text": "Requesting approval to Running: make"}}]}}}),
            json!({"sessionUpdate": "tool_call_update", "toolCallId": "0:a", "status": "completed",
                   "rawOutput": "counted"}),
            json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "Done."}}),
        ],
        PermissionAnswer::Allow,
    );
    let [
        _,
        AgentEvent::ToolUse(agent),
        AgentEvent::ToolUse(call),
        AgentEvent::Permission(asked),
        ..,
    ] = &events[..]
    else {
        panic!("{events:?}")
    };
    assert_eq!((agent.kind, &agent.parent_tool_id), (ToolKind::Task, &None));
    assert_eq!((&*call.tool_name, call.kind), ("Bash", ToolKind::Execute));
    assert_eq!(call.input, json!({"command": "make"}));
    assert_eq!(call.parent_tool_id.as_deref(), Some("0:a"));
    assert_eq!(
        asked.reason.as_deref(),
        Some("Requesting approval to Running: make")
    );
    assert_eq!(result(&events).text, "Done.");
}

// Made by hand: lines of version 2.1.0, shortened.
#[test]
fn results_with_images_and_edits() {
    let call = |id: &str, title: &str, path: &str| {
        json!({"sessionUpdate": "tool_call", "toolCallId": id, "title": title, "status": "in_progress",
               "rawInput": {"path": path}, "locations": [{"path": format!("/w/{path}")}]})
    };
    let end = |id: &str, output: Value| {
        json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "status": "completed",
               "content": [{"type": "content", "content": {"type": "text", "text": output.to_string()}}],
               "rawOutput": output})
    };
    let mut edit = call("0:c", "Edit", "a.txt");
    edit["content"] = json!([{"type": "diff", "path": "/w/a.txt", "oldText": "a", "newText": "b"}]);
    let events = events_of(
        &[
            call("0:a", "ReadMediaFile", "p.png"),
            end(
                "0:a",
                json!([{"type": "text", "text": "<image>"},
                {"type": "image_url", "imageUrl": {"url": "data:image/png;base64,AAEC"}}]),
            ),
            call("0:b", "Write", "n.txt"),
            end("0:b", json!("Wrote 7 bytes")),
            edit,
            end("0:c", json!("Replaced 1 occurrence in a.txt")),
        ],
        PermissionAnswer::Allow,
    );
    assert_eq!(
        names(&events).join(" "),
        "session tool_use tool_result tool_use tool_result file_change tool_use tool_result file_change turn_end done"
    );
    let outputs: Vec<_> = (events.iter())
        .filter_map(|event| match event {
            AgentEvent::ToolResult(end) => Some(end.output.as_str()),
            AgentEvent::FileChange(change) => Some(change.path.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(outputs[0], "<image>\n[image: image/png, 3 bytes]");
    assert_eq!((outputs[2], outputs[4]), ("/w/n.txt", "/w/a.txt"));
    assert_eq!(result(&events).status, RunStatus::Completed);
}

// Made by hand: lines of version 2.1.0, shortened.
#[test]
fn a_question_with_one_choice_is_one_too() {
    let lines = turn(&[
        json!({"jsonrpc": "2.0", "id": 0, "method": "session/request_permission", "params": {
        "sessionId": "s1", "options": [
            {"optionId": "q0_opt_0", "name": "Red", "kind": "allow_once"},
            {"optionId": "q0_skip", "name": "Skip", "kind": "reject_once"}],
        "toolCall": {"toolCallId": "0:a", "title": "AskUserQuestion"}}}),
    ]);
    let mut replay = Replay::of(&KIMI, &lines, |params| {
        params.permission = PermissionMode::Bypass;
    });
    replay.turn("hi");
    let asked = replay.asked();
    assert_eq!(
        asked[0].schema.as_ref().unwrap()["properties"]["choice"]["enum"],
        json!(["Red"])
    );
    let answer = &replay.written()[3]["result"]["outcome"]["optionId"];
    assert_eq!(answer, "q0_skip");
}

// Made by hand: lines of version 2.1.0, shortened.
#[test]
fn words_about_a_compaction_are_not_the_answer() {
    let chunk = |text: &str| json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}});
    let own = [
        "Compacting conversation context…",
        "Compaction is blocked by the current turn; retry when the turn is idle.",
        "Compaction completed.\n- Messages compacted: 3\n- Tokens before: 9\n- Tokens after: 8",
    ];
    let mut updates = own.map(chunk).to_vec();
    updates.push(chunk("Compaction completed. It fits."));
    let events = events_of(&updates, PermissionAnswer::Allow);
    let notices: Vec<_> = payloads::<Notice>(&events)
        .map(|notice| (notice.message.as_str(), notice.code))
        .collect();
    let codes = [
        NoticeCode::CompactionStarted,
        NoticeCode::CompactionFailed,
        NoticeCode::Compacted,
    ];
    let expected: Vec<_> = own.into_iter().zip(codes.map(Some)).collect();
    assert_eq!(notices, expected);
    assert_eq!(result(&events).text, "Compaction completed. It fits.");
}
