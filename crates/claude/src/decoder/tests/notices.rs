//! Informational lines, hooks that end a run, and files written by sub-agents.

use serde_json::{Value, json};
use teamster_core::{AgentEvent, ChangeKind, FileChange, Notice};
use teamster_testkit::events::payloads;

use super::{SESSION, block, delta, end, init, names, run, start, stream};

fn system(subtype: &str, fields: &Value) -> String {
    let mut line = json!({"type": "system", "subtype": subtype, "session_id": SESSION});
    for (name, value) in fields.as_object().unwrap() {
        line[name] = value.clone();
    }
    line.to_string()
}

#[test]
fn information_for_users_is_a_notice() {
    for (subtype, fields, expected) in [
        (
            "vcs_state_changed",
            json!({"kind": "commit", "cwd": "/ws", "branch": "main"}),
            "git commit on main in /ws",
        ),
        (
            "vcs_state_changed",
            json!({"kind": "merge", "cwd": "/ws"}),
            "git merge in /ws",
        ),
        (
            "code_change_published",
            json!({"action": "created", "url": "https://x/1"}),
            "code change created: https://x/1",
        ),
        (
            "session_title_changed",
            json!({"title": "Blue"}),
            "the session's title is: Blue",
        ),
        (
            "memory_saved",
            json!({"written_paths": ["a.md", "b.md"]}),
            "memory saved: a.md, b.md",
        ),
        (
            "instruction_size_warning",
            json!({"total_chars": 50, "total_limit_chars": 40, "file_count": 1}),
            "the instruction files have 50 characters; at most 40 are recommended",
        ),
        (
            "session_writes_lost",
            json!({"error_code": "ENOSPC", "lost": ["transcript"]}),
            "the disk is full, and this was not saved: transcript",
        ),
        (
            "plugin_install",
            json!({"status": "failed", "name": "p", "error": "no"}),
            "the plugins of p could not be installed: no",
        ),
        (
            "ui_notify",
            json!({"plugin": "p", "title": "Done"}),
            "p: Done",
        ),
    ] {
        let (events, result) = run(&[init(), system(subtype, &fields)]);
        let AgentEvent::Notice(notice) = &events[1] else {
            panic!("{subtype}: {events:?}")
        };
        assert_eq!(notice.message, expected);
        assert_eq!(result.diagnostics.unknown, 0);
    }
}

#[test]
fn bookkeeping_is_no_event_and_other_lines_are_unknown() {
    for subtype in ["memory_recall", "ui_panes", "plugin_install", "shell_cwd"] {
        let (events, _) = run(&[init(), system(subtype, &json!({"status": "started"}))]);
        assert_eq!(names(&events)[1], "error", "{subtype}: {events:?}");
    }
    let (events, result) = run(&[init(), system("a_new_one", &json!({}))]);
    assert_eq!(
        (names(&events)[1], result.diagnostics.unknown),
        ("unknown", 1)
    );
}

#[test]
fn lines_for_the_clis_own_screens_are_notices_or_silent() {
    let line = |kind: &str, fields: Value| {
        let mut line = json!({"type": kind, "uuid": "u", "session_id": SESSION});
        for (name, value) in fields.as_object().unwrap() {
            line[name] = value.clone();
        }
        line.to_string()
    };
    let goal =
        json!({"condition": "tests pass", "iterations": 2, "set_at": 1, "tokens_at_start": 1});
    for (kind, fields, expected) in [
        (
            "os_notification",
            json!({"message": "Claude is waiting", "notification_type": "idle"}),
            Some("Claude is waiting"),
        ),
        (
            "active_goal",
            json!({"value": goal}),
            Some("goal not met yet, round 2: tests pass: not looked at yet"),
        ),
        (
            "active_goal",
            json!({"value": null}),
            Some("the goal is met, or no longer pursued"),
        ),
        (
            "refusal_continuation",
            json!({"phase": "begin", "salvage_text": "so far"}),
            Some("the model refused, and is asked again"),
        ),
        ("refusal_continuation", json!({"phase": "end"}), None),
        ("stream_mode", json!({"mode": "thinking"}), None),
        ("attachment", json!({"attachment": {}}), None),
    ] {
        let (events, result) = run(&[init(), line(kind, fields)]);
        let message = payloads::<Notice>(&events)
            .map(|notice| &*notice.message)
            .next();
        assert_eq!(message, expected, "{kind}");
        assert_eq!(result.diagnostics.unknown, 0, "{kind}");
    }
}

