//! Output of `codex app-server` 0.169.0, from the recordings in `tests/sessions`.

use teamster_core::{RunStatus, Text, Usage};
use teamster_testkit::events::payloads;

use super::shown::shown;
use super::*;

fn used(input: u64, cached: u64, written: u64, output: u64, reasoning: u64) -> Usage {
    Usage::default()
        .input_tokens(input)
        .output_tokens(output)
        .cache_read_tokens(cached)
        .cache_write_tokens(written)
        .reasoning_tokens(reasoning)
}

/// Checks the events and the usage of a turn.
#[track_caller]
fn check(peer: &mut Peer, events: &[&str], usage: Option<Usage>) -> RunResult {
    peer.begin("hi");
    checked_end(peer, events, usage)
}

#[track_caller]
fn checked_end(peer: &mut Peer, expected: &[&str], usage: Option<Usage>) -> RunResult {
    let (events, result) = peer.end();
    assert_eq!(shown(&events), expected);
    assert_eq!(result.usage, usage);
    assert_eq!(peer.unknown, 0);
    result
}

const HELLO: &str = "Hello, wörld 👋🏽 你好，世界 — done.\nSecond line.";

#[test]
fn two_turns() {
    let mut peer = Peer::recorded("app_two_turns", &bypassing());
    let first = check(
        &mut peer,
        &[
            "session gpt-5.5",
            "text msg_0002: Hello, wörld 👋🏽 你好，世界 — done.\\nSecond line.",
            "turn_end false",
            "done Completed",
        ],
        Some(used(1200, 0, 0, 40, 0)),
    );
    assert_eq!(first.text, HELLO);
    assert_eq!(first.final_message.as_deref(), Some(HELLO));
    assert_eq!(first.session_id.as_deref(), Some(THREAD));
    assert_eq!(first.model.as_deref(), Some("gpt-5.5"));
    assert_eq!(first.exit_code, None);
    let second = check(
        &mut peer,
        &[
            "session gpt-5.5",
            "text msg_0004: I will list the files.",
            r#"tool_use command_execution Execute call_0006 {"command":"/bin/bash -lc \"printf 'alpha\\\\nbeta\\\\n'; echo 'err line' >&2\""}"#,
            r#"tool_result call_0006 Some(false) "alpha\nbeta\nerr line\n""#,
            "text msg_0008: The command printed alpha and beta.",
            "turn_end false",
            "done Completed",
        ],
        Some(used(1200, 900, 0, 50, 0)),
    );
    assert_eq!(second.session_usage, Some(used(2400, 900, 0, 90, 0)));
    assert_eq!(
        second.final_message.as_deref(),
        Some("The command printed alpha and beta.")
    );
    peer.rest();
    let methods = peer.methods();
    assert_eq!(
        methods,
        [
            "initialize",
            "initialized",
            "thread/start",
            "turn/start",
            "turn/start"
        ]
    );
}

/// Each delta of the model is an event. The message that repeats them is none.
#[test]
fn text_comes_as_it_is_written() {
    let mut peer = Peer::recorded("app_two_turns", &bypassing());
    let (events, result) = peer.turn("hi");
    let pieces: Vec<_> = payloads::<Text>(&events)
        .map(|text| text.text.as_str())
        .collect();
    assert_eq!(
        pieces,
        [
            "Hello",
            ", ",
            "wörld",
            " 👋🏽",
            " 你好",
            "，世界",
            " — done",
            ".\n",
            "Second line."
        ]
    );
    assert_eq!(pieces.concat(), result.text);
}

