//! Sessions recorded on both sides. For the CLI's recorded output, the session must write the recorded input.

use teamster_testkit::events::tokens;

use super::shown::shown;
use super::*;

struct Dialog {
    peer: Peer,
    stdin: Vec<Value>,
}

impl Dialog {
    fn new(scenario: &str, options: &SessionOptions) -> Self {
        Self {
            peer: Peer::recorded(scenario, options),
            stdin: stdin(scenario),
        }
    }

    /// Begins a turn before the CLI sends this response.
    fn begin(&mut self, answer: u64, prompt: &str) {
        self.peer
            .until(|line| line["id"] == answer && line["method"].is_null());
        assert_eq!(self.peer.session.turn(), None);
        self.peer.begin(prompt);
    }

    fn end(&mut self) -> (Vec<String>, RunResult) {
        let (events, result) = self.peer.end();
        (shown(&events), result)
    }

    fn turn(&mut self, answer: u64, prompt: &str) -> (Vec<String>, RunResult) {
        self.begin(answer, prompt);
        self.end()
    }

    /// Asserts that all lines were played, and that the written lines equal the recorded ones.
    fn over(mut self) {
        self.peer.rest();
        assert_eq!(self.peer.unknown, 0);
        let mut written = self.peer.written;
        for messages in [&mut written, &mut self.stdin] {
            messages[0]["params"]["clientInfo"]["version"] = Value::Null;
        }
        assert_eq!(written, self.stdin);
    }
}

/// Returns the recorded messages to the CLI.
fn stdin(scenario: &str) -> Vec<Value> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sessions");
    let text = std::fs::read_to_string(folder.join(scenario).join("stdin.ndjson")).unwrap();
    let lines = text.lines().map(serde_json::from_str);
    lines.collect::<Result<_, _>>().unwrap()
}

fn options(mode: PermissionMode) -> SessionOptions {
    let mut options = bypassing();
    options.params.permission = mode;
    options.params.model = Some("gpt-5.5".into());
    options.params.working_directory = Some("/home/dev/ws".into());
    options
}

#[test]
fn interrupted() {
    let mut dialog = Dialog::new("interrupted", &options(PermissionMode::Bypass));
    dialog.begin(3, "[[sleep_tool]]");
    // The command is the last reported item.
    dialog.peer.until(|line| line["id"] == 4);
    dialog.peer.command(SessionCommand::Interrupt);
    let (events, result) = dialog.end();
    assert!(result.aborted);
    assert_eq!(result.open_tool_ids.len(), 1);
    assert_eq!(events[1], "text msg_0002: starting");
    dialog.begin(6, "[[slow]]");
    dialog.peer.until(|line| line["id"] == 7);
    dialog.peer.command(SessionCommand::Interrupt);
    let (_, result) = dialog.end();
    assert_eq!(result.text, "one ");
    // The end of that command does not belong to this turn.
    let (events, result) = dialog.turn(8, "[[two_turn]]");
    assert_eq!(
        events,
        [
            "session gpt-5.5",
            "text msg_0008: users: 6",
            "turn_end false",
            "done Completed"
        ]
    );
    assert_eq!(
        result.usage.and_then(|usage| usage.input_tokens),
        Some(1200)
    );
    dialog.over();
}

#[test]
fn steered() {
    let mut dialog = Dialog::new("steered", &options(PermissionMode::Bypass));
    dialog.begin(3, "[[slow]]");
    dialog.peer.until(|line| line["id"] == 4);
    dialog.peer.command(SessionCommand::Steer(
        CommandId::new(1),
        "and [[show]]".into(),
    ));
    let (events, result) = dialog.end();
    assert_eq!(
        events,
        [
            "session gpt-5.5",
            "text msg_0002: one ",
            "retract msg_0002",
            "text msg_0004: saw: and [[show]]",
            "turn_end false",
            "done Completed"
        ]
    );
    assert_eq!(result.text, "saw: and [[show]]");
    assert_eq!(dialog.peer.settled, [(CommandId::new(1), Ok(()))]);
    dialog.over();
}

#[test]
fn background() {
    let mut dialog = Dialog::new("background", &options(PermissionMode::Bypass));
    let (_, result) = dialog.turn(3, "[[bg]]");
    assert_eq!(result.open_tool_ids, ["call_0003".into()]);
    // The command ends while another one runs.
    let (events, result) = dialog.turn(4, "[[sleep5]]");
    assert_eq!(
        events,
        [
            "session gpt-5.5",
            r#"tool_use command_execution Execute call_0008 {"command":"/bin/bash -lc 'echo begun; sleep 5; echo done'"}"#,
            r#"tool_result call_0008 Some(false) "begun\ndone\n""#,
            "text msg_0010: slept",
            "turn_end false",
            "done Completed"
        ]
    );
    assert!(result.open_tool_ids.is_empty());
    dialog.turn(5, "[[two_turn]]");
    dialog.over();
}

