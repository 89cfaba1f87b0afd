// Made by hand: all lines are those of version 3.0.65, shortened.

use serde_json::json;
use teamster_acp::replay::{Replay, names, result};
use teamster_acp::{RequestKind, RpcError};
use teamster_core::{AgentEvent, CostSource, ErrorKind, ExecuteParams, FileChange, ToolResult};
use teamster_testkit::events::{payloads, tokens};

use super::*;
use crate::recording::turn;

fn events_of(updates: &[Value]) -> Vec<AgentEvent> {
    Replay::of(&CLINE, &turn(updates), |_| {}).turn("hi")
}

#[expect(clippy::needless_pass_by_value, reason = "shorter tests")]
fn call(id: &str, title: &str, input: Value) -> Value {
    json!({"sessionUpdate": "tool_call", "toolCallId": id, "title": title, "kind": "other",
           "status": "pending", "rawInput": input})
}

#[expect(clippy::needless_pass_by_value, reason = "shorter tests")]
fn end(id: &str, status: &str, output: Value) -> Value {
    json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "status": status,
           "rawOutput": output})
}

fn text(text: &str) -> Value {
    json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}})
}

#[test]
fn a_denied_call_is_one_call() {
    let title = "run_commands: echo main";
    let pending = json!({"toolCallId": "c1", "title": title, "kind": "execute", "status": "pending",
                         "rawInput": {"commands": ["echo main"]}});
    let mut update = pending.clone();
    update["sessionUpdate"] = "tool_call_update".into();
    let events = events_of(&[
        update,
        json!({"jsonrpc": "2.0", "id": 0, "method": "session/request_permission", "params": {
            "sessionId": "s1", "toolCall": pending,
            "options": [{"optionId": "allow_once", "kind": "allow_once"},
                        {"optionId": "reject_once", "kind": "reject_once"}]}}),
        json!({"sessionUpdate": "tool_call_update", "toolCallId": "c1", "status": "failed"}),
        call("c1", title, json!({"commands": ["echo main"]})),
        end(
            "c1",
            "failed",
            json!("{\"error\":\"User rejected the tool call\"}"),
        ),
        text("done."),
    ]);
    assert_eq!(
        names(&events).join(" "),
        "session tool_use permission tool_result text turn_end done"
    );
    let ended = payloads::<ToolResult>(&events).next();
    let ended = ended.unwrap();
    assert_eq!(ended.output, "User rejected the tool call");
    assert_eq!(ended.is_error, Some(true));
}

#[test]
fn a_sub_agent_s_words_are_its_own() {
    let events = events_of(&[
        call("c1", "spawn_agent: count", json!({"task": "count"})),
        text("I look. "),
        call("c2", "run_commands: ls", json!({"commands": ["ls"]})),
        end(
            "c2",
            "completed",
            json!([{"query": "ls", "result": "x", "success": true}]),
        ),
        text("I have counted."),
        end(
            "c1",
            "completed",
            json!({"text": "I have counted.", "iterations": 2}),
        ),
        text("The helper has counted."),
    ]);
    assert_eq!(result(&events).text, "The helper has counted.");
    let parents: Vec<_> = (events.iter())
        .filter_map(|event| match event {
            AgentEvent::ToolUse(call) => Some(call.parent_tool_id.as_deref()),
            AgentEvent::Text(text) => Some(text.parent_tool_id.as_deref()),
            _ => None,
        })
        .collect();
    assert_eq!(parents, [None, Some("c1"), Some("c1"), Some("c1"), None]);
    let last = payloads::<ToolResult>(&events).next_back();
    assert_eq!(last.unwrap().output, "I have counted.");
}

#[test]
fn edits_have_their_files_or_their_error() {
    let patch = |text: &str| json!({"input": text});
    let events = events_of(&[
        call(
            "c1",
            "apply_patch: {}",
            patch("*** Begin Patch\n*** Add File: /w/a\n+x\n*** Delete File: /w/b\n*** End Patch"),
        ),
        end(
            "c1",
            "completed",
            json!({"query": "apply_patch", "result": "Successfully applied", "success": true}),
        ),
        call(
            "c2",
            "apply_patch: {}",
            patch("*** Begin Patch\n*** Update File: nope\n*** End Patch"),
        ),
        end(
            "c2",
            "completed",
            json!({"query": "apply_patch", "result": "", "success": false,
            "error": "apply_patch failed: File not found: nope"}),
        ),
        call(
            "c3",
            "editor: {}",
            json!({"path": "/w/c", "old_text": "a", "new_text": "b"}),
        ),
        end(
            "c3",
            "completed",
            json!({"query": "edit", "result": "edited", "success": true}),
        ),
    ]);
    let changes: Vec<_> = payloads::<FileChange>(&events)
        .map(|it| (it.path.as_str(), it.change))
        .collect();
    assert_eq!(
        changes,
        [
            ("/w/a", ChangeKind::Add),
            ("/w/b", ChangeKind::Delete),
            ("/w/c", ChangeKind::Update)
        ]
    );
    let failed = payloads::<ToolResult>(&events)
        .filter(|end| end.is_error == Some(true))
        .map(|end| end.output.as_str())
        .next();
    assert_eq!(failed, Some("apply_patch failed: File not found: nope"));
}

