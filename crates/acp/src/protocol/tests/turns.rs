//! Events of a turn.

use teamster_core::{ChangeKind, ErrorKind, Image, ImageSource, PlanStatus, RunStatus, ToolKind};

use super::*;

#[test]
fn every_kind_of_update() {
    let mut talk = Talk::ready();
    talk.begin("hi");
    talk.update(json!({"sessionUpdate": "available_commands_update", "availableCommands": []}));
    talk.update(json!({"sessionUpdate": "session_info_update", "title": "t"}));
    talk.update(json!({"sessionUpdate": "current_mode_update", "currentModeId": "plan"}));
    talk.update(
        json!({"sessionUpdate": "config_option_update", "configOptions":
                       [{"id": "model", "category": "model", "currentValue": "m7"}]}),
    );
    talk.update(json!({"sessionUpdate": "user_message_chunk", "content": {"text": "hi"}}));
    talk.update(json!({"sessionUpdate": "agent_thought_chunk", "content": {"text": "hm"}}));
    talk.update(json!({"sessionUpdate": "agent_thought_chunk", "content": {"text": ""}}));
    talk.update(
        json!({"sessionUpdate": "agent_message_chunk", "messageId": "m1",
                       "content": {"type": "text", "text": "one "}}),
    );
    talk.update(
        json!({"sessionUpdate": "agent_message_chunk", "messageId": "m1",
                       "content": {"type": "image", "mimeType": "image/png", "data": "AAEC"}}),
    );
    talk.update(json!({"sessionUpdate": "plan", "entries": [
        {"content": "a", "priority": "high", "status": "completed"}, {"content": "b"}, 7]}));
    talk.update(json!({"sessionUpdate": "usage_update", "used": 5, "size": 9}));
    talk.update(json!({"sessionUpdate": "something_new"}));
    let events = talk.end("end_turn");
    assert_eq!(
        names(&events),
        [
            "session", "offers", "thinking", "text", "text", "plan", "context", "unknown",
            "turn_end", "done"
        ]
    );
    let done = result(&events);
    assert_eq!(done.text, "one [image: image/png, 3 bytes]");
    assert_eq!(done.model.as_deref(), Some("m7"));
    assert_eq!(
        done.usage, None,
        "which turns its figures are of is not known"
    );
    let plan = events.iter().find_map(|event| match event {
        AgentEvent::Plan(e) => Some(&e.entries),
        _ => None,
    });
    let statuses: Vec<_> = plan.unwrap().iter().map(|entry| entry.status).collect();
    assert_eq!(statuses, [PlanStatus::Completed, PlanStatus::Pending]);
}

#[test]
fn a_character_may_be_cut_between_two_pieces() {
    let mut talk = Talk::ready();
    talk.begin("hi");
    for half in ["\\ud83d", "\\ude80!"] {
        let line = format!(
            r#"{{"method":"session/update","params":{{"update":{{"sessionUpdate":"agent_message_chunk","content":{{"type":"text","text":"{half}"}}}}}}}}"#
        );
        talk.assembler.line(line.as_bytes());
    }
    assert_eq!(result(&talk.end("end_turn")).text, "🚀!");
}

