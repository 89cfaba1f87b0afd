//! Permission rules and requests.

use super::*;

#[test]
fn tools_denied_by_rules_need_no_request() {
    let recording = include_str!("acp_denied/stdout.ndjson");
    let mut replay = replay_of(recording, |params| {
        with_server(params);
        params.permission = PermissionMode::ReadOnly;
    });
    let events = replay.turn("shell");
    let done = result(&events);
    assert_eq!(done.status, RunStatus::Incomplete);
    assert_eq!(decisions(&events), [Decision::Denied]);
    assert_eq!(done.permission_denials[0].tool_name, "bash");
    assert_eq!(
        outputs(&events),
        [(
            "Permission to run this tool was denied due to the following rules: `shell`",
            Some(true)
        )]
    );
    let events = replay.turn("write");
    assert_eq!(decisions(&events), [Decision::Denied]);
    let events = replay.turn("a server's tool");
    assert_eq!(tools(&events), [("tiny-echo", ToolKind::Mcp)]);
    assert_eq!(decisions(&events), []);
    // An option cannot allow what rules deny.
    let error = replay
        .command(|id| SessionCommand::SetPermission(id, PermissionMode::Bypass))
        .unwrap_err();
    assert_eq!(error.kind, ErrorKind::Invalid);
}

#[test]
fn the_permission_mode_can_be_changed() {
    let recording = include_str!("acp_permissions/stdout.ndjson");
    let accept_edits = |params: &mut ExecuteParams| params.permission = PermissionMode::AcceptEdits;
    let mut replay = replay_of(recording, accept_edits);
    assert_eq!(decisions(&replay.turn("write")), []);
    let asked = [Decision::Requested, Decision::Denied];
    assert_eq!(decisions(&replay.turn("shell")), asked);
    let mode = |mode| move |id| SessionCommand::SetPermission(id, mode);
    assert_eq!(replay.command(mode(PermissionMode::Bypass)), Ok(()));
    assert_eq!(decisions(&replay.turn("shell")), []);
    assert!(replay.command(mode(PermissionMode::Default)).is_err());
    assert_eq!(replay.command(mode(PermissionMode::AcceptEdits)), Ok(()));
    let events = replay.turn("shell");
    assert_eq!(decisions(&events), asked);
    assert_eq!(result(&events).status, RunStatus::Incomplete);
    let written = replay.written();
    let is_option = |it: &&serde_json::Value| it["method"] == "session/set_config_option";
    let values: Vec<_> = (written.iter().filter(is_option))
        .map(|it| it["params"]["value"].as_str().unwrap())
        .collect();
    assert_eq!(values, ["on", "off"]);
}
