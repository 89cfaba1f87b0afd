//! Recorded ACP sessions of the real program.

use teamster_acp::replay::{Replay, in_any_order, names, result};
use teamster_core::provider::SessionCommand;
use teamster_core::{
    AgentEvent, ChangeKind, CostSource, ErrorKind, ExecuteParams, FileChange, McpServer, McpTool,
    PermissionAnswer, PermissionMode, Plan, RunStatus, SessionOptions, SessionProvider, Thinking,
    ToolKind, ToolResult, ToolUse,
};
use teamster_opencode::OpenCode;
use teamster_testkit::events::{payloads, tokens};

fn replay(recording: &str) -> Replay<'_> {
    replay_of(recording, |_| ())
}

fn replay_of(recording: &str, change: impl FnOnce(&mut ExecuteParams)) -> Replay<'_> {
    Replay::of(&OpenCode, recording, change)
}

/// Returns id, name, kind, input and outcome of the tools.
fn tools(events: &[AgentEvent]) -> Vec<(String, String, ToolKind, String)> {
    payloads::<ToolUse>(events)
        .map(|e| {
            (
                e.tool_id.to_string(),
                e.tool_name.clone(),
                e.kind,
                e.input.to_string(),
            )
        })
        .collect()
}

/// Returns outputs of the calls, and whether they failed.
fn results(events: &[AgentEvent]) -> Vec<(String, String, Option<bool>)> {
    payloads::<ToolResult>(events)
        .map(|e| (e.tool_id.to_string(), e.output.clone(), e.is_error))
        .collect()
}

fn bash(id: &str, input: &str) -> (String, String, ToolKind, String) {
    (id.into(), "bash".into(), ToolKind::Execute, input.into())
}

fn texts(id: &str, output: &str, failed: bool) -> (String, String, Option<bool>) {
    (id.into(), output.into(), Some(failed))
}

const HELLO: &str = "Hello from the mock: naïve café ☃ 你好，世界 🚀👨\u{200d}👩\u{200d}👧 line1\nline2\t\"quoted\" \\ done.";
const REJECTED: &str = "The user rejected permission to use this specific tool call.";