#[test]
fn thinking_changes_of_files_searches_and_tools_of_servers() {
    let mut peer = Peer::recorded("app_rich", &bypassing());
    check(
        &mut peer,
        &[
            "session gpt-5.5",
            "thinking rs_0002: **Thinking** about it.\\n**Second** part.",
            r#"tool_use command_execution Execute call_0004 {"command":"/bin/bash -lc 'echo hi'"}"#,
            r#"tool_result call_0004 Some(false) "hi\n""#,
            "thinking rs_0006: **Concluding**",
            "text msg_0007: The answer is 42.",
            "turn_end false",
            "done Completed",
        ],
        Some(used(1300, 900, 0, 280, 210)),
    );
    check(
        &mut peer,
        &[
            "session gpt-5.5",
            r#"tool_use file_change Edit call_0010 {"changes":[{"path":"/tmp/ws/gone.txt","kind":"delete"},{"path":"/tmp/ws/new.txt","kind":"add"},{"path":"/tmp/ws/old.txt","kind":"update"}]}"#,
            r#"tool_result call_0010 Some(false) """#,
            "file_change Delete /tmp/ws/gone.txt",
            "file_change Add /tmp/ws/new.txt",
            "file_change Update /tmp/ws/old.txt",
            "text msg_0012: patched",
            "turn_end false",
            "done Completed",
        ],
        Some(used(2400, 0, 0, 80, 0)),
    );
    check(
        &mut peer,
        &[
            "session gpt-5.5",
            r#"tool_use command_execution Execute call_0015 {"command":"/bin/bash -lc 'for i in 1 2 3 4; do echo tick $i; sleep 1; done'"}"#,
            r#"tool_result call_0015 Some(false) "tick 1\ntick 2\ntick 3\ntick 4\n""#,
            "text msg_0017: ticked",
            "turn_end false",
            "done Completed",
        ],
        Some(used(2400, 0, 0, 80, 0)),
    );
    check(
        &mut peer,
        &[
            "session gpt-5.5",
            r#"tool_use web_search Search ws_0019 {"query":"rust ndjson parser","action":{"type":"search","query":"rust ndjson parser"}}"#,
            r#"tool_result ws_0019 None """#,
            "text msg_0020: Found it.",
            "turn_end false",
            "done Completed",
        ],
        Some(used(1200, 0, 0, 40, 0)),
    );
    check(
        &mut peer,
        &[
            "session gpt-5.5",
            r#"tool_use echo Mcp call_0023 {"text":"hällo 🌍","deep":{"a":[1,{"b":null}]}} of tiny"#,
            r#"tool_result call_0023 Some(false) "echo: hällo 🌍 TOKEN=v1""#,
            "text msg_0025: mcp done",
            "turn_end false",
            "done Completed",
        ],
        Some(used(2400, 0, 0, 80, 0)),
    );
    // As the last request's figures, the CLI repeats those of the previous request here.
    let cut = check(
        &mut peer,
        &[
            "session gpt-5.5",
            "text msg_0027: This answer is truncated bec",
            "error Invalid Incomplete response returned, reason: max_output_tokens",
            "turn_end true",
            "done Failed",
        ],
        Some(used(1000, 0, 0, 4096, 0)),
    );
    assert_eq!(cut.stop_reason.as_deref(), Some("max_output_tokens"));
    let cached = check(
        &mut peer,
        &[
            "session gpt-5.5",
            "text msg_0029: cached",
            "turn_end false",
            "done Completed",
        ],
        Some(used(500, 48_000, 1500, 700, 500)),
    );
    assert_eq!(
        cached.session_usage,
        Some(used(11_200, 48_900, 1500, 5356, 710))
    );
    peer.rest();
}

#[test]
fn retries_and_failures() {
    let mut peer = Peer::recorded("app_errors", &bypassing());
    check(
        &mut peer,
        &[
            "session gpt-5.5",
            "retry 1/5 Auth",
            "retry 2/5 Auth",
            "retry 3/5 Auth",
            "retry 4/5 Auth",
            "retry 5/5 Auth",
            "error Auth unexpected status 401 Unauthorized: Incorrect API key provided: sk-test-000., url: http://127.0.0.1:18080/v1/responses",
            "turn_end true",
            "done Failed",
        ],
        None,
    );
    let again = check(
        &mut peer,
        &[
            "session gpt-5.5",
            "text msg_0002: This text will be cut",
            "retract msg_0002",
            "retry 1/5 Network",
            "text msg_0004: Second attempt succeeded.",
            "turn_end false",
            "done Completed",
        ],
        Some(used(1200, 0, 0, 40, 0)),
    );
    assert_eq!(again.text, "Second attempt succeeded.");
    // The CLI replaces the total with an estimate, without any figure of the usage.
    let full = check(
        &mut peer,
        &[
            "session gpt-5.5",
            "error ContextWindow Codex ran out of room in the model's context window. Start a new thread or clear earlier history before retrying.",
            "turn_end true",
            "done Failed",
        ],
        None,
    );
    assert_eq!(full.session_usage, Some(used(1200, 0, 0, 40, 0)));
    peer.rest();
}

