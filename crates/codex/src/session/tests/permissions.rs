//! Permissions of the agent, and requests of the CLI. The lines are hand-made.

use super::*;

fn numbered(number: u64) -> CommandId {
    CommandId::new(number)
}

#[test]
fn permission_handler_decides_the_approval_policy() {
    use PermissionMode::{AcceptEdits, Bypass, Default, Plan, ReadOnly};
    let policy = |mode, permissions: PermissionPolicy| {
        let mut options = SessionOptions::default();
        options.params.permission = mode;
        options.permissions = permissions;
        let peer = Peer::new(&options);
        let params = peer.params("thread/start").clone();
        let text = |name: &str| params[name].as_str().unwrap_or("-").to_owned();
        (text("sandbox"), text("approvalPolicy"))
    };
    let handler = || PermissionPolicy::ask(|_| async { PermissionAnswer::Allow });
    for (mode, permissions, expected) in [
        (Default, PermissionPolicy::Deny, ("-", "never")),
        (ReadOnly, PermissionPolicy::Deny, ("read-only", "never")),
        (
            AcceptEdits,
            PermissionPolicy::Deny,
            ("workspace-write", "never"),
        ),
        (
            Bypass,
            PermissionPolicy::Deny,
            ("danger-full-access", "never"),
        ),
        (Default, handler(), ("-", "-")),
        (ReadOnly, handler(), ("read-only", "on-request")),
        (AcceptEdits, handler(), ("workspace-write", "on-request")),
        (Bypass, handler(), ("danger-full-access", "never")),
        (Default, PermissionPolicy::Allow, ("-", "-")),
        // Nothing may be changed, even if all requests are allowed.
        (ReadOnly, PermissionPolicy::Allow, ("read-only", "never")),
        (Plan, handler(), ("read-only", "on-request")),
        (Plan, PermissionPolicy::Allow, ("read-only", "never")),
    ] {
        let (sandbox, approvals) = policy(mode, permissions);
        assert_eq!((&*sandbox, &*approvals), expected, "{mode:?}");
    }
}

/// Returns the CLI's response, reduced to what matters here.
fn settings(id: u64, config: &Value) -> Value {
    answer(id, &json!({"config": config, "origins": {}}))
}

#[test]
fn a_resumed_session_does_not_keep_earlier_permissions() {
    for (config, sandbox, approvals) in [
        (json!({}), "read-only", "on-request"),
        (
            json!({"sandbox_mode": "workspace-write", "approval_policy": "untrusted"}),
            "workspace-write",
            "untrusted",
        ),
        (
            json!({"default_permissions": ":danger-full-access"}),
            "danger-full-access",
            "on-request",
        ),
        (
            json!({"default_permissions": "mine"}),
            "read-only",
            "on-request",
        ),
        (
            json!({"projects": {"/nowhere": {"trust_level": "trusted"}}}),
            "workspace-write",
            "on-request",
        ),
        (
            json!({"projects": {"/nowhere/else": {"trust_level": "trusted"}}}),
            "read-only",
            "on-request",
        ),
    ] {
        for fork in [false, true] {
            let mut options = bypassing();
            options.params.permission = PermissionMode::Default;
            options.params.session_id = Some(THREAD.into());
            options.params.fork = fork;
            options.permissions = PermissionPolicy::Allow;
            let mut peer = Peer::new(&options);
            assert_eq!(peer.params("config/read")["cwd"], "/nowhere");
            peer.methods();
            peer.json(&settings(2, &config));
            let method = if fork { "thread/fork" } else { "thread/resume" };
            assert_eq!(
                *peer.params(method),
                json!({"threadId": THREAD, "excludeTurns": true, "cwd": "/nowhere",
                       "sandbox": sandbox, "approvalPolicy": approvals,
                       "approvalsReviewer": "user"}),
                "{config}"
            );
        }
    }
    // If the CLI names no sandbox, it is the narrowest.
    let mut options = bypassing();
    options.params.permission = PermissionMode::Default;
    options.params.session_id = Some(THREAD.into());
    let mut peer = Peer::new(&options);
    peer.json(&json!({"id": 2, "error": {"code": -32600, "message": "no"}}));
    let params = peer.params("thread/resume");
    assert_eq!(
        (&params["sandbox"], &params["approvalPolicy"]),
        (&json!("read-only"), &json!("never"))
    );
}

#[test]
fn directories_are_added_to_those_of_the_user() {
    let mut options = bypassing();
    options.params.permission = PermissionMode::AcceptEdits;
    options.params.add_dirs = vec!["/a".into(), "/u".into()];
    let mut peer = Peer::new(&options);
    let workspace = json!({"writable_roots": ["/u", "/v"], "network_access": true,
                           "exclude_slash_tmp": true});
    peer.json(&settings(2, &json!({"sandbox_workspace_write": workspace})));
    assert_eq!(
        peer.params("thread/start")["config"],
        json!({"sandbox_workspace_write.writable_roots": ["/a", "/u", "/v"]})
    );
    // A turn with another mode has them, too.
    peer.command(SessionCommand::SetPermission(
        numbered(1),
        PermissionMode::ReadOnly,
    ));
    peer.command(SessionCommand::SetPermission(
        numbered(2),
        PermissionMode::AcceptEdits,
    ));
    peer.begin("hi");
    peer.json(&opened(3));
    assert_eq!(
        peer.params("turn/start")["sandboxPolicy"],
        json!({"type": "workspaceWrite", "writableRoots": ["/a", "/u", "/v"],
               "networkAccess": true, "excludeTmpdirEnvVar": false, "excludeSlashTmp": true})
    );
    assert_eq!(peer.settled, [(numbered(1), Ok(())), (numbered(2), Ok(()))]);
}

#[test]
fn the_default_of_a_session_that_began_otherwise_is_looked_up() {
    let mut peer = open_session(&bypassing());
    peer.json(&turn_ended("t1", "completed"));
    peer.over();
    peer.methods();
    peer.command(SessionCommand::SetPermission(
        numbered(1),
        PermissionMode::Default,
    ));
    peer.begin("again");
    assert_eq!(peer.methods(), ["config/read"]);
    peer.json(&settings(4, &json!({"sandbox_mode": "workspace-write"})));
    assert_eq!(
        peer.params("turn/start")["sandboxPolicy"]["type"],
        "workspaceWrite"
    );
    assert_eq!(peer.params("turn/start")["approvalPolicy"], "never");
}
