//! Recorded ACP sessions of the real program.

use serde_json::Value;
use teamster_acp::replay::{Replay, in_any_order, names, result};
use teamster_core::provider::SessionCommand;
use teamster_core::{
    AgentEvent, ChangeKind, Decision, ErrorKind, ExecuteParams, FileChange, McpServer,
    PermissionAnswer, PermissionEvent, PermissionMode, RunStatus, SessionOptions, SessionProvider,
    ToolKind, ToolResult, ToolUse,
};
use teamster_gemini::Gemini;
use teamster_testkit::events::{payloads, tokens};

fn replay(recording: &str) -> Replay<'_> {
    replay_of(recording, |_| ())
}

fn replay_of(recording: &str, change: impl FnOnce(&mut ExecuteParams)) -> Replay<'_> {
    Replay::of(&Gemini, recording, change)
}

/// Returns name, kind and input of the tools.
fn tools(events: &[AgentEvent]) -> Vec<(String, ToolKind, String)> {
    payloads::<ToolUse>(events)
        .map(|e| (e.tool_name.clone(), e.kind, e.input.to_string()))
        .collect()
}

const HELLO: &str = "Hello, world! 你好，世界 🌍🚀 — done.";

#[test]
fn a_turn_after_one_that_was_interrupted() {
    let mut replay = replay(include_str!("sessions/acp_cancel/stdout.ndjson"));
    let first = replay.interrupted("one", r#""cancelled""#);
    assert_eq!(names(&first).join(" "), "session text turn_end error done");
    let done = result(&first);
    assert_eq!(done.status, RunStatus::Aborted);
    assert_eq!(done.text, "Starting tick-0 tick-1 tick-2 tick-3 tick-4 ");
    assert_eq!(done.usage, None);
    let written = replay.written();
    assert_eq!(written[0]["method"], "initialize");
    assert_eq!(written[1]["method"], "session/new");
    assert_eq!(written[2]["params"]["prompt"][0]["text"], "one");
    assert_eq!(written[3]["method"], "session/cancel");

    let second = replay.turn("two");
    let done = result(&second);
    assert_eq!(names(&second).join(" "), "text turn_end done");
    assert_eq!(done.status, RunStatus::Completed);
    assert_eq!(done.text, HELLO);
    assert_eq!(done.stop_reason.as_deref(), Some("end_turn"));
    let usage = done.usage.unwrap();
    assert_eq!(tokens(Some(usage)), Some((1000, 20)));
    assert_eq!(usage.cache_read_tokens, None);
    assert_eq!(done.usage_by_model["gemini-2.5-flash"].usage, usage);
    assert_eq!(done.model.as_deref(), Some("gemini-2.5-flash"));
    let id = "6d1c6a82-341b-42b6-a023-b2196418b129";
    assert_eq!(done.session_id.as_deref(), Some(id));
    assert_eq!(replay.assembler().session_id().as_deref(), Some(id));
}

#[test]
fn a_mode_in_which_nothing_is_asked() {
    let mut replay = replay(include_str!("sessions/acp_yolo/stdout.ndjson"));
    // The session is open after the first line of its second message.
    let mode = |id| SessionCommand::SetPermission(id, PermissionMode::Bypass);
    assert_eq!(replay.command(mode), Ok(()));
    let first = replay.turn("three rounds");
    let done = result(&first);
    assert_eq!(done.text, "Step 1. Step 2. Step 3. All three rounds done.");
    let expected: Vec<_> = (1..=3)
        .map(|n| {
            (
                "run_shell_command".to_owned(),
                ToolKind::Execute,
                format!(r#"{{"command":"echo round-{n}"}}"#),
            )
        })
        .collect();
    assert_eq!(tools(&first), expected);
    assert_eq!(done.usage.unwrap().output_tokens, Some(72));
    assert!(done.open_tool_ids.is_empty());
    // The output and the outcome of a command are not reported.
    assert!(first.iter().all(|event| match event {
        AgentEvent::ToolResult(e) => e.output.is_empty() && e.is_error.is_none(),
        _ => true,
    }));

    let second = replay.turn("two at once");
    assert_eq!(
        result(&second).text,
        "Two calls at once. Both done: slow-A and fast-B."
    );
    assert_eq!(tools(&second).len(), 2);
}

#[test]
fn a_tool_that_is_not_permitted() {
    let mut replay = replay(include_str!("sessions/acp_reject/stdout.ndjson"));
    let events = replay.turn("one");
    let done = result(&events);
    assert_eq!(
        names(&events).join(" "),
        "session text tool_use permission tool_result text turn_end done"
    );
    assert_eq!(done.status, RunStatus::Incomplete);
    assert_eq!(done.permission_denials.len(), 1);
    assert_eq!(done.permission_denials[0].tool_name, "run_shell_command");
    assert!(done.open_tool_ids.is_empty());
    let result = payloads::<ToolResult>(&events)
        .map(|e| (e.output.as_str(), e.is_error))
        .next();
    let reported = "Tool \"run_shell_command\" was canceled by the user.";
    assert_eq!(result, Some((reported, Some(true))));
    let asked = replay.asked();
    assert_eq!(asked[0].kind, ToolKind::Execute);
    assert_eq!(
        asked[0].message.as_deref(),
        Some("echo shell-out-1; echo shell-err-1 >&2")
    );
    let answer = replay.written().pop().unwrap();
    assert_eq!(answer["id"], 0);
    assert_eq!(answer["result"]["outcome"]["optionId"], "cancel");
    let decisions: Vec<_> = payloads::<PermissionEvent>(&events)
        .map(|e| e.decision)
        .collect();
    assert_eq!(decisions, [Decision::Requested, Decision::Denied]);
}

#[test]
fn errors_end_a_turn_and_not_the_session() {
    let mut replay = replay(include_str!("sessions/acp_errors/stdout.ndjson"));
    for (kind, message) in [
        (
            ErrorKind::Auth,
            "API error 401: Request had invalid authentication credentials.",
        ),
        (
            ErrorKind::Quota,
            "You have exhausted your daily quota on this model.",
        ),
        (
            ErrorKind::Protocol,
            "the model returned an empty response with no text",
        ),
    ] {
        let events = replay.turn("x");
        let done = result(&events);
        assert_eq!(done.status, RunStatus::Failed);
        assert_eq!(done.errors.len(), 1);
        assert_eq!(done.errors[0].kind, kind);
        assert_eq!(done.errors[0].message, message);
    }
    // The truncation of the answer is not reported.
    let events = replay.turn("x");
    assert_eq!(result(&events).status, RunStatus::Completed);
    assert_eq!(result(&events).stop_reason.as_deref(), Some("end_turn"));
    let events = replay.turn("x");
    assert_eq!(result(&events).text, HELLO);
}

#[test]
fn a_prompt_that_a_hook_holds_back() {
    let mut replay = replay_of(include_str!("sessions/hook/stdout.ndjson"), |params| {
        params.working_directory = Some("/tmp/ws".into());
        params.permission = PermissionMode::Bypass;
    });
    let events = replay.turn("Are you ready?");
    assert_eq!(result(&events).status, RunStatus::Completed);
    assert_eq!(result(&events).text, "Ready.");

    // The CLI reports only the end of the turn.
    let events = replay.turn("Do what is forbidden.");
    let done = result(&events);
    assert_eq!(names(&events).join(" "), "error turn_end done");
    assert_eq!(done.status, RunStatus::Failed);
    assert_eq!(done.errors.len(), 1);
    assert_eq!(done.errors[0].kind, ErrorKind::Permission);
    assert!(!done.errors[0].retryable);
    assert_eq!(done.text, "");
    assert_eq!(done.usage, None);

    let mut written = replay.written();
    let lines = include_str!("sessions/hook/stdin.ndjson").lines();
    let mut recorded: Vec<Value> = lines.map(|it| serde_json::from_str(it).unwrap()).collect();
    // The client's description and capabilities change with its versions.
    for messages in [&mut written, &mut recorded] {
        messages[0]["params"] = Value::Null;
    }
    assert_eq!(written, recorded);
}

#[test]
fn earlier_turns_are_not_reported_again() {
    let recording = include_str!("sessions/acp_load/stdout.ndjson");
    let id = "38dc108a-3b14-4d20-b926-3650013e6eca";
    let mut replay = replay_of(recording, |params| params.session_id = Some(id.into()));
    assert_eq!(replay.assembler().session_id().as_deref(), Some(id));
    replay.grant_modes();
    let events = replay.turn("what came before?");
    assert_eq!(names(&events).join(" "), "session text turn_end done");
    assert_eq!(
        result(&events).text,
        "History has 5 contents; word seen: True."
    );
    let methods: Vec<_> = (replay.written().iter())
        .map(|it| it["method"].as_str().unwrap_or_default().to_owned())
        .collect();
    assert_eq!(
        methods,
        [
            "initialize",
            "session/load",
            "session/set_mode",
            "session/prompt"
        ]
    );

    assert_eq!(replay.command(SessionCommand::Clear), Ok(()));
    assert_eq!(replay.assembler().session_id(), None, "it has no turn yet");
    let events = replay.turn("anew");
    assert_eq!(result(&events).text, "I will remember the word PINEAPPLE.");
    let id = replay.assembler().session_id();
    assert_eq!(id.as_deref(), Some("2fcff4ca-2e90-4f2c-9ce3-7a370d606d3e"));
}

#[test]
fn tools_are_reported_as_well_as_the_cli_reports_them() {
    let recording = include_str!("sessions/tools/stdout.ndjson");
    let mut replay = replay_of(recording, |params| {
        params.mcp_servers = vec![McpServer::stdio("tiny", "x", [""; 0])];
    });
    replay.answer(PermissionAnswer::Allow);

    let events = replay.turn("write");
    assert_eq!(result(&events).text, "Writing. Written.");
    let named: Vec<_> = (tools(&events).into_iter())
        .map(|(name, kind, _)| (name, kind))
        .collect();
    let tool = |name: &str, kind| (name.to_owned(), kind);
    assert_eq!(
        named,
        [
            tool("write_file", ToolKind::Edit),
            tool("replace", ToolKind::Edit),
            tool("read_file", ToolKind::Read),
            tool("read_file", ToolKind::Read)
        ]
    );
    let changes: Vec<_> = payloads::<FileChange>(&events)
        .map(|e| (e.path.as_str(), e.change))
        .collect();
    assert_eq!(
        changes,
        [
            ("/tmp/ws/out.txt", ChangeKind::Add),
            ("/tmp/ws/out.txt", ChangeKind::Update)
        ]
    );
    let ended: Vec<_> = payloads::<ToolResult>(&events)
        .map(|e| (e.output.as_str(), e.is_error))
        .collect();
    assert_eq!(
        ended,
        [
            ("", Some(false)),
            ("", Some(false)),
            ("", Some(false)),
            ("File not found: /tmp/ws/missing.txt", Some(true))
        ]
    );

    assert_eq!(tools(&replay.turn("todos"))[0].1, ToolKind::Think);
    // A call of a missing tool is not reported.
    let events = replay.turn("fail");
    let named: Vec<_> = tools(&events).into_iter().map(|it| it.0).collect();
    assert_eq!(named, ["run_shell_command", "read_file"]);

    let events = replay.turn("a server's tool");
    let (name, kind, input) = tools(&events).remove(0);
    assert_eq!((name.as_str(), kind), ("mcp_tiny_echo", ToolKind::Mcp));
    assert_eq!(input, r#"{"text":"héllo 🌍"}"#);
    let events = replay.turn("one that fails");
    let failed = events.iter().any(|event| match event {
        AgentEvent::ToolResult(e) => {
            e.is_error == Some(true) && e.output.contains("failed on purpose")
        }
        _ => false,
    });
    assert!(failed);

    let events = replay.turn("think");
    assert_eq!(names(&events).join(" "), "thinking text turn_end done");
    let events = replay.interrupted("sleep", "Command cancelled by user.");
    assert_eq!(result(&events).status, RunStatus::Aborted);
    assert!(result(&events).open_tool_ids.is_empty());
    assert_eq!(
        result(&replay.turn("max_tokens")).status,
        RunStatus::Completed
    );
    for kind in [
        ErrorKind::Overloaded,
        ErrorKind::ContextWindow,
        ErrorKind::Network,
    ] {
        assert_eq!(result(&replay.turn("x")).errors[0].kind, kind);
    }
}

#[test]
fn a_session_of_another_process_is_resumed() {
    let recording = include_str!("sessions/resume/stdout.ndjson");
    let id = "dda5e8ee-af75-423d-a39e-6e82901640a4";
    let mut replay = replay_of(recording, |params| params.session_id = Some(id.into()));
    let events = replay.turn("again");
    assert_eq!(names(&events).join(" "), "session text turn_end done");
    assert_eq!(result(&events).text, HELLO);
    assert_eq!(result(&events).session_id.as_deref(), Some(id));
    let mode = |id| SessionCommand::SetPermission(id, PermissionMode::Bypass);
    assert_eq!(replay.command(mode), Ok(()));
    let events = replay.turn("a command");
    assert_eq!(tools(&events).len(), 1);
    assert!(replay.asked().is_empty());
    let refused = replay.command(|id| SessionCommand::SetPermission(id, PermissionMode::ReadOnly));
    assert!(refused.is_err());
}

#[test]
fn other_recordings_have_nothing_that_is_not_known() {
    let mut replay_one = replay(include_str!("sessions/acp_untrusted/stdout.ndjson"));
    assert_eq!(result(&replay_one.turn("x")).text, "The MCP server echoed.");

    let recording = include_str!("sessions/acp_authenticate/stdout.ndjson");
    let mut replay_two = replay(recording);
    let order = replay_two.command(SessionCommand::Clear);
    assert_eq!(order, Ok(()), "a second session");
    assert_eq!(result(&replay_two.turn("x")).text, HELLO);

    // The process exits before the turn ends.
    for recording in [
        include_str!("sessions/acp_eof/stdout.ndjson"),
        include_str!("sessions/acp_eof_midprompt/stdout.ndjson"),
    ] {
        let mut replay = replay(recording);
        replay.answer(PermissionAnswer::Allow);
        let events = replay.turn("x");
        assert_eq!(result(&events).status, RunStatus::Incomplete);
        assert_eq!(result(&events).errors[0].kind, ErrorKind::Protocol);
    }
}

#[test]
fn every_turn_is_a_run_and_every_order_is_settled_once() {
    let recordings = [
        include_str!("sessions/acp_errors/stdout.ndjson"),
        include_str!("sessions/acp_cancel/stdout.ndjson"),
        include_str!("sessions/tools/stdout.ndjson"),
        include_str!("sessions/acp_reject/stdout.ndjson"),
    ];
    for resumed in [false, true] {
        in_any_order(&recordings, &["hi", "/help"], || {
            let mut params = ExecuteParams::new("");
            params.session_id = resumed.then(|| "s".to_owned());
            Gemini.protocol(&SessionOptions::new(params))
        });
    }
}
