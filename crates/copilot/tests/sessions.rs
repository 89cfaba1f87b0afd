//! Recorded ACP sessions of the real program.

mod in_any_order;
mod opening;
mod permissions;

use teamster_acp::replay::{Replay, names, result};
use teamster_copilot::Copilot;
use teamster_core::provider::SessionCommand;
use teamster_core::{
    AgentEvent, ChangeKind, Decision, ErrorKind, ExecuteParams, FileChange, McpServer,
    PermissionAnswer, PermissionEvent, PermissionMode, Retry, RunStatus, ToolKind, ToolResult,
    ToolUse,
};
use teamster_testkit::events::{payloads, tokens};

fn replay(recording: &str) -> Replay<'_> {
    replay_of(recording, |_| ())
}

fn replay_of(recording: &str, change: impl FnOnce(&mut ExecuteParams)) -> Replay<'_> {
    Replay::of(&Copilot, recording, change)
}

fn with_server(params: &mut ExecuteParams) {
    params.mcp_servers = vec![McpServer::stdio("tiny", "tool", [""; 0])];
}

/// Returns the names and kinds of the tools.
fn tools(events: &[AgentEvent]) -> Vec<(&str, ToolKind)> {
    let tools = payloads::<ToolUse>(events);
    tools.map(|e| (e.tool_name.as_str(), e.kind)).collect()
}

/// Returns the outputs of the tools, and whether they failed.
fn outputs(events: &[AgentEvent]) -> Vec<(&str, Option<bool>)> {
    let results = payloads::<ToolResult>(events);
    results.map(|e| (e.output.as_str(), e.is_error)).collect()
}

fn decisions(events: &[AgentEvent]) -> Vec<Decision> {
    payloads::<PermissionEvent>(events)
        .map(|e| e.decision)
        .collect()
}

fn retries(events: &[AgentEvent]) -> Vec<(u32, ErrorKind)> {
    payloads::<Retry>(events)
        .map(|e| (e.attempt, e.error.kind))
        .collect()
}

const HELLO: &str = "Hello, wörld 👋🏽 你好，世界! Done ✅.";

#[test]
fn figures_are_those_of_the_turn() {
    let mut replay = replay(include_str!("sessions/acp_two_turns/stdout.ndjson"));
    replay.answer(PermissionAnswer::Allow);
    let first = replay.turn("one");
    assert_eq!(names(&first).join(" "), "session text turn_end done");
    assert_eq!(result(&first).text, "I will remember the word BANANA.");
    assert_eq!(tokens(result(&first).usage), Some((1200, 34)));
    let written = replay.written();
    assert_eq!(written[0]["method"], "initialize");
    assert_eq!(written[1]["method"], "session/new");
    // The CLI would silently omit servers that are programs.
    assert_eq!(written[1]["params"]["mcpServers"], serde_json::json!([]));

    let second = replay.turn("two");
    let done = result(&second);
    assert_eq!(tokens(done.usage), Some((2400, 68)));
    assert_eq!(done.usage.unwrap().reasoning_tokens, None);
    assert_eq!(result(&first).session_usage, None, "as the turn's");
    assert_eq!(tokens(done.session_usage), Some((3600, 102)));
    assert_eq!(tools(&second), [("bash", ToolKind::Execute)]);
    assert_eq!(
        outputs(&second),
        [(
            "hello-from-shell\n/tmp/cpws\n<shellId: 0 completed with exit code 0>",
            Some(false)
        )]
    );
    assert_eq!(decisions(&second), [Decision::Requested, Decision::Allowed]);
    assert_eq!(
        replay.asked()[0].input["command"],
        "echo hello-from-shell; pwd"
    );
    let answer = &replay.written()[1];
    assert_eq!(answer["id"], 0);
    assert_eq!(answer["result"]["outcome"]["optionId"], "allow_once");

    // A tool of a server that the CLI omitted.
    let third = replay.turn("three");
    assert_eq!(tools(&third), [("tiny-echo", ToolKind::Other)]);
    assert_eq!(
        outputs(&third),
        [("Tool 'tiny-echo' does not exist.", Some(true))]
    );
    assert_eq!(tokens(result(&third).usage), Some((2400, 68)));
    let id = "7d7c9018-0587-4636-83cb-9492f2c8f121";
    assert_eq!(replay.assembler().session_id().as_deref(), Some(id));
}

