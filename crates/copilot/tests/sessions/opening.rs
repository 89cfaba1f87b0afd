//! Starts of sessions.

use super::*;

#[test]
fn a_session_begins_again() {
    let recording = include_str!("acp_second_session/stdout.ndjson");
    let bypass = |params: &mut ExecuteParams| params.permission = PermissionMode::Bypass;
    let mut replay = replay_of(recording, bypass);
    let first = replay.turn("text");
    // The CLI reports that the model has no such tool before it asks the model.
    assert_eq!(result(&first).text, HELLO);
    let id = replay.assembler().session_id();
    assert_eq!(id.as_deref(), Some("fd958a8a-86b9-40c4-822b-3734c2f5463c"));
    assert_eq!(
        replay.command(|id| SessionCommand::SetModel(id, "other".into())),
        Ok(())
    );
    let second = replay.turn("text");
    assert_eq!(tokens(result(&second).usage), Some((1200, 34)));
    assert_eq!(result(&second).model.as_deref(), Some("other"));
    // The option does not revoke what the flag allows.
    let mode = |mode| move |id| SessionCommand::SetPermission(id, mode);
    let refused = replay.command(mode(PermissionMode::Default));
    assert!(refused.unwrap_err().message.starts_with("permission: "));
    assert_eq!(replay.command(mode(PermissionMode::Bypass)), Ok(()));
    assert_eq!(result(&replay.turn("shell")).status, RunStatus::Completed);
    assert_eq!(replay.command(mode(PermissionMode::Bypass)), Ok(()));

    replay.written();
    assert_eq!(replay.command(SessionCommand::Clear), Ok(()));
    let id = replay.assembler().session_id();
    assert_eq!(id, None, "it has no turn yet");
    // A new session has the model of the process's start.
    let written = replay.written();
    assert_eq!(written[0]["method"], "session/new");
    assert_eq!(written[1]["method"], "session/set_model");
    assert_eq!(written[1]["params"]["modelId"], "other");
    let id = "ad85591d-6d91-4df2-b668-8659f06cabcf";
    assert_eq!(written[1]["params"]["sessionId"], id);
}

#[test]
fn earlier_turns_are_not_reported_again() {
    let recording = include_str!("acp_load/stdout.ndjson");
    let id = "98f15d1e-95a7-420c-b4e7-464146baf2b4";
    let mut replay = replay_of(recording, |params| params.session_id = Some(id.into()));
    assert_eq!(replay.assembler().session_id().as_deref(), Some(id));
    let events = replay.turn("text");
    assert_eq!(names(&events), ["session", "text", "turn_end", "done"]);
    assert_eq!(result(&events).text, HELLO);
    // Each process starts its count at 0.
    assert_eq!(tokens(result(&events).usage), Some((1200, 34)));
    assert_eq!(result(&events).session_usage, None);
    assert_eq!(replay.written()[1]["method"], "session/load");
}

#[test]
fn a_session_that_is_not_there() {
    let recording = include_str!("acp_load_unknown/stdout.ndjson");
    let id = "833067a3-427f-4a3c-b428-81ad8bbec358";
    let mut replay = replay_of(recording, |params| params.session_id = Some(id.into()));
    let events = replay.turn("text");
    let done = result(&events);
    assert_eq!(done.status, RunStatus::Failed);
    assert_eq!(done.errors[0].kind, ErrorKind::SessionNotFound);
}

#[test]
fn a_server_that_only_the_command_line_names() {
    let mut replay = replay(include_str!("acp_mcp/stdout.ndjson"));
    let events = replay.turn("x");
    assert_eq!(result(&events).text, "The server echoed.");
    // The process exits before the next turn ends.
    let events = replay.turn("y");
    assert_eq!(result(&events).status, RunStatus::Incomplete);
    assert_eq!(result(&events).errors[0].kind, ErrorKind::Protocol);
}
