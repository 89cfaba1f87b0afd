//! Hand-made lines. Recorded runs are in `fixtures/pi`.

use serde_json::{Value, json};
use teamster_core::provider::Exit;
use teamster_core::{
    AgentEvent, ErrorKind, ExecuteParams, PermissionMode, RunResult, RunStatus, ToolUse,
};
use teamster_testkit::events::{assert_types, payloads};
use teamster_testkit::replay::decode;

use super::PiDecoder;

/// Decodes a run of these lines that ends well.
fn run_with(params: &ExecuteParams, lines: &[Value]) -> (Vec<AgentEvent>, RunResult) {
    let lines: Vec<_> = lines.iter().map(Value::to_string).collect();
    decode(PiDecoder::for_run(params), &lines, Exit::new(0))
}

fn run(lines: &[Value]) -> (Vec<AgentEvent>, RunResult) {
    run_with(&ExecuteParams::new("x"), lines)
}

fn session() -> Value {
    json!({"type": "session", "version": 3, "id": "s-1", "cwd": "/w"})
}

fn begin() -> Value {
    json!({"type": "message_start", "message": {"role": "assistant", "content": [],
        "model": "m", "stopReason": "pending"}})
}

fn delta(kind: &str, at: usize, text: &str) -> Value {
    json!({"type": "message_update", "assistantMessageEvent":
        {"type": kind, "contentIndex": at, "delta": text}})
}

fn answer(text: &str, more: &Value) -> Value {
    let mut message = json!({"role": "assistant", "content": [{"type": "text", "text": text}],
        "model": "m", "stopReason": "stop",
        "usage": {"input": 10, "output": 2, "cacheRead": 3, "cacheWrite": 4, "totalTokens": 19,
            "cost": {"total": 0.5}}});
    for (name, value) in more.as_object().unwrap() {
        message[name] = value.clone();
    }
    json!({"type": "message_end", "message": message})
}

fn settled() -> Value {
    json!({"type": "agent_settled"})
}

#[test]
fn text_missing_in_the_deltas_comes_with_the_message() {
    let (events, result) = run(&[
        session(),
        begin(),
        delta("text_delta", 0, "Hel"),
        answer("Hello.", &json!({})),
        settled(),
    ]);
    assert_types(&events, "session text text usage turn_end done");
    assert_eq!(result.text, "Hello.");
    assert_eq!(result.status, RunStatus::Completed);
}

#[test]
fn message_changed_by_an_extension_replaces_its_pieces() {
    let (events, result) = run(&[
        session(),
        begin(),
        delta("text_delta", 0, "My key is 123."),
        answer("My key is ***.", &json!({})),
        settled(),
    ]);
    assert_types(&events, "session text retract text usage turn_end done");
    assert_eq!(result.text, "My key is ***.");
}

#[test]
fn usage_of_compactions_tools_and_warm_caches_counts() {
    let usage = json!({"input": 100, "output": 20, "cost": {"total": 1.0}});
    let warmed = json!({"type": "entry_appended", "entry": {"type": "usage", "id": "u",
        "kind": "cache_warm", "provider": "p", "model": "m-warm",
        "usage": {"input": 0, "output": 0, "cacheRead": 50_000, "cost": {"total": 0.5}}}});
    let (_, result) = run(&[
        session(),
        json!({"type": "agent_start"}),
        begin(),
        answer("a", &json!({})),
        json!({"type": "message_end", "message": {"role": "toolResult", "content": [],
            "usage": usage}}),
        json!({"type": "compaction_end", "reason": "threshold", "result": {"usage": usage}}),
        warmed.clone(),
        settled(),
        // After the turn, that is of none.
        warmed,
    ]);
    let tokens = result.usage.unwrap();
    assert_eq!(tokens.input_tokens, Some(210));
    assert_eq!(tokens.output_tokens, Some(42));
    assert_eq!(tokens.cache_read_tokens, Some(50_003));
    assert_eq!(result.total_cost_usd, Some(3.0));
    assert_eq!(result.usage_by_model["m-warm"].cost_usd, Some(0.5));
}

#[test]
fn a_model_without_a_price_has_no_cost() {
    let usage = json!({"input": 1, "output": 2, "cost": {"total": 0}});
    let (_, result) = run(&[
        session(),
        begin(),
        answer("a", &json!({"usage": usage})),
        settled(),
    ]);
    assert_eq!(result.total_cost_usd, None);
    assert_eq!(result.usage.unwrap().total_tokens(), Some(3));
}