#[test]
fn a_call_is_reported_once_it_is_known_well_enough() {
    let mut talk = Talk::ready();
    talk.begin("hi");
    let call = |fields: Value| {
        let mut call = json!({"sessionUpdate": "tool_call_update", "toolCallId": "t1"});
        call.as_object_mut()
            .unwrap()
            .extend(fields.as_object().unwrap().clone());
        call
    };
    talk.update(
        json!({"sessionUpdate": "tool_call", "toolCallId": "t1", "title": "edit_file",
                       "kind": "edit", "status": "pending", "rawInput": {}}),
    );
    assert!(!talk.assembler.used_tools());
    talk.update(call(
        json!({"rawInput": {"path": "a.txt"}, "title": "Editing a.txt"}),
    ));
    assert!(talk.assembler.used_tools());
    talk.update(call(json!({"status": "in_progress", "content": [
        {"type": "content", "content": {"type": "text", "text": "half"}}]})));
    talk.update(call(json!({"status": "completed", "content": [
        {"type": "content", "content": {"type": "text", "text": "done"}},
        {"type": "diff", "path": "/work/a.txt", "oldText": null, "newText": "x"}]})));
    // Another call with the same id, after a late update of the first one.
    talk.update(call(json!({"status": "completed"})));
    talk.update(
        json!({"sessionUpdate": "tool_call", "toolCallId": "t1", "title": "ls -la",
                       "kind": "execute", "status": "failed", "rawOutput": "no"}),
    );
    // A call without an end, and a call of which only the end is reported.
    talk.update(json!({"sessionUpdate": "tool_call", "toolCallId": "t2", "status": "in_progress"}));
    talk.update(
        json!({"sessionUpdate": "tool_call_update", "toolCallId": "t3", "status": "failed"}),
    );
    talk.update(json!({"sessionUpdate": "tool_call", "title": "no id"}));
    let events = talk.end("end_turn");
    assert_eq!(
        names(&events),
        [
            "session",
            "tool_use",
            "tool_result",
            "file_change",
            "tool_use",
            "tool_result",
            "tool_use",
            "tool_use",
            "tool_result",
            "unknown",
            "turn_end",
            "done"
        ]
    );
    match (&events[1], &events[2], &events[3], &events[4]) {
        (
            AgentEvent::ToolUse(first),
            AgentEvent::ToolResult(ended),
            AgentEvent::FileChange(change),
            AgentEvent::ToolUse(second),
        ) => {
            assert_eq!(
                (&*first.tool_name, first.kind),
                ("edit_file", ToolKind::Edit)
            );
            assert_eq!(first.input, json!({"path": "a.txt"}));
            assert_eq!((&*ended.output, ended.is_error), ("done", Some(false)));
            assert_eq!(change.change, ChangeKind::Add);
            assert_eq!(change.tool_id.as_deref(), Some("t1"));
            assert_eq!(&*second.tool_id, "t1#2");
            assert_eq!(
                (&*second.tool_name, second.kind),
                ("execute", ToolKind::Execute)
            );
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(result(&events).open_tool_ids, [Id::from("t2")]);
}

#[test]
fn late_items_are_not_those_of_the_next_turn() {
    let mut talk = Talk::ready();
    talk.begin("one");
    talk.update(json!({"sessionUpdate": "tool_call", "toolCallId": "t1", "status": "in_progress"}));
    talk.command(SessionCommand::Interrupt);
    talk.written();
    talk.line(json!({"id": 3, "result": {"stopReason": "cancelled"}}));
    talk.ended();
    talk.update(
        json!({"sessionUpdate": "tool_call_update", "toolCallId": "t1", "status": "failed"}),
    );
    talk.text("late");
    assert_eq!(talk.assembler.turn(), None, "it is of the interrupted turn");
    talk.begin("two");
    talk.update(
        json!({"sessionUpdate": "tool_call_update", "toolCallId": "t1", "status": "failed"}),
    );
    talk.line(
        json!({"method": "session/update", "params": {"sessionId": "other", "update":
                     {"sessionUpdate": "agent_message_chunk", "content": {"text": "another's"}}}}),
    );
    talk.text("in time");
    let events = talk.end("end_turn");
    assert_eq!(
        names(&events),
        ["unknown", "unknown", "text", "turn_end", "done"]
    );
    assert_eq!(result(&events).text, "in time");
}

#[test]
fn errors_and_limits() {
    let mut talk = Talk::ready();
    talk.begin("one");
    talk.text("half");
    talk.refuse("session/prompt", 529, "Overloaded");
    let events = talk.ended();
    assert_eq!(
        names(&events),
        ["session", "text", "error", "turn_end", "done"]
    );
    assert_eq!(result(&events).errors[0].kind, ErrorKind::Overloaded);
    assert_eq!(result(&events).status, RunStatus::Failed);

    talk.begin("two");
    let events = talk.end("max_turn_requests");
    assert_eq!(result(&events).errors[0].kind, ErrorKind::MaxTurns);

    talk.begin("three");
    let events = talk.end("refusal");
    assert_eq!(result(&events).errors[0].kind, ErrorKind::Invalid);
    assert_eq!(result(&events).stop_reason.as_deref(), Some("refusal"));
    talk.begin("and");
    let events = talk.end("max_tokens");
    assert_eq!(result(&events).status, RunStatus::Failed);
    talk.begin("so on");
    let events = talk.end("new");
    assert_eq!(result(&events).status, RunStatus::Completed);

    talk.begin("four");
    let id = talk.request("session/prompt");
    let quota = "You have exceeded your monthly quota";
    talk.line(json!({"id": id, "error": quota}));
    let events = talk.ended();
    assert_eq!(result(&events).errors[0].message, quota);
    assert_eq!(result(&events).errors[0].kind, ErrorKind::Quota);
    talk.line(json!({"id": id, "result": {"stopReason": "end_turn"}}));
    talk.begin("five");
    assert_eq!(
        names(&talk.end("end_turn")),
        ["unknown", "turn_end", "done"],
        "an answer to what was answered"
    );
}

#[test]
fn requests_of_the_agent_are_refused_or_unknown() {
    let mut talk = Talk::ready();
    talk.begin("hi");
    talk.request("session/prompt");
    talk.line(
        json!({"id": "x1", "method": "fs/read_text_file", "params": {"path": "/etc/passwd"}}),
    );
    talk.line(json!({"id": 0, "method": "terminal/create", "params": {}}));
    let written = talk.written();
    assert_eq!(
        written[0],
        json!({"jsonrpc": "2.0", "id": "x1",
               "error": {"code": -32601, "message": "Method not found"}})
    );
    assert_eq!(written[1]["id"], 0);
    talk.line(json!({"method": "_agent/news", "params": {}}));
    talk.line(json!({"id": 999, "result": {}}));
    talk.line(json!({"jsonrpc": "2.0"}));
    talk.assembler.line(b"{not JSON");
    talk.line(json!({"id": 3, "result": {"stopReason": "end_turn"}}));
    let events = talk.ended();
    assert_eq!(
        names(&events),
        [
            "session", "unknown", "unknown", "unknown", "notice", "turn_end", "done"
        ]
    );
}

#[test]
fn a_prompt_is_no_command_unless_it_shall_be() {
    let sent = |prompt: &str, slash_commands: bool| {
        let mut settings = settings();
        settings.slash_commands = slash_commands;
        let mut talk = Talk::ready_with(settings, json!({}));
        talk.begin(prompt);
        let written = talk.written();
        written[0]["params"]["prompt"][0]["text"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert_eq!(sent("/help me", false), "\u{200b}/help me");
    assert_eq!(sent("\u{feff}\n /help", false), "\u{200b}\u{feff}\n /help");
    assert_eq!(sent("/help me", true), "/help me");
    assert_eq!(sent(" /help me", true), "\u{200b} /help me");
    assert_eq!(sent("and/or", false), "and/or");
}

#[test]
fn images_go_to_an_agent_that_takes_them() {
    let image = |source| Image {
        media_type: "image/png".into(),
        source,
    };
    let turn = |source| {
        let mut turn = Turn::new("look");
        turn.images = vec![image(source)];
        turn
    };
    let mut talk = Talk::ready_with(settings(), json!({"promptCapabilities": {"image": true}}));
    talk.assembler
        .begin(turn(ImageSource::Bytes(vec![0, 1, 2])));
    let written = talk.written();
    assert_eq!(
        written[0]["params"]["prompt"],
        json!([{"type": "image", "data": "AAEC", "mimeType": "image/png"},
               {"type": "text", "text": "look"}])
    );

    let mut talk = Talk::ready();
    talk.assembler.begin(turn(ImageSource::Bytes(vec![0])));
    let events = talk.ended();
    assert_eq!(
        result(&events).errors[0].message,
        "images: Agent does not accept images"
    );
}