#[test]
fn a_server_that_does_not_start_is_reported_at_once() {
    let mut peer = Peer::recorded("app_mcp_broken", &bypassing());
    check(
        &mut peer,
        &[
            "session gpt-5.5",
            "notice Warning the MCP server bad failed to start: connection closed: initialize response (it ended before it answered, or there is no such program)",
            r#"tool_use echo Mcp call_0003 {"text":"hällo 🌍","deep":{"a":[1,{"b":null}]}} of tiny"#,
            r#"tool_result call_0003 Some(false) "echo: hällo 🌍 TOKEN=-""#,
            "text msg_0005: mcp done",
            "turn_end false",
            "done Completed",
        ],
        Some(used(2400, 0, 0, 80, 0)),
    );
    peer.rest();
}

#[test]
fn a_message_in_the_middle_of_a_turn() {
    let mut peer = Peer::recorded("app_steer", &bypassing());
    peer.begin("hi");
    peer.until(|line| line["id"] == 4);
    let steer = CommandId::new(7);
    peer.command(SessionCommand::Steer(steer, "and quickly".into()));
    assert_eq!(
        *peer.params("turn/steer"),
        json!({"threadId": "01a1ffe2-c72d-7e13-a932-542222b2eada",
               "expectedTurnId": "01a1ffe2-c755-7e11-96f9-621808f9ca4c",
               "input": [{"type": "text", "text": "and quickly", "text_elements": []}]})
    );
    assert!(peer.settled.is_empty());
    let result = checked_end(
        &mut peer,
        &[
            "session gpt-5.5",
            r#"tool_use command_execution Execute call_0003 {"command":"/bin/bash -lc 'for i in 1 2 3 4; do echo tick $i; sleep 1; done'"}"#,
            r#"tool_result call_0003 Some(false) "tick 1\ntick 2\ntick 3\ntick 4\n""#,
            "text msg_0005: Hello, wörld 👋🏽 你好，世界 — done.\\nSecond line.",
            "turn_end false",
            "done Completed",
        ],
        Some(used(2400, 0, 0, 80, 0)),
    );
    assert_eq!(result.status, RunStatus::Completed);
    assert_eq!(peer.settled, [(steer, Ok(()))]);
    peer.rest();
}

#[test]
fn requests_are_answered_and_a_refusal_is_reported_once() {
    let mut options = bypassing();
    options.params.permission = PermissionMode::AcceptEdits;
    options.permissions = PermissionPolicy::Allow;
    let mut peer = Peer::recorded("app_approval", &options);
    peer.begin("hi");
    let request = peer.asked();
    assert_eq!(request.tool_name, "command_execution");
    assert_eq!(request.tool_id.as_deref(), Some("call_0003"));
    assert_eq!(request.message.as_deref(), Some("need to write"));
    assert_eq!(
        request.input,
        json!({"command": "/bin/bash -lc 'echo data > /var/probe.txt'", "cwd": "/tmp/ws"})
    );
    peer.answer(&request, PermissionAnswer::Deny(Some("no".into())));
    assert_eq!(
        *peer.written.last().unwrap(),
        json!({"id": 0, "result": {"decision": "decline"}})
    );
    let result = checked_end(
        &mut peer,
        &[
            "session gpt-5.5",
            r#"tool_use command_execution Execute call_0003 {"command":"/bin/bash -lc 'echo data > /var/probe.txt'"}"#,
            "permission command_execution call_0003 Requested",
            "permission command_execution call_0003 Denied",
            r#"tool_result call_0003 Some(true) """#,
            "text msg_0005: escalated?",
            "turn_end false",
            "done Incomplete",
        ],
        Some(used(2400, 0, 0, 80, 0)),
    );
    assert_eq!(result.permission_denials.len(), 1);

    peer.begin("again");
    let request = peer.asked();
    peer.answer(&request, PermissionAnswer::Allow);
    assert_eq!(
        *peer.written.last().unwrap(),
        json!({"id": 1, "result": {"decision": "accept"}})
    );
    checked_end(
        &mut peer,
        &[
            "session gpt-5.5",
            r#"tool_use command_execution Execute call_0008 {"command":"/bin/bash -lc 'echo data > /var/probe.txt'"}"#,
            "permission command_execution call_0008 Requested",
            "permission command_execution call_0008 Allowed",
            r#"tool_result call_0008 Some(false) """#,
            "text msg_0010: escalated?",
            "turn_end false",
            "done Completed",
        ],
        Some(used(2400, 0, 0, 80, 0)),
    );
    peer.rest();
}