#[test]
fn message_without_a_stop_reason_is_retracted_by_the_next() {
    let stop = || stream(&json!({"type": "message_stop"}));
    let reason = stream(&json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}}));
    let streamed = |id: &str| [start(id), block(0, "text"), delta(0, id)];
    let broken = [
        &streamed("a")[..],
        &[stop()],
        &streamed("b")[..],
        &[reason.clone(), stop()],
    ]
    .concat();
    let (events, result) = run(&[&[init()][..], &broken, &[end(&json!({}))]].concat());
    assert!(names(&events).contains(&"retract"), "{events:?}");
    assert_eq!(result.text, "b");
    let two = [
        &streamed("a")[..],
        &[reason.clone(), stop()],
        &streamed("b")[..],
        &[reason, stop()],
    ]
    .concat();
    let (_, result) = run(&[&[init()][..], &two, &[end(&json!({}))]].concat());
    assert_eq!(result.text, "ab");
}

#[test]
fn a_file_that_a_sub_agent_wrote_is_that_of_its_call() {
    let call = |id: &str, name: &str, input: &Value| {
        json!({"type": "assistant", "parent_tool_use_id": "t0", "session_id": SESSION, "message":
            {"id": id, "model": "m", "content": [{"type": "tool_use", "id": id, "name": name, "input": input}]}})
        .to_string()
    };
    let ended = |id: &str, text: &str, is_error: bool| {
        json!({"type": "user", "parent_tool_use_id": "t0", "session_id": SESSION, "message":
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": text,
             "is_error": is_error}]}})
        .to_string()
    };
    let (events, _) = run(&[
        init(),
        call("t1", "Write", &json!({"file_path": "/ws/a", "content": ""})),
        ended("t1", "File created successfully at: /ws/a", false),
        call("t2", "NotebookEdit", &json!({"notebook_path": "/ws/b"})),
        ended("t2", "Updated cell", false),
        call("t3", "Edit", &json!({"file_path": "/ws/c"})),
        ended("t3", "String to replace not found", true),
    ]);
    let changes: Vec<_> = payloads::<FileChange>(&events)
        .map(|it| (&*it.path, it.change))
        .collect();
    assert_eq!(
        changes,
        [("/ws/a", ChangeKind::Add), ("/ws/b", ChangeKind::Update)]
    );
}

/// Made by hand: JavaScript cuts a text inside a character.
#[test]
fn half_a_character_loses_no_change_of_a_file() {
    let call = json!({"type": "assistant", "parent_tool_use_id": null, "session_id": SESSION, "message":
        {"id": "m1", "model": "m", "content": [{"type": "tool_use", "id": "t1", "name": "Write",
         "input": {"file_path": "/ws/a", "content": ""}}]}});
    let ended = json!({"type": "user", "parent_tool_use_id": null, "session_id": SESSION, "message":
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "Done"}]},
        "tool_use_result": {"type": "create", "filePath": "/ws/HALF"}});
    let ended = ended.to_string().replace("HALF", "\\ud83d");
    let (events, _) = run(&[init(), call.to_string(), ended]);
    let changes: Vec<_> = payloads::<FileChange>(&events)
        .map(|it| (&*it.path, it.change))
        .collect();
    assert_eq!(changes, [("/ws/\u{fffd}", ChangeKind::Add)]);
}