#[test]
fn asked() {
    let mut options = options(PermissionMode::AcceptEdits);
    options.permissions = PermissionPolicy::ask(|_| async { PermissionAnswer::Allow });
    let mut dialog = Dialog::new("asked", &options);
    let turn = |dialog: &mut Dialog, id, prompt, answer: Option<PermissionAnswer>| {
        dialog.begin(id, prompt);
        if let Some(answer) = answer {
            let request = dialog.peer.asked();
            dialog.peer.answer(&request, answer);
        }
        dialog.end().0
    };
    let deny = || Some(PermissionAnswer::Deny(None));
    let events = turn(&mut dialog, 3, "[[patch_out]]", deny());
    assert_eq!(
        events[1..5],
        [
            r#"tool_use file_change Edit call_0003 {"changes":[{"path":"/var/outside.txt","kind":"add"}]}"#,
            "permission file_change call_0003 Requested",
            "permission file_change call_0003 Denied",
            r#"tool_result call_0003 Some(true) """#,
        ]
    );
    let events = turn(
        &mut dialog,
        4,
        "[[patch_out]]",
        Some(PermissionAnswer::Allow),
    );
    assert_eq!(
        events[3..6],
        [
            "permission file_change call_0008 Allowed",
            r#"tool_result call_0008 Some(false) """#,
            "file_change Add /var/outside.txt",
        ]
    );
    let events = turn(&mut dialog, 5, "[[mcp_ok]]", deny());
    assert_eq!(
        events[2..5],
        [
            "permission echo call_0013 Requested",
            "permission echo call_0013 Denied",
            r#"tool_result call_0013 Some(true) "user rejected MCP tool call""#,
        ]
    );
    let always = Some(PermissionAnswer::AllowAlways);
    let events = turn(&mut dialog, 6, "[[mcp_ok]]", always);
    assert_eq!(events[3], "permission echo call_0018 Allowed");
    // The CLI does not ask again.
    let events = turn(&mut dialog, 7, "[[mcp_ok]]", None);
    assert_eq!(
        events[2],
        r#"tool_result call_0023 Some(false) "echo: hällo 🌍 env=-""#
    );
    dialog.over();
}

#[test]
fn retried() {
    let mut dialog = Dialog::new("retried", &options(PermissionMode::Bypass));
    let (events, result) = dialog.turn(3, "[[retry_again]]");
    assert_eq!(
        events[1..6],
        [
            "text msg_0002: Whole message. ",
            "text msg_0003: part of ",
            "retract msg_0003",
            "retry 1/2 Network",
            "text msg_0006: part of it all",
        ]
    );
    assert_eq!(result.text, "Whole message. part of it all");
    let (events, result) = dialog.turn(4, "[[retry_longer]]");
    assert_eq!(
        events[1..5],
        [
            "text msg_0008: Whole message.",
            "retry 1/2 Network",
            "retract msg_0008",
            "text msg_0010: Whole message. And more",
        ]
    );
    assert_eq!(result.text, "Whole message. And more");
    let (_, result) = dialog.turn(5, "[[mid_stream_disconnect]]");
    assert_eq!(json!(result.errors[0].kind), "network");
    assert_eq!(result.text, "This text will be cut");
    dialog.over();
}

/// Returns a session with agents of newer models.
fn with_agents(scenario: &str) -> Dialog {
    let mut options = options(PermissionMode::Bypass);
    options.params.model = Some("gpt-6.1-sol".into());
    Dialog::new(scenario, &options)
}

/// Returns the events without the inputs of calls, which are ids.
fn outlines(events: &[String]) -> Vec<&str> {
    (events.iter())
        .map(|line| {
            line.split_once(" {")
                .map_or(line.as_str(), |(head, _)| head)
        })
        .collect()
}