// The first as version 3.0.65 printed it; the second is made by hand.
#[test]
fn a_failed_command_has_its_output_and_its_error() {
    let exited = "[Command exited with code 3]\npartial\n\n[stderr]\nbroken\n";
    for (printed, error, output) in [
        (exited, "Command exited with code 3", exited),
        ("partial", "it was ended", "partial\nit was ended"),
    ] {
        let result = json!([{"query": "x", "result": printed, "error": error, "success": false}]);
        let events = events_of(&[
            call("c1", "run_commands: x", json!({"commands": ["x"]})),
            end("c1", "completed", result),
        ]);
        let ended = payloads::<ToolResult>(&events)
            .map(|end| (end.output.as_str(), end.is_error))
            .next();
        assert_eq!(ended, Some((output, Some(true))));
    }
}

// As the CLI printed them.
#[test]
fn errors_are_known_by_their_words() {
    let dialect = (CLINE.dialect)(&ExecuteParams::default());
    let closed = "The socket connection was closed unexpectedly. For more information, pass `verbose: true` in the \
                  second argument to fetch()";
    let malformed =
        "JSON parsing failed: Text: {\"oops.\nError message: SyntaxError: JSON Parse error";
    let server = "The server had an error while processing your request. Sorry about that!";
    let missing = "The model `no-such-model` does not exist or you do not have access to it.";
    let scopes =
        "You have insufficient permissions for this operation. Missing scopes: model.request.";
    let limit = "Model reached the maximum output token limit before completing the turn";
    for (words, kind, retryable) in [
        (closed, ErrorKind::Network, true),
        ("Model returned empty response", ErrorKind::Protocol, true),
        (malformed, ErrorKind::Protocol, true),
        (server, ErrorKind::Overloaded, true),
        (missing, ErrorKind::ModelNotFound, false),
        (scopes, ErrorKind::Auth, false),
        (limit, ErrorKind::Invalid, false),
        ("it rained", ErrorKind::Internal, false),
    ] {
        let error = RpcError::new(-32603, format!("Internal error: {words}"));
        let error = dialect.error(&error, RequestKind::Prompt);
        assert_eq!((error.kind, error.retryable), (kind, retryable), "{words}");
    }
}

// As version 3.0.65 wrote them, shortened; the last two are made by hand.
#[test]
fn its_tokens_are_those_of_the_recorded_answers() {
    let mut dialect = (CLINE.dialect)(&ExecuteParams::default());
    let mut figures = |messages: &[Value]| {
        for message in messages {
            dialect.record_line(&message.to_string());
        }
        dialect.figures(&Value::Null, &TurnSoFar::default())
    };
    let answer = |model: &str, input: u64, read: u64, cost: Value| {
        json!({"id": "msg_AV5rkUYS", "role": "assistant", "modelInfo": {"id": model, "provider": "cline"},
               "metrics": {"inputTokens": input, "outputTokens": 40, "cacheReadTokens": read,
                           "cacheWriteTokens": 0, "cost": cost}})
    };
    let of_turn = figures(&[
        answer("gpt-4o", 1300, 300, Value::Null),
        answer("gpt-4o-mini", 50, 0, Value::Null),
        answer("gpt-4o", 1000, 0, json!(0.5)),
        json!({"metrics": {"inputTokens": 0, "outputTokens": 0}}),
    ]);
    let usage = of_turn.usage.unwrap();
    assert_eq!(tokens(Some(usage)), Some((2050, 120)));
    assert_eq!(
        (usage.cache_read_tokens, usage.cache_write_tokens),
        (Some(300), None)
    );
    let models: Vec<_> = (of_turn.by_model.iter())
        .map(|(model, of)| (model.as_str(), of.usage.input_tokens))
        .collect();
    assert_eq!(models, [("gpt-4o", Some(2000)), ("gpt-4o-mini", Some(50))]);
    assert_eq!(of_turn.cost, None, "two answers have no cost");

    let paid = [
        answer("m", 1, 0, json!(0.5)),
        answer("m", 1, 0, json!(0.25)),
    ];
    assert_eq!(figures(&paid).cost, Some((0.75, CostSource::Reported)));
    assert_eq!(figures(&[]), Figures::default());
}

#[test]
fn its_record_is_where_its_variables_say() {
    for (variables, expected) in [
        (
            &[("HOME", "/h"), ("CLINE_DIR", "")][..],
            "/h/.cline/data/sessions",
        ),
        (&[("CLINE_DIR", "/c")], "/c/data/sessions"),
        (
            &[("CLINE_DIR", "/c"), ("CLINE_DATA_DIR", "d")],
            "/w/d/sessions",
        ),
        (
            &[("CLINE_DATA_DIR", "/d"), ("CLINE_SESSION_DATA_DIR", "/s")],
            "/s",
        ),
    ] {
        let mut params = ExecuteParams::default().working_directory("/w");
        for (name, value) in variables {
            params.env.insert((*name).into(), (*value).into());
        }
        let dialect = (CLINE.dialect)(&params);
        let files = dialect.record_files("1_a_cli").unwrap();
        assert_eq!(files.folder, PathBuf::from(expected));
        assert_eq!(files.paths, ["1_a_cli/*.messages.json"; 2]);
        let files = dialect.record_files("1__a_cli").unwrap();
        assert_eq!(
            files.paths,
            ["1__a_cli/*.messages.json", "1/*.messages.json"]
        );
        assert_eq!(dialect.record_files("../x"), None);
    }
}