#[test]
fn a_too_long_context_is_a_retry_once_the_run_continues() {
    let failed = json!({"stopReason": "error", "errorMessage": "400: prompt is too long",
        "usage": null, "content": []});
    let lines = [
        session(),
        json!({"type": "agent_start"}),
        begin(),
        answer("", &failed),
        json!({"type": "compaction_start", "reason": "overflow"}),
        json!({"type": "compaction_end", "reason": "overflow", "result": {}, "willRetry": true}),
        json!({"type": "agent_start"}),
        begin(),
        answer("b", &json!({})),
        settled(),
    ];
    let (events, result) = run(&lines);
    assert_types(&events, "session notice retry text usage turn_end done");
    assert_eq!(
        (result.status, result.errors.len()),
        (RunStatus::Completed, 0)
    );
    let (_, result) = run(&[&lines[..4], &[settled()]].concat());
    assert_eq!(result.errors[0].kind, ErrorKind::ContextWindow);
    assert_eq!(result.status, RunStatus::Failed);
}

#[test]
fn the_json_around_an_error_is_taken_off() {
    for (message, words) in [
        (
            r#"429: {"message":"Slow down.","type":"rate_limit_error"}"#,
            "429: Slow down.",
        ),
        (
            r#"429 {"type":"error","error":{"type":"rate_limit_error","message":"Slow."}}"#,
            "429 Slow.",
        ),
        ("429 {\"half", "429 {\"half"),
    ] {
        let failed = json!({"stopReason": "error", "errorMessage": message, "content": []});
        let (_, result) = run(&[session(), begin(), answer("", &failed), settled()]);
        assert_eq!(result.errors[0].message, words);
        assert_eq!(result.errors[0].kind, ErrorKind::RateLimit);
    }
}

#[test]
fn errors_of_services_are_classified() {
    for (message, kind, resets_at) in [
        (
            r#"Codex error: {"type":"error","error":{"type":"usage_limit_reached","message":"The usage limit has been reached","resets_at":1796004000,"resets_in_seconds":13872},"status_code":429}"#,
            ErrorKind::Quota,
            Some(1_796_004_000_000),
        ),
        (
            r#"429 {"error":{"message":"Slow down.","resets_at":"soon"}}"#,
            ErrorKind::RateLimit,
            None,
        ),
        (
            r#"400 {"error":{"message":"No.","resets_at":1796004000}}"#,
            ErrorKind::Invalid,
            None,
        ),
        (
            "Cloud Code Assist API error (429): It is full.",
            ErrorKind::RateLimit,
            None,
        ),
        (
            "Cloud Code Assist API error (404): Requested entity was not found.",
            ErrorKind::ModelNotFound,
            None,
        ),
        ("404 404 page not found", ErrorKind::Invalid, None),
        (
            "404 The API deployment for this resource does not exist.",
            ErrorKind::ModelNotFound,
            None,
        ),
        (
            r#"404 {"error":{"message":"model: m"}}"#,
            ErrorKind::ModelNotFound,
            None,
        ),
        (
            "The operation was aborted due to timeout",
            ErrorKind::Network,
            None,
        ),
        ("an API error (that is new)", ErrorKind::Internal, None),
    ] {
        let failed = json!({"stopReason": "error", "errorMessage": message, "content": []});
        let (_, result) = run(&[session(), begin(), answer("", &failed), settled()]);
        let error = &result.errors[0];
        assert_eq!(
            (error.kind, error.resets_at_ms),
            (kind, resets_at),
            "{message}"
        );
    }
    let of_tool = super::errors::kind_of("This operation was aborted");
    assert_eq!(of_tool, Some(ErrorKind::Aborted));
}

#[test]
fn call_ids_are_unique_and_a_withheld_tool_is_denied() {
    let start = |name: &str| {
        json!({"type": "tool_execution_start", "toolCallId": "c",
            "toolName": name, "args": {"path": "a.txt"}})
    };
    let end = |text: &str, is_error: bool| {
        json!({"type": "tool_execution_end", "toolCallId": "c", "isError": is_error,
            "result": {"content": [{"type": "text", "text": text}]}})
    };
    let lines = [
        session(),
        start("write"),
        end("done", false),
        start("bash"),
        end("Tool bash not found", true),
        start("magic"),
        end("Tool magic not found", true),
        start("mcp__web__get"),
        end("Tool mcp__web__get not found", true),
        settled(),
    ];
    let params = ExecuteParams::new("x")
        .permission(PermissionMode::AcceptEdits)
        .denied_tools(["mcp__web__*"]);
    let (events, result) = run_with(&params, &lines);
    assert_types(
        &events,
        "session tool_use tool_result file_change tool_use permission tool_result tool_use tool_result tool_use permission tool_result turn_end done",
    );
    let denied = result.permission_denials.iter();
    let denied: Vec<_> = denied.map(|denial| &*denial.tool_name).collect();
    assert_eq!(denied, ["bash", "mcp__web__get"]);
    let ids: Vec<_> = payloads::<ToolUse>(&events)
        .map(|call| &*call.tool_id)
        .collect();
    assert_eq!(ids, ["c", "c#2", "c#3", "c#4"]);
    // Without a mode, the model has invented the name.
    assert_eq!(run(&lines).1.permission_denials.len(), 0);
}