/// The main agent waits for none of the three agents. Another agent started one of them.
#[test]
fn agents() {
    let mut dialog = with_agents("agents");
    let (events, result) = dialog.turn(3, "Start them.");
    assert!(events[2].starts_with(
        r#"tool_use spawn_agent Task call_mock_0_0_1 {"agent_path":"/root/ask_the_inner_one","agent_thread_id":""#
    ));
    assert_eq!(
        outlines(&events)[1..],
        [
            "text msg_mock_0_0_0: Spawning.",
            "tool_use spawn_agent Task call_mock_0_0_1",
            r#"tool_result call_mock_0_0_1 Some(false) "/root/ask_the_inner_one""#,
            "tool_use spawn_agent Task call_mock_0_0_2",
            r#"tool_result call_mock_0_0_2 Some(false) "/root/work_beside""#,
            "text msg_mock_1_0_0: Not waiting.",
            "(call_mock_0_0_1) tool_use spawn_agent Task call_mock_agent0_0_0_0",
            r#"(call_mock_0_0_1) tool_result call_mock_agent0_0_0_0 Some(false) "/root/ask_the_inner_one/inner_work""#,
            "(call_mock_0_0_2) thinking rs_mock_agent2_0_0_0: Beside.",
            "(call_mock_0_0_1) tool_use wait Task call_mock_agent0_0_0_1",
            "(call_mock_0_0_2) tool_use command_execution Execute exec-b1eced75-d097-4356-9349-8d2e62dd4ba1",
            r#"(call_mock_0_0_2) tool_result exec-b1eced75-d097-4356-9349-8d2e62dd4ba1 Some(false) "beside\n""#,
            "(call_mock_0_0_2) text msg_mock_agent2_1_0_0: Beside done.",
            "(call_mock_agent0_0_0_0) tool_use command_execution Execute exec-df024b98-c104-4e22-b9b0-6d9b8419c94a",
            r#"(call_mock_agent0_0_0_0) tool_result exec-df024b98-c104-4e22-b9b0-6d9b8419c94a Some(false) "inner\n""#,
            "(call_mock_agent0_0_0_0) text msg_mock_agent1_1_0_0: Inner done.",
            r#"(call_mock_0_0_1) tool_result call_mock_agent0_0_0_1 Some(false) """#,
            "(call_mock_0_0_1) text msg_mock_agent0_1_0_0: Outer done.",
            "turn_end false",
            "done Completed",
        ]
    );
    assert_eq!(result.text, "Spawning.Not waiting.");
    // Two requests of each of the four.
    assert_eq!(
        tokens(result.usage),
        Some((200 + 110 + 150 + 185, 40 + 15 + 7 + 17))
    );
    let (events, result) = dialog.turn(4, "Go on.");
    assert_eq!(
        outlines(&events)[1..7],
        [
            "tool_use send_message Task call_mock_2_0_0",
            r#"tool_result call_mock_2_0_0 Some(false) "/root/work_beside""#,
            "tool_use wait Task call_mock_2_0_1",
            r#"tool_result call_mock_2_0_1 Some(false) """#,
            "(call_mock_2_0_0) text msg_mock_agent2_2_0_0: More done.",
            "text msg_mock_3_0_0: Second done.",
        ]
    );
    assert_eq!(tokens(result.usage), Some((200 + 99, 40 + 7)));
    dialog.over();
}

#[test]
fn agents_failed() {
    let mut dialog = with_agents("agents_failed");
    let (events, result) = dialog.turn(3, "Start it.");
    assert_eq!(
        outlines(&events)[3..],
        [
            "tool_use wait Task call_mock_0_0_1",
            "(call_mock_0_0_0) text msg_mock_agent0_0_0_0: cut he",
            "retract msg_mock_agent0_0_0_0",
            "retry 1/2 Network",
            "notice Warning agent /root/this_one_fails failed: The request is bad.",
            r#"tool_result call_mock_0_0_1 Some(false) """#,
            "text msg_mock_1_0_0: It failed.",
            "turn_end false",
            "done Completed",
        ]
    );
    assert_eq!(tokens(result.usage), Some((200, 40)));
    dialog.over();
}

#[test]
fn agents_interrupted() {
    let mut dialog = with_agents("agents_interrupted");
    dialog.begin(3, "Start them.");
    dialog.peer.until(|line| line["id"] == 5);
    dialog.peer.command(SessionCommand::Interrupt);
    let (_, result) = dialog.end();
    assert!(result.aborted);
    // The commands of the three, which were asked to end.
    assert_eq!(result.open_tool_ids.len(), 3);
    assert_eq!(tokens(result.usage), Some((500, 100)));
    let (events, result) = dialog.turn(10, "Go on.");
    assert_eq!(events[1], "text msg_mock_2_0_0: Second.");
    assert_eq!(tokens(result.usage), Some((100, 20)));
    dialog.over();
}

