//! The plan mode.

use teamster_core::PermissionChange;
use teamster_testkit::events::payloads;

use super::*;

#[test]
fn an_approved_plan_ends_the_plan_mode_once() {
    let mut talk = Talk::new(|options| options.params.permission = PermissionMode::Plan);
    let plan = SessionCommand::SetPermission(CommandId::new(0), PermissionMode::Plan);
    talk.session.command(plan);
    assert_eq!(talk.settled()[0].1, Ok(()));
    talk.turn();
    let status = |mode: &str| json!({"type": "system", "subtype": "status", "status": null, "permissionMode": mode});
    talk.emit(&status("plan"));
    assert_eq!(talk.session.permission_mode(), None);
    talk.emit(&status("default"));
    talk.emit(&status("default"));
    talk.emit(&result(OLD, &json!({})));
    let (events, _) = talk.end();
    let changes = payloads::<PermissionChange>(&events).map(|change| change.mode);
    assert_eq!(changes.collect::<Vec<_>>(), [PermissionMode::Default]);
    // A later process begins in that mode.
    assert_eq!(
        talk.session.permission_mode(),
        Some(PermissionMode::Default)
    );
    // Its commands would run without a request.
    let plan = SessionCommand::SetPermission(CommandId::new(1), PermissionMode::Plan);
    talk.session.command(plan);
    assert!(talk.settled()[0].1.is_err());
    assert!(talk.written().is_empty());
}

#[test]
fn a_mode_that_was_requested_is_no_change_of_the_agent() {
    let mut talk = Talk::new(|options| options.params.permission = PermissionMode::Plan);
    talk.turn();
    let edits = SessionCommand::SetPermission(CommandId::new(0), PermissionMode::AcceptEdits);
    talk.session.command(edits);
    assert_eq!(talk.written()[0]["request"]["mode"], "acceptEdits");
    talk.emit(&json!({"type": "system", "subtype": "status", "permissionMode": "acceptEdits"}));
    talk.emit(&result(OLD, &json!({})));
    let (events, _) = talk.end();
    assert!(!names(&events).contains(&"permission_mode"), "{events:?}");
    assert_eq!(talk.session.permission_mode(), None);
}