/// In the recording, one request preceded that of the session, so our numbers differ from the usual ones. The last
/// request was for a session that does not exist.
#[test]
fn a_session_that_is_resumed() {
    const ID: &str = "01a1ffe2-e153-7ff3-a77e-6efb12e7ddf7";
    let mut options = bypassing();
    options.params.session_id = Some(ID.into());
    let mut protocol = CodexSession::new(&options);
    protocol.number_requests_from(2);
    let mut peer = Peer::of(protocol);
    peer.load("app_resume");
    // The number of the first request in the recording.
    assert_eq!(
        peer.lines
            .pop_front()
            .map(|line| line.contains("userAgent")),
        Some(true)
    );
    assert_eq!(peer.params("thread/resume")["threadId"], ID);
    peer.begin("hi");
    let (events, result) = peer.end();
    assert_eq!(
        shown(&events),
        [
            "notice Info Full-history hydration is deprecated for paginated threads; use `excludeTurns: true`, then page with `thread/turns/list` and `thread/items/list`.",
            "session gpt-5.5",
            "text msg_0002: The word was unknown.",
            "turn_end false",
            "done Completed",
        ]
    );
    // Usage of the turn, not the CLI's repeated totals of earlier turns.
    assert_eq!(result.usage, Some(used(500, 1000, 0, 12, 0)));
    assert_eq!(result.session_usage, Some(used(5300, 1000, 0, 172, 0)));
    assert_eq!(result.session_id.as_deref(), Some(ID));
    assert_eq!(peer.unknown, 0);
}

#[test]
fn a_session_that_there_is_not() {
    let mut options = bypassing();
    options.params.session_id = Some("01234567-89ab-7def-8123-456789abcdef".into());
    let mut protocol = CodexSession::new(&options);
    protocol.number_requests_from(4);
    let mut peer = Peer::of(protocol);
    peer.load("app_resume");
    peer.begin("hi");
    // The last line refuses the session; the lines before are about another one.
    let last = peer.lines.pop_back().unwrap();
    assert!(last.contains("no rollout found"), "{last}");
    peer.line(&last);
    let (events, result) = peer.over();
    assert_eq!(
        shown(&events),
        [
            "error SessionNotFound no rollout found for thread id 01234567-89ab-7def-8123-456789abcdef",
            "turn_end true",
            "done Failed",
        ]
    );
    assert_eq!(result.usage, None);
    assert_eq!(peer.session.session_id(), None);
    // Another turn requests the session again.
    peer.methods();
    peer.begin("again");
    assert_eq!(peer.methods(), ["thread/resume"]);
}

#[test]
fn a_process_that_ends_in_a_turn() {
    let mut peer = Peer::recorded("app_sigterm", &bypassing());
    peer.begin("hi");
    while let Some(line) = peer.lines.pop_front() {
        peer.line(&line);
    }
    // The CLI exits with this code on request.
    let exit = Exit {
        code: Some(0),
        stderr: "\u{1b}[2m2026-11-21T20:54:00.314995Z\u{1b}[0m \u{1b}[31mERROR\u{1b}[0m \u{1b}[2mcodex_app_server\u{1b}[0m\u{1b}[2m:\u{1b}[0m Codex could not find bubblewrap on PATH. Install it.\n\u{1b}[2m2026-11-21T20:54:02.574955Z\u{1b}[0m \u{1b}[31mERROR\u{1b}[0m \u{1b}[2mcodex_core::session\u{1b}[0m\u{1b}[2m:\u{1b}[0m failed to record rollout items: thread 01a1ffe3 not found\n".into(),
        ..Exit::default()
    };
    peer.session.finish(exit, 0);
    let (events, result) = peer.result();
    assert_eq!(
        shown(&events),
        [
            "session gpt-5.5",
            "text msg_0002: starting",
            r#"tool_use command_execution Execute call_0004 {"command":"/bin/bash -lc 'echo begun; sleep 300'"}"#,
            "error Protocol the CLI's output ended before its run was over, so the answer may be incomplete",
            "done Incomplete",
        ]
    );
    assert_eq!(result.open_tool_ids, ["call_0004".into()]);
    assert_eq!(
        peer.session.session_id().as_deref(),
        Some("01a1ffe3-2bea-7f51-8ceb-6057a1dbdbf8")
    );
}
