//! Random lines: the session never panics, each stream keeps its grammar, and no command is settled twice.

use std::collections::HashSet;

use proptest::prelude::*;

use super::*;

/// A random event of a session.
#[derive(Debug, Clone)]
enum Step {
    Line(Vec<u8>),
    Turn(String),
    Interrupt,
    Steer,
    Clear,
    Model,
    Permission(PermissionMode),
    Answer(u64, bool),
    /// The engine notices that the turn is over.
    Look,
}

fn turns() -> impl Strategy<Value = &'static str> {
    prop_oneof![Just("t1"), Just("t2"), Just("t3")]
}

fn threads() -> impl Strategy<Value = &'static str> {
    prop_oneof![5 => Just(THREAD), 1 => Just("agent")]
}

fn on_thread(mut line: Value, thread: &str) -> Value {
    line["params"]["threadId"] = json!(thread);
    line
}

/// Generates lines of every type that the CLI prints, and of some others.
fn lines() -> impl Strategy<Value = Value> {
    let text = prop_oneof!["[ab]{0,3}", ".{0,8}"];
    let stage = prop_oneof![Just("started"), Just("completed")];
    let kind = prop_oneof![
        Just("agentMessage"),
        Just("reasoning"),
        Just("commandExecution"),
        Just("fileChange"),
        Just("mcpToolCall"),
        Just("webSearch"),
        Just("collabAgentToolCall"),
        Just("subAgentActivity"),
        Just("userMessage"),
        Just("somethingNew"),
    ];
    let items = (stage, kind, turns(), 0u32..3, text.clone(), threads()).prop_map(
        |(stage, kind, turn, id, text, thread)| {
            let line = item(
                stage,
                turn,
                &json!({"type": kind, "id": format!("i{id}"), "text": text, "command": text,
                        "summary": [text], "status": "completed", "server": "s", "tool": "echo",
                        "processId": "1", "exitCode": 0, "query": text, "kind": "started",
                        "agentThreadId": "agent", "receiverThreadIds": ["agent"],
                        "changes": [{"path": text, "kind": {"type": "add"}, "diff": text}]}),
            );
            on_thread(line, thread)
        },
    );
    let agent = (turns(), turns()).prop_map(|(turn, root)| {
        notification(
            "turn/started",
            json!({"threadId": "agent", "turn": {"id": turn, "rootTurnId": root}}),
        )
    });
    let notified = prop_oneof![
        agent,
        (turns(), 0u32..3, text.clone(), threads()).prop_map(|(turn, id, text, thread)| {
            on_thread(delta(turn, &format!("i{id}"), &text), thread)
        }),
        (turns(), 0u32..3, 0u64..4, text.clone()).prop_map(|(turn, id, part, text)| {
            notification(
                "item/reasoning/summaryTextDelta",
                json!({"turnId": turn, "itemId": format!("i{id}"), "summaryIndex": part,
                       "delta": text}),
            )
        }),
        turns().prop_map(turn_started),
        (turns(), 0u8..4, threads()).prop_map(|(turn, status, thread)| {
            let words = ["completed", "interrupted", "failed", "new"];
            on_thread(turn_ended(turn, words[usize::from(status)]), thread)
        }),
        (turns(), any::<bool>(), text.clone()).prop_map(|(turn, again, text)| notification(
            "error",
            json!({"turnId": turn, "willRetry": again, "error": {"message": text}})
        )),
        (turns(), 0u64..50, 0u64..50).prop_map(|(turn, total, last)| notification(
            "thread/tokenUsage/updated",
            json!({"turnId": turn, "tokenUsage": {"total": {"inputTokens": total},
                   "last": {"inputTokens": last}}})
        )),
        text.prop_map(|text| notification("warning", json!({"message": text}))),
        Just(notification("thread/closed", json!({}))),
    ];
    let asks = (0u64..4, turns(), 0u8..4, threads()).prop_map(|(id, turn, method, thread)| {
        let method = [
            "item/commandExecution/requestApproval",
            "item/fileChange/requestApproval",
            "mcpServer/elicitation/request",
            "something/new",
        ][usize::from(method)];
        json!({"id": id, "method": method, "params": {"threadId": thread, "turnId": turn,
               "itemId": "i1", "serverName": "s",
               "_meta": {"codex_approval_kind": "mcp_tool_call", "tool_name": "echo"}}})
    });
    let answers = (1u64..12, 0u8..5, turns()).prop_map(|(id, sort, turn)| match sort {
        0 => opened(id),
        1 => turn_answer(id, turn),
        2 => answer(id, &json!({"config": {"sandbox_mode": "workspace-write"}})),
        3 => json!({"id": id, "error": {"code": -32600, "message": "no"}}),
        _ => answer(id, &json!({})),
    });
    let resolved =
        (0u64..4).prop_map(|id| notification("serverRequest/resolved", json!({"requestId": id})));
    prop_oneof![4 => items, 4 => notified, 1 => asks, 4 => answers, 1 => resolved]
}