#[test]
fn extensions_are_heard_and_their_dialogs_are_not_of_a_run() {
    let (events, _) = run(&[
        session(),
        json!({"type": "extension_error", "extensionPath": "/e.ts", "event": "x", "error": "boom"}),
        json!({"type": "extension_ui_request", "id": "1", "method": "notify", "message": "hi",
            "notifyType": "info"}),
        json!({"type": "extension_ui_request", "id": "2", "method": "setStatus"}),
        settled(),
    ]);
    assert_types(&events, "session notice notice turn_end done");
    let AgentEvent::Notice(notice) = &events[1] else {
        panic!("{events:#?}");
    };
    assert_eq!(notice.message, "the extension /e.ts failed: boom");
}

#[test]
fn a_command_of_an_extension_ends_without_an_answer() {
    let params = ExecuteParams::new("/hello").slash_commands(true);
    assert_eq!(
        run_with(&params, &[session()]).1.status,
        RunStatus::Completed
    );
    assert_eq!(run(&[session()]).1.status, RunStatus::Incomplete);
}

#[test]
fn an_unknown_line_is_not_dropped() {
    let (events, result) = run(&[
        session(),
        json!({"type": "brand_new", "x": 1}),
        json!({"type": "message_update", "assistantMessageEvent": {"type": "video_delta"}}),
        json!({"type": "tool_execution_end", "toolCallId": "never-begun", "result": {}}),
        settled(),
    ]);
    assert_types(&events, "session unknown unknown unknown turn_end done");
    assert_eq!(result.diagnostics.unknown, 3);
}

#[test]
fn the_note_of_a_new_session_on_stderr_is_no_evidence() {
    let stderr = "Warning: No project session found with id 'a'; creating a new session with that id.\nError: x\n";
    assert_eq!(super::evidence(stderr), "Error: x\n");
}

#[test]
fn a_call_that_was_begun_and_never_ran_is_counted() {
    let begun = |id: &str, tool: &str| {
        json!({"type": "message_update", "assistantMessageEvent":
            {"type": "toolcall_start", "contentIndex": 0, "id": id, "toolName": tool}})
    };
    let start =
        json!({"type": "tool_execution_start", "toolCallId": "1", "toolName": "bash", "args": {}});
    let lines = [
        session(),
        begin(),
        begun("1", "bash"),
        begun("2", "read"),
        begun("3", "write"),
        start,
        json!({"type": "message_start", "message": {"role": "assistant", "content": [
            {"type": "toolCall", "id": "1", "name": "bash", "arguments": {}},
            {"type": "toolCall", "id": "4", "name": "bash", "arguments": {}},
            {"type": "toolCall", "id": "5", "name": "read", "arguments": {}}]}}),
    ];
    let (_, result) = run(&lines);
    assert_eq!(result.diagnostics.unfinished_calls, 2);
    assert_eq!(result.diagnostics.unknown, 0);
}

// Made by hand: lines of version 1.6.0, shortened.
#[test]
fn tools_of_servers_and_calls_of_scripts() {
    let mut params = ExecuteParams::new("x");
    let server = |name| teamster_core::McpServer::stdio(name, "b", ["c"]);
    params.mcp_servers = vec![server("my-own"), server("my-own__more")];
    let start = |id: &str, name: &str, parent: &str| {
        json!({"type": "tool_execution_start", "toolCallId": id, "toolName": name, "args": {},
               "parentToolCallId": parent})
    };
    let end = |id: &str, name: &str| {
        json!({"type": "tool_execution_end", "toolCallId": id, "toolName": name, "isError": false,
               "result": {"content": [{"type": "text", "text": "ok"}]}})
    };
    let (events, _) = run_with(
        &params,
        &[
            session(),
            start("c1", "codemode", ""),
            start("c1/1", "mcp__my_own__echo_it", "c1"),
            end("c1/1", "mcp__my_own__echo_it"),
            end("c1", "codemode"),
            start("c2", "mcp__other__x__y", ""),
            start("c3", "mcp__my_own__more__x", ""),
        ],
    );
    let calls: Vec<_> = payloads::<ToolUse>(&events)
        .map(|call| {
            (
                call.mcp
                    .as_ref()
                    .map(|it| (it.server.as_str(), it.tool.as_str())),
                call.parent_tool_id.as_deref(),
            )
        })
        .collect();
    assert_eq!(
        calls,
        [
            (None, None),
            (Some(("my-own", "echo_it")), Some("c1")),
            (Some(("other", "x__y")), None),
            (Some(("my-own__more", "x")), None),
        ]
    );
}