#[test]
fn turns_with_tools_a_denial_an_error_and_an_interruption() {
    let recording = include_str!("sessions/acp_two_turns/stdout.ndjson");
    let mut replay = replay_of(recording, |params| {
        params.mcp_servers = vec![McpServer::stdio("probe", "x", [""; 0])];
    });
    let events = replay.turn("one");
    let done = result(&events);
    assert_eq!(done.status, RunStatus::Completed);
    assert_eq!(done.text, "Serve turn one ☃.Turn one done.");
    assert_eq!(
        tools(&events),
        [bash(
            "toolu_v1",
            r#"{"command":"echo via-serve","description":"run a command"}"#
        )]
    );
    assert_eq!(results(&events), [texts("toolu_v1", "via-serve\n", false)]);
    // The usage is of one step of two, and the cost of both.
    assert_eq!(done.usage, None);
    assert_eq!(done.total_cost_usd, Some(0.0012));
    assert_eq!(done.cost_source, Some(CostSource::Reported));
    assert_eq!(done.model.as_deref(), Some("mocka/m1"));
    let thinking: String = payloads::<Thinking>(&events)
        .map(|e| e.text.as_str())
        .collect();
    assert_eq!(thinking, "hm hmm");

    let events = replay.turn("two");
    let done = result(&events);
    assert_eq!(done.text, "Serve turn two.");
    assert_eq!(tokens(done.usage), Some((100, 20)));
    assert_eq!(done.total_cost_usd, Some(0.0006));

    let events = replay.turn("three");
    let done = result(&events);
    assert_eq!(
        tools(&events),
        [bash("toolu_d2", r#"{"command":"echo should-not-run"}"#)]
    );
    assert_eq!(results(&events), [texts("toolu_d2", REJECTED, true)]);
    assert_eq!(done.permission_denials.len(), 1);
    assert_eq!(replay.asked()[0].kind, ToolKind::Execute);

    let events = replay.turn("four");
    let mcp = payloads::<ToolUse>(&events)
        .map(|e| (e.kind, e.mcp.clone()))
        .next();
    let tool = McpTool::new("probe", "echo");
    assert_eq!(mcp, Some((ToolKind::Mcp, Some(tool))));
    assert_eq!(result(&events).total_cost_usd, Some(0.0012));

    // The truncation is not reported.
    let events = replay.turn("five");
    assert_eq!(result(&events).text, "This answer is cut off beca");
    assert_eq!(result(&events).stop_reason.as_deref(), Some("end_turn"));

    let events = replay.turn("six");
    let done = result(&events);
    assert_eq!(done.status, RunStatus::Failed);
    assert_eq!(done.errors[0].kind, ErrorKind::Auth);
    assert_eq!(done.errors[0].message, "invalid x-api-key");
    assert_eq!(done.total_cost_usd, None);

    let events = replay.interrupted("seven", "tick11");
    let done = result(&events);
    assert_eq!(done.status, RunStatus::Aborted);
    assert_eq!(done.stop_reason.as_deref(), Some("cancelled"));
    assert!(done.text.ends_with("tick11 "), "{}", done.text);
    assert_eq!(done.usage, None);
}

#[test]
fn tools_are_reported_as_in_a_run() {
    let recording = include_str!("sessions/tools/stdout.ndjson");
    let mut replay = replay_of(recording, |params| {
        params.model = Some("mocka/m1".into());
        params.mcp_servers = vec![McpServer::stdio("probe", "x", [""; 0])];
    });
    replay.answer(PermissionAnswer::Allow);

    let events = replay.turn("in parallel");
    assert_eq!(
        results(&events),
        [
            texts("toolu_p2", "second-fast\n", false),
            texts("toolu_p1", "first-slow\n", false)
        ]
    );

    let events = replay.turn("write");
    let names: Vec<_> = tools(&events)
        .into_iter()
        .map(|(_, name, ..)| name)
        .collect();
    assert_eq!(names, ["write", "edit", "read", "read"]);
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
    let failed: Vec<_> = results(&events)
        .into_iter()
        .filter(|it| it.2 == Some(true))
        .collect();
    assert_eq!(
        failed,
        [texts(
            "toolu_w4",
            "File not found: /tmp/ws/missing.txt",
            true
        )]
    );

    let events = replay.turn("todos");
    let plan = payloads::<Plan>(&events).map(|e| e.entries.len()).next();
    assert_eq!(plan, Some(2));

    let events = replay.turn("fail");
    let failed: Vec<_> = results(&events)
        .into_iter()
        .map(|it| (it.0, it.2))
        .collect();
    assert!(
        failed.iter().all(|(_, failed)| *failed == Some(true)),
        "{failed:?}"
    );
    assert_eq!(failed.len(), 3, "a command, no such tool, wrong arguments");
    assert_eq!(tools(&events)[1].1, "no_such_tool");

    // The request is about the directory, and the tool is one that reads.
    let events = replay.turn("outside");
    assert_eq!(result(&events).text, "Outside.Read it.");
    let asked = replay.asked();
    assert_eq!(asked[0].tool_name, "read");
    assert_eq!(asked[0].message.as_deref(), Some("/etc"));

    let events = replay.turn("a server's tool");
    assert_eq!(tools(&events)[0].2, ToolKind::Mcp);
    let events = replay.turn("one that fails");
    assert_eq!(
        results(&events),
        [texts("toolu_c2", "failed on purpose: None", true)]
    );

    assert_eq!(result(&replay.turn("think")).text, "Answer after thinking.");
    // The usage is only of the last step. That of the title and other requests is missing.
    assert_eq!(result(&replay.turn("usage")).usage, None);
    let events = replay.turn("another agent");
    assert_eq!(tools(&events)[0].2, ToolKind::Task);

    let events = replay.interrupted("sleep", "User aborted the command");
    assert_eq!(result(&events).status, RunStatus::Aborted);
    assert!(result(&events).open_tool_ids.is_empty());

    // The CLI compacts the conversation, in separate messages.
    let events = replay.turn("too long");
    assert!(result(&events).text.ends_with(HELLO));
    assert_eq!(result(&events).usage, None);
    assert_eq!(result(&replay.turn("401")).errors[0].kind, ErrorKind::Auth);

    let model = |name: &'static str| move |id| SessionCommand::SetModel(id, name.into());
    assert_eq!(replay.command(model("mocko/m1")), Ok(()));
    assert_eq!(
        result(&replay.turn("text")).model.as_deref(),
        Some("mocko/m1")
    );
    let refused = replay.command(model("x/y")).map_err(|error| error.kind);
    assert_eq!(refused, Err(ErrorKind::ModelNotFound));
    let before = replay.assembler().session_id();
    assert_eq!(replay.command(SessionCommand::Clear), Ok(()));
    let events = replay.turn("anew");
    assert_eq!(result(&events).text, HELLO);
    assert_eq!(result(&events).model.as_deref(), Some("mocko/m1"));
    assert_eq!(result(&events).total_cost_usd, Some(0.0006));
    assert_ne!(replay.assembler().session_id(), before);
}

#[test]
fn the_permission_mode_can_be_changed() {
    let recording = include_str!("sessions/permissions/stdout.ndjson");
    let mut replay = replay_of(recording, |params| params.model = Some("mocka/m1".into()));
    let events = replay.turn("two commands");
    assert_eq!(result(&events).permission_denials.len(), 2);
    assert_eq!(
        names(&events).join(" "),
        "session text tool_use permission tool_result text turn_end done"
    );
    let events = replay.turn("write");
    assert_eq!(result(&events).permission_denials.len(), 1);

    let mode = |mode| move |id| SessionCommand::SetPermission(id, mode);
    assert_eq!(replay.command(mode(PermissionMode::AcceptEdits)), Ok(()));
    let events = replay.turn("write");
    assert!(result(&events).permission_denials.is_empty());
    // The CLI requests that we write a file, which we do not support, and then writes it itself.
    let refused = |written: &serde_json::Value| written["error"]["code"] == -32601;
    assert_eq!(replay.written().iter().filter(|it| refused(it)).count(), 2);

    assert_eq!(replay.command(mode(PermissionMode::Bypass)), Ok(()));
    let events = replay.turn("a command");
    assert!(!names(&events).contains(&"permission"));
    assert_eq!(replay.command(mode(PermissionMode::Default)), Ok(()));
    assert_eq!(
        result(&replay.turn("a command")).permission_denials.len(),
        1
    );
    assert!(replay.command(mode(PermissionMode::ReadOnly)).is_err());
}

#[test]
fn a_resumed_session_has_no_cost_before_its_second_turn() {
    let recording = include_str!("sessions/resume/stdout.ndjson");
    let id = "ses_dfbcea29dffeIl2rnmG14e2Lq3";
    let mut replay = replay_of(recording, |params| {
        params.model = Some("mocka/m1".into());
        params.session_id = Some(id.into());
    });
    let events = replay.turn("one");
    assert_eq!(result(&events).session_id.as_deref(), Some(id));
    assert_eq!(result(&events).text, HELLO);
    assert_eq!(result(&events).total_cost_usd, None);
    assert_eq!(result(&replay.turn("two")).total_cost_usd, Some(0.0006));
    let written = replay.written();
    assert_eq!(written[1]["method"], "session/resume");
}

#[test]
fn turns_of_the_forked_session_are_not_reported_again() {
    let recording = include_str!("sessions/fork/stdout.ndjson");
    let mut replay = replay_of(recording, |params| {
        params.model = Some("mocka/m1".into());
        params.session_id = Some("ses_dfbcea29dffeIl2rnmG14e2Lq3".into());
        params.fork = true;
    });
    assert_eq!(replay.assembler().session_id(), None);
    let events = replay.turn("one");
    assert_eq!(names(&events).join(" "), "session text turn_end done");
    assert_eq!(result(&events).text, HELLO);
    let id = replay.assembler().session_id().unwrap_or_default();
    assert_eq!(result(&events).session_id, Some(id.clone()));
    assert_ne!(&*id, "ses_dfbcea29dffeIl2rnmG14e2Lq3");
    assert_eq!(replay.written()[1]["method"], "session/fork");
}

#[test]
fn process_end_in_a_turn_repeats_no_event() {
    let recording = include_str!("sessions/acp_two_turns/stdout.ndjson");
    let lines: Vec<_> = recording.lines().take(9).collect();
    let short = lines.join("\n");
    let mut replay = replay(&short);
    let events = replay.turn("one");
    assert_eq!(result(&events).status, RunStatus::Incomplete);
    assert_eq!(result(&events).text, "Serve turn one ");
}

#[test]
fn every_turn_is_a_run_and_every_order_is_settled_once() {
    let recordings = [
        include_str!("sessions/acp_two_turns/stdout.ndjson"),
        include_str!("sessions/tools/stdout.ndjson"),
        include_str!("sessions/permissions/stdout.ndjson"),
    ];
    for resumed in [false, true] {
        in_any_order(&recordings, &["hi", "/help"], || {
            let mut params = ExecuteParams::new("");
            params.session_id = resumed.then(|| "s".to_owned());
            OpenCode.protocol(&SessionOptions::new(params))
        });
    }
}