#[test]
fn agents_of_older_models() {
    let mut dialog = Dialog::new("agents_v1", &options(PermissionMode::Bypass));
    let (events, result) = dialog.turn(3, "[[agent_v1]]");
    let agent = events[3]
        .strip_prefix(r#"tool_result call_0004 Some(false) ""#)
        .and_then(|rest| rest.strip_suffix(r#" (pending_init)""#))
        .unwrap()
        .to_owned();
    assert_eq!(
        events[1..12],
        [
            "text msg_0002: Spawning.".to_owned(),
            r#"tool_use spawn_agent Task call_0004 {"prompt":"do it [[child]]"}"#.to_owned(),
            format!(r#"tool_result call_0004 Some(false) "{agent} (pending_init)""#),
            format!(r#"tool_use wait Task call_0007 {{"receiver_thread_ids":["{agent}"]}}"#),
            "(call_0004) text msg_0009: child works".to_owned(),
            r#"(call_0004) tool_use command_execution Execute call_0011 {"command":"/bin/bash -lc 'sleep 2; echo child'"}"#.to_owned(),
            r#"(call_0004) tool_result call_0011 Some(false) "child\n""#.to_owned(),
            "(call_0004) text msg_0013: child answer".to_owned(),
            format!(r#"tool_result call_0007 Some(false) "{agent} (completed): child answer""#),
            format!(r#"tool_use close_agent Task call_0016 {{"receiver_thread_ids":["{agent}"]}}"#),
            format!(r#"tool_result call_0016 Some(false) "{agent} (completed): child answer""#),
        ]
    );
    assert_eq!(tokens(result.usage), Some((7200, 240)));
    dialog.over();
}

#[test]
fn cleared() {
    let mut dialog = Dialog::new("cleared", &options(PermissionMode::Default));
    let (events, _) = dialog.turn(3, "[[plan]]");
    assert_eq!(
        events[1..4],
        [
            "plan A InProgress, B Pending",
            "plan A Completed, B InProgress",
            "text msg_0008: planned",
        ]
    );
    let before = dialog.peer.session.session_id();
    dialog.peer.command(SessionCommand::SetModel(
        CommandId::new(1),
        "gpt-5.4".into(),
    ));
    let mode = PermissionMode::AcceptEdits;
    dialog
        .peer
        .command(SessionCommand::SetPermission(CommandId::new(2), mode));
    let (events, _) = dialog.turn(4, "[[two_turn]]");
    assert_eq!(
        events[..3],
        [
            "session gpt-5.4",
            "notice Warning Model metadata for `gpt-5.4` not found. Defaulting to fallback metadata; this can degrade performance and cause issues.",
            "text msg_0010: users: 4",
        ]
    );
    dialog.peer.until(|line| line["id"] == 6);
    dialog
        .peer
        .command(SessionCommand::Clear(CommandId::new(3)));
    let (events, result) = dialog.turn(8, "[[two_turn]]");
    // The model knows nothing of the earlier conversation.
    assert_eq!(events[2], "text msg_0012: users: 2");
    assert_ne!(dialog.peer.session.session_id(), before);
    assert_eq!(result.session_usage, result.usage);
    assert_eq!(dialog.peer.settled.len(), 3);
    dialog.over();
}

#[test]
fn forked() {
    let mut options = options(PermissionMode::Default);
    let asked_for = &stdin("forked")[3]["params"]["threadId"];
    options.params.session_id = asked_for.as_str().map(str::to_owned);
    options.params.fork = true;
    let mut dialog = Dialog::new("forked", &options);
    dialog.begin(2, "[[two_turn]]");
    let (events, result) = dialog.end();
    assert_eq!(events[1], "text msg_0004: users: 4");
    // The total continues from that of the earlier session, which is unknown here.
    let input = |usage: Option<teamster_core::Usage>| usage.and_then(|usage| usage.input_tokens);
    assert_eq!(input(result.usage), Some(1200));
    assert_eq!(input(result.session_usage), Some(2400));
    let (_, result) = dialog.turn(5, "[[two_turn]]");
    assert_eq!(input(result.usage), Some(1200));
    assert_eq!(input(result.session_usage), Some(3600));
    dialog.over();
}

#[test]
fn held_back_by_a_hook() {
    let mut dialog = Dialog::new("hook", &options(PermissionMode::Bypass));
    let (_, result) = dialog.turn(3, "Are you ready?");
    assert_eq!(result.text, "Ready.");
    // The hook checked that prompt, too. The CLI calls both turns completed.
    let (events, result) = dialog.turn(4, "Do what is forbidden.");
    let error = "the model was not asked: a hook held the prompt back: not this prompt";
    assert_eq!(
        events,
        [
            "session gpt-5.5".to_owned(),
            format!("error Permission {error}"),
            "turn_end true".to_owned(),
            "done Failed".to_owned()
        ]
    );
    assert_eq!(result.text, "");
    assert_eq!(result.usage, None);
    dialog.over();
}