#[test]
fn a_turn_after_one_that_was_interrupted() {
    let mut replay = replay(include_str!("sessions/acp_cancel/stdout.ndjson"));
    let first = replay.interrupted("one", r#""cancelled""#);
    let done = result(&first);
    assert_eq!(names(&first).join(" "), "session text turn_end error done");
    assert_eq!(done.status, RunStatus::Aborted);
    assert_eq!(done.text, "word0 word1 word2 word3 ");
    assert_eq!(done.usage, None);

    let second = replay.turn("two");
    let done = result(&second);
    assert_eq!(done.status, RunStatus::Completed);
    assert_eq!(done.text, HELLO);
    assert_eq!(done.stop_reason.as_deref(), Some("end_turn"));
    assert_eq!(tokens(done.usage), Some((1200, 34)));
}

#[test]
fn an_error_in_the_place_of_an_answer_is_an_error() {
    let mut replay = replay(include_str!("sessions/acp_error/stdout.ndjson"));
    let events = replay.turn("one");
    let done = result(&events);
    assert_eq!(
        names(&events).join(" "),
        "session retry error turn_end done"
    );
    assert_eq!(done.status, RunStatus::Failed);
    assert_eq!(
        (done.text.as_str(), done.errors[0].kind),
        ("", ErrorKind::Auth)
    );
    assert!(
        done.errors[0]
            .message
            .starts_with("Authentication failed with provider at http://")
    );
    assert_eq!(
        retries(&events),
        [(1, ErrorKind::Overloaded), (2, ErrorKind::Overloaded)]
    );
    assert_eq!(done.usage, None);
    assert_eq!(result(&replay.turn("two")).text, HELLO);
}

#[test]
fn errors_end_a_turn_and_not_the_session() {
    let mut replay = replay(include_str!("sessions/acp_errors/stdout.ndjson"));
    assert_eq!(result(&replay.turn("text")).text, HELLO);

    let events = replay.turn("tools");
    let expected = [
        ("grep", ToolKind::Search),
        ("glob", ToolKind::Search),
        ("sql", ToolKind::Think),
        ("report_intent", ToolKind::Think),
        ("web_fetch", ToolKind::Fetch),
        ("list_bash", ToolKind::Execute),
        ("store_memory", ToolKind::Edit),
        ("apply_patch", ToolKind::Edit),
        ("skill", ToolKind::Read),
        ("ask_user", ToolKind::Think),
    ];
    assert_eq!(tools(&events), expected);
    assert_eq!(result(&events).status, RunStatus::Completed);

    for (kind, retried) in [
        (ErrorKind::Auth, 2),
        (ErrorKind::Auth, 0),
        (ErrorKind::ModelNotFound, 0),
        (ErrorKind::ContextWindow, 0),
        (ErrorKind::RateLimit, 0),
    ] {
        let events = replay.turn("x");
        let done = result(&events);
        assert_eq!(done.status, RunStatus::Failed, "{kind:?}");
        assert_eq!((done.errors.len(), done.errors[0].kind), (1, kind));
        assert_eq!(retries(&events).len(), retried, "{kind:?}");
        assert_eq!((done.text.as_str(), done.usage), ("", None));
    }
    let events = replay.turn("no answer");
    assert_eq!(result(&events).errors[0].kind, ErrorKind::Protocol);
    // Its failed requests were counted.
    assert_eq!(tokens(result(&events).usage), Some((3600, 102)));

    let events = replay.turn("cut off three times, which is not told");
    assert_eq!(result(&events).status, RunStatus::Completed);
    assert_eq!(result(&events).text, "This answer is cut ".repeat(3));

    let events = replay.turn("an error after a tool");
    assert_eq!(result(&events).errors[0].kind, ErrorKind::Auth);
    assert_eq!(result(&events).text, "First.");

    let events = replay.turn("the connection breaks in each answer");
    let done = result(&events);
    assert_eq!(done.status, RunStatus::Failed);
    assert_eq!(done.errors[0].kind, ErrorKind::Network);
    let attempts = (1..=5).map(|_| (1, ErrorKind::Network));
    assert_eq!(retries(&events), attempts.collect::<Vec<_>>());
    assert!(names(&events).contains(&"retract"));
    assert_eq!(done.text, "This answer breaks off in the mid", "the last");

    let events = replay.turn("500, then an answer");
    assert_eq!(retries(&events), [(1, ErrorKind::Overloaded)]);
    assert_eq!(result(&events).text, "After the error.");
}

#[test]
fn work_continues_after_an_interrupted_tool() {
    let mut replay = replay(include_str!("sessions/acp_errors/stdout.ndjson"));
    for _ in 0..12 {
        result(&replay.turn("x"));
    }
    let events = replay.interrupted("sleep", r#""cancelled""#);
    let done = result(&events);
    assert_eq!(done.status, RunStatus::Aborted);
    assert_eq!(tools(&events), [("bash", ToolKind::Execute)]);
    assert_eq!(tokens(done.usage), Some((1200, 34)));

    // The turn waits for the command.
    let events = replay.turn("in the background");
    let expected = [
        ("bash", ToolKind::Execute),
        ("read_bash", ToolKind::Execute),
    ];
    assert_eq!(tools(&events), expected);
    assert_eq!(result(&events).text, "Started.Started.");
    assert_eq!(result(&replay.turn("text")).text, HELLO);

    let events = replay.turn("a sub-agent");
    assert_eq!(tools(&events), [("task", ToolKind::Task)]);
    assert_eq!(
        result(&events).text,
        "Task done.",
        "and not the sub-agent's text"
    );
    let of_agent = |event: &&AgentEvent| match event {
        AgentEvent::Text(e) => e.parent_tool_id.as_deref() == Some("call_k1"),
        _ => false,
    };
    assert_eq!(events.iter().filter(of_agent).count(), 9);

    let events = replay.turn("nobody listens");
    assert_eq!(result(&events).errors[0].kind, ErrorKind::Network);
    assert_eq!(retries(&events).len(), 5);
    assert_eq!(result(&events).usage, None);
}

#[test]
fn tools_are_reported_as_in_a_run() {
    let recording = include_str!("sessions/acp_tools/stdout.ndjson");
    let mut replay = replay_of(recording, with_server);
    replay.answer(PermissionAnswer::Allow);
    assert_eq!(tools(&replay.turn("shell")), [("bash", ToolKind::Execute)]);
    let events = replay.turn("thinking");
    assert_eq!(names(&events).join(" "), "thinking text turn_end done");
    assert_eq!(result(&events).usage.unwrap().reasoning_tokens, Some(56));

    let events = replay.turn("write");
    let expected = [
        ("create", ToolKind::Edit),
        ("edit", ToolKind::Edit),
        ("view", ToolKind::Read),
        ("view", ToolKind::Read),
    ];
    assert_eq!(tools(&events), expected);
    let [made, edited, seen, missing] = outputs(&events)[..] else {
        panic!("{:?}", outputs(&events));
    };
    assert!(made.0.starts_with("Created file /") && made.0.ends_with(" with 8 characters"));
    assert!(edited.0.ends_with(" updated with changes."));
    assert_eq!((made.1, edited.1), (Some(false), Some(false)));
    assert_eq!(seen, ("one\nthree\n", Some(false)));
    assert_eq!(missing, ("Path does not exist", Some(true)));
    let changes: Vec<_> = payloads::<FileChange>(&events)
        .map(|e| (e.change, e.tool_id.clone()))
        .collect();
    let expected = [
        (ChangeKind::Add, Some("call_w1".into())),
        (ChangeKind::Update, Some("call_w2".into())),
    ];
    assert_eq!(changes, expected);
    // The creation of a file is reported as text of the model.
    assert_eq!(result(&events).text, "Writing.Written.");

    let events = replay.turn("fail");
    let expected = [
        ("bash", ToolKind::Execute),
        ("no_such_tool", ToolKind::Other),
        ("view", ToolKind::Read),
    ];
    assert_eq!(tools(&events), expected);
    assert!(
        outputs(&events)
            .iter()
            .all(|(_, failed)| *failed == Some(true))
    );

    assert_eq!(result(&replay.turn("plan")).text, "Planned.");
    let events = replay.turn("a server's tool");
    let mcp = payloads::<ToolUse>(&events).find_map(|e| e.mcp.clone());
    let mcp = mcp.unwrap();
    assert_eq!((mcp.server.as_str(), mcp.tool.as_str()), ("tiny", "echo"));
    assert_eq!(
        outputs(&events),
        [("echo: héllo 世界 🎉 env=-", Some(false))]
    );
    let events = replay.turn("one that fails");
    assert_eq!(tools(&events), [("tiny-fail", ToolKind::Mcp)]);
    assert_eq!(outputs(&events), [("failed on purpose: None", Some(true))]);

    let events = replay.turn("cached");
    let usage = result(&events).usage.unwrap();
    assert_eq!(tokens(Some(usage)), Some((10000 - 8192, 42)));
    assert_eq!(usage.cache_read_tokens, Some(8192));
    assert_eq!(usage.reasoning_tokens, Some(14));
    result(&replay.turn("cut off"));
    result(&replay.turn("no answer"));

    replay.answer(PermissionAnswer::Deny(None));
    let events = replay.turn("two at once, which nobody permits");
    let done = result(&events);
    assert_eq!(done.status, RunStatus::Incomplete);
    assert_eq!(done.text, "Two at once.");
    assert_eq!(done.permission_denials.len(), 2);
    let rejected = "The user rejected this tool call.";
    assert_eq!(outputs(&events), [(rejected, Some(true)); 2]);
}

#[test]
fn model_text_is_an_answer_even_if_it_looks_like_an_error() {
    let recording = include_str!("sessions/acp_tools/stdout.ndjson");
    let mut replay = replay_of(recording, |params| params.slash_commands = true);
    replay.answer(PermissionAnswer::AllowAlways);
    let mut texts = Vec::new();
    for _ in 0..24 {
        texts.push(result(&replay.turn("/x")).text.clone());
    }
    // A command of the CLI itself.
    assert!(texts[14].starts_with("Context Usage"), "{texts:?}");
    assert_eq!(texts[21], "Error: this is what the model said");
    let reported = "Info: Request failed due to a transient API error. Retrying...";
    assert_eq!(texts[22], reported);
    assert_eq!(texts[23], "The whole answer.");
    let prompts = replay.written();
    let is_command = |it: &serde_json::Value| it["params"]["prompt"][0]["text"] == "/x";
    assert!(prompts.iter().any(is_command));
}

#[test]
fn a_prompt_is_no_command() {
    let mut replay = replay(include_str!("sessions/acp_cancel/stdout.ndjson"));
    replay.turn(" /context");
    let text = &replay.written()[2]["params"]["prompt"][0]["text"];
    assert_eq!(text, "\u{200b} /context");
}
