//! Hooks of a session: its caller is asked before and after each tool.

use serde_json::{Value, json};
use teamster_core::provider::Outbox;
use teamster_core::{Decision, PermissionAnswer, PermissionEvent, PermissionRequest, ToolStage};
use teamster_testkit::events::payloads;

use super::Talk;
use crate::session::offers;

/// Plays a call of the hook, in the form that 2.1.197 has. Returns the request of the caller, the response, and the
/// decisions that are reported.
fn called(
    event: &str,
    output: (&str, Value),
    answer: PermissionAnswer,
) -> (PermissionRequest, Value, Vec<Decision>) {
    let mut talk = Talk::new(|options| options.tool_hooks = true);
    talk.turn();
    let mut input = json!({"hook_event_name": event, "tool_name": "Bash",
        "tool_input": {"command": "ls"}, "tool_use_id": "t1"});
    input[output.0] = output.1;
    talk.emit(
        &json!({"type": "control_request", "request_id": "r-1", "request": {
        "subtype": "hook_callback", "callback_id": "tool", "input": input, "tool_use_id": "t1"}}),
    );
    let asked = talk.session.outbox(Outbox::take_requests).remove(0);
    talk.session.answer(&asked, answer);
    let written = talk.written();
    assert_eq!(written[0]["response"]["request_id"], "r-1");
    let response = written[0]["response"]["response"].clone();
    let events: Vec<_> = talk.session.out().drain().collect();
    let decisions = payloads::<PermissionEvent>(&events).map(|permission| permission.decision);
    (asked, response, decisions.collect())
}

fn before(answer: PermissionAnswer) -> (Value, Vec<Decision>) {
    let (asked, response, decisions) = called("PreToolUse", ("cwd", json!("/w")), answer);
    assert_eq!(asked.stage, ToolStage::Before);
    assert_eq!(
        (&*asked.tool_name, asked.tool_id.as_deref()),
        ("Bash", Some("t1"))
    );
    assert_eq!(asked.input, json!({"command": "ls"}));
    assert!(asked.takes_input);
    (response, decisions)
}

#[test]
fn caller_denies_or_changes_a_call_before_it_runs() {
    assert_eq!(before(PermissionAnswer::Allow), (json!({}), vec![]));
    let denied = json!({"hookSpecificOutput": {"hookEventName": "PreToolUse",
        "permissionDecision": "deny", "permissionDecisionReason": "no"}});
    let deny = PermissionAnswer::deny("no");
    assert_eq!(before(deny), (denied, vec![Decision::Denied]));
    let changed = json!({"hookSpecificOutput": {"hookEventName": "PreToolUse",
        "permissionDecision": "allow", "updatedInput": {"command": "pwd"}}});
    let change = PermissionAnswer::AllowWith(json!({"command": "pwd"}));
    assert_eq!(before(change), (changed, vec![]));
}

#[test]
fn caller_adds_to_the_result_of_a_call() {
    let output = || ("tool_response", json!({"stdout": "a"}));
    let deny = || PermissionAnswer::deny("look again");
    let (asked, response, decisions) = called("PostToolUse", output(), deny());
    assert_eq!(
        asked.stage,
        ToolStage::After(Box::new(json!({"stdout": "a"})))
    );
    assert!(!asked.takes_input);
    assert_eq!(
        response,
        json!({"decision": "block", "reason": "look again"})
    );
    assert_eq!(decisions, []);
    let (_, response, _) = called("PostToolUse", output(), PermissionAnswer::Allow);
    assert_eq!(response, json!({}));

    let failed = ("error", json!("Exit code 3"));
    let (asked, response, _) = called("PostToolUseFailure", failed, deny());
    assert_eq!(
        asked.stage,
        ToolStage::After(Box::new(json!("Exit code 3")))
    );
    let expected = json!({"hookSpecificOutput": {"hookEventName": "PostToolUseFailure",
        "additionalContext": "look again"}});
    assert_eq!(response, expected);
}

#[test]
fn call_of_a_hook_that_cannot_be_read_is_denied() {
    let mut talk = Talk::new(|options| options.tool_hooks = true);
    talk.turn();
    // A form that no version is known to have. After an error, 2.1.197 runs the tool.
    talk.emit(
        &json!({"type": "control_request", "request_id": "r-1", "request": {
        "subtype": "hook_callback", "callback_id": "tool", "input": {"hook_event_name": "Before"}}}),
    );
    let written = talk.written();
    let expected = json!({"subtype": "success", "request_id": "r-1", "response":
        {"decision": "block", "reason": "hook_callback is not supported"}});
    assert_eq!(written[0]["response"], expected);
}

#[test]
fn session_without_hooks_names_none() {
    assert_eq!(offers::request(false)["request"].get("hooks"), None);
    let hooks = &offers::request(true)["request"]["hooks"];
    for event in ["PreToolUse", "PostToolUse", "PostToolUseFailure"] {
        // A person may take long. One of 2^31 ms and more is none to the CLI: it would give up at once.
        let expected = json!([{"hookCallbackIds": ["tool"], "timeout": 2_073_600}]);
        assert_eq!(hooks[event], expected);
    }
}