fn steps() -> impl Strategy<Value = Step> {
    let garbled = (lines(), any::<prop::sample::Index>(), any::<u8>(), 0u8..12).prop_map(
        |(line, at, byte, garble)| {
            let mut line = line.to_string().into_bytes();
            let at = at.index(line.len());
            match garble {
                0 => line[at] = byte,
                1 => line.truncate(at),
                _ => {}
            }
            Step::Line(line)
        },
    );
    let modes = prop_oneof![
        Just(PermissionMode::Default),
        Just(PermissionMode::ReadOnly),
        Just(PermissionMode::AcceptEdits),
        Just(PermissionMode::Bypass),
    ];
    prop_oneof![
        20 => garbled,
        3 => "[ab]{0,2}".prop_map(Step::Turn),
        1 => Just(Step::Interrupt),
        1 => Just(Step::Steer),
        1 => Just(Step::Clear),
        1 => Just(Step::Model),
        1 => modes.prop_map(Step::Permission),
        1 => (0u64..4, any::<bool>()).prop_map(|(id, allow)| Step::Answer(id, allow)),
        4 => Just(Step::Look),
    ]
}

proptest! {
    #[test]
    fn any_lines_and_commands(
        steps in proptest::collection::vec(steps(), 0..60),
        resumed in any::<bool>(),
        asks in any::<bool>(),
        mode in 0u8..2,
    ) {
        let mut options = bypassing();
        if resumed {
            options.params.session_id = Some(THREAD.into());
        }
        if asks {
            options.permissions = PermissionPolicy::Allow;
        }
        if mode == 0 {
            options.params.permission = PermissionMode::Default;
        }
        let mut peer = Peer::new(&options);
        let mut commands = 0;
        let mut number = || {
            commands += 1;
            CommandId::new(commands)
        };
        for step in steps {
            match step {
                Step::Line(line) => {
                    peer.session.line(&line);
                    peer.look();
                }
                // Like the engine: one turn at a time.
                Step::Turn(prompt) if peer.session.turn().is_none() => peer.begin(&prompt),
                Step::Interrupt => peer.command(SessionCommand::Interrupt),
                Step::Steer => peer.command(SessionCommand::Steer(number(), "x".into())),
                Step::Clear if peer.session.turn().is_none() => peer.command(SessionCommand::Clear(number())),
                Step::Model => peer.command(SessionCommand::SetModel(number(), "m".into())),
                Step::Permission(mode) => peer.command(SessionCommand::SetPermission(number(), mode)),
                Step::Answer(id, allow) => {
                    let answer = if allow { PermissionAnswer::Allow } else { PermissionAnswer::Deny(None) };
                    peer.command(SessionCommand::Answer(id, answer));
                }
                Step::Turn(_) | Step::Clear | Step::Look => {}
            }
            if peer.session.is_over() {
                peer.over();
            }
        }
        if peer.session.turn().is_some() {
            peer.session.finish(Exit::new(1), 0);
            peer.result();
        }
        let settled: HashSet<_> = peer.settled.iter().map(|(command, _)| *command).collect();
        prop_assert_eq!(settled.len(), peer.settled.len());
    }
}
