//! Cases that no recording has in isolation. The lines are hand-made, in recorded shapes.

use teamster_core::{RunStatus, TurnEnd, Usage};
use teamster_testkit::events::payloads;

use super::shown::shown;
use super::*;

fn failing(message: &str, info: &Value, again: bool) -> Value {
    notification(
        "error",
        json!({"turnId": "t1", "willRetry": again, "error": {"message": message,
               "codexErrorInfo": info, "additionalDetails": null}}),
    )
}

/// Returns the events of a turn with these lines that ends well.
pub(super) fn turn_of(lines: &[Value]) -> Vec<String> {
    let mut peer = open_session(&bypassing());
    for line in lines {
        peer.json(line);
    }
    peer.json(&turn_ended("t1", "completed"));
    let (events, _) = peer.over();
    shown(&events)[1..].to_vec()
}

pub(super) const END: [&str; 2] = ["turn_end false", "done Completed"];

#[test]
fn lines_of_another_turn_or_thread_are_not_of_this_one() {
    let other = |mut line: Value| {
        line["params"]["threadId"] = json!("other");
        line
    };
    assert_eq!(
        turn_of(&[
            command("completed", "t0", "c0", "completed"),
            message("completed", "t0", "m0", "late"),
            delta("t0", "m0", "late"),
            other(delta("t1", "m0", "of an agent")),
            other(command("started", "t1", "c1", "inProgress")),
            notification(
                "error",
                json!({"turnId": "t0", "willRetry": false,
                "error": {"message": "late"}})
            ),
            turn_ended("t0", "failed"),
            other(turn_ended("t1", "failed")),
            notification(
                "turn/plan/updated",
                json!({"turnId": "t0", "plan": [{"step": "a"}]})
            ),
        ]),
        END
    );
}

/// The lines are in the shapes of the CLI's own schema.
#[test]
fn events_of_service_and_machine_are_notices() {
    let buffering = |shown: bool| {
        notification(
            "model/safetyBuffering/updated",
            json!({"turnId": "t1", "model": "gpt-x", "useCases": [], "reasons": [],
                   "showBufferingUi": shown, "fasterModel": null}),
        )
    };
    let recovery = |stage: &str, message: &str| {
        notification(
            &format!("modelProvider/authRecovery{stage}"),
            json!({"turnId": "t1", "provider": "corp", "message": message}),
        )
    };
    let lines = turn_of(&[
        recovery("Started", "signing in again"),
        recovery("Completed", "signed in"),
        notification(
            "model/verification",
            json!({"turnId": "t1", "verifications": ["trustedAccessForCyber"]}),
        ),
        buffering(true),
        buffering(false),
        notification(
            "windows/worldWritableWarning",
            json!({"samplePaths": ["C:\\a", "C:\\b"], "extraCount": 3, "failedScan": false}),
        ),
        notification(
            "turn/moderationMetadata",
            json!({"turnId": "t1", "metadata": {}}),
        ),
    ]);
    assert_eq!(
        lines[..5],
        [
            "notice Warning corp: signing in again",
            "notice Info corp: signed in",
            "notice Warning the service asks for a verification of the account: trustedAccessForCyber",
            "notice Info the service holds the answer of gpt-x back to check it",
            "notice Warning the sandbox cannot protect folders that everyone may write: C:\\a, C:\\b and 3 more",
        ]
    );
    assert_eq!(lines[5..], END);
}

/// Such hooks are about a tool or the answer: the model gets the reason, and the turn continues.
#[test]
fn hook_that_blocks_a_stop_is_no_error() {
    let hook = |turn: &str, status: &str| {
        notification(
            "hook/completed",
            json!({"turnId": turn, "run": {"eventName": "stop", "status": status,
                   "entries": [{"kind": "feedback", "text": "go on"}]}}),
        )
    };
    let taken = notification(
        "item/completed",
        json!({"turnId": "t1", "item": {"type": "userMessage", "id": "u1"}}),
    );
    assert_eq!(
        turn_of(&[
            hook("t0", "blocked"),
            hook("t1", "completed"),
            hook("t1", "failed"),
            taken.clone(),
            hook("t1", "blocked"),
            hook("t1", "stopped"),
        ]),
        END
    );
    // A hook whose block the CLI ignored is no error either.
    assert_eq!(turn_of(&[hook("t1", "blocked"), taken]), END);
}

/// As Codex 0.169.0 prints it, shortened. The call that the hook denies is in no item.
#[test]
fn hook_that_blocks_a_tool_denies_a_call() {
    let taken = notification(
        "item/completed",
        json!({"turnId": "t1", "item": {"type": "userMessage", "id": "u1"}}),
    );
    let hook = notification(
        "hook/completed",
        json!({"turnId": "t1", "run": {"id": "pre-tool-use:0:/<session-flags>/config.toml:call_mock_0_0_0",
               "eventName": "preToolUse", "handlerType": "command", "status": "blocked",
               "entries": [{"kind": "feedback", "text": "not this command"}]}}),
    );
    let mut peer = open_session(&bypassing());
    for line in [taken, hook, turn_ended("t1", "completed")] {
        peer.json(&line);
    }
    let (_, result) = peer.over();
    assert_eq!(result.status, RunStatus::Incomplete);
    let denial = &result.permission_denials[0];
    assert_eq!(denial.tool_name, "PreToolUse hook");
    assert_eq!(denial.reason.as_deref(), Some("not this command"));
}

/// The command of an earlier turn continues in the background.
#[test]
fn output_between_two_turns_begins_none() {
    let mut peer = open_session(&bypassing());
    peer.json(&command("started", "t1", "c1", "inProgress"));
    peer.json(&turn_ended("t1", "completed"));
    let (_, result) = peer.over();
    assert_eq!(result.open_tool_ids, ["c1".into()]);
    peer.json(&command("completed", "t1", "c1", "completed"));
    peer.json(&failing("late", &json!("other"), false));
    peer.json(&notification("warning", json!({"message": "careful"})));
    assert_eq!(peer.session.turn(), None);
    peer.begin("again");
    peer.json(&turn_answer(4, "t2"));
    peer.json(&turn_ended("t2", "completed"));
    let (events, _) = peer.over();
    assert_eq!(
        shown(&events),
        ["notice Warning careful", "session gpt-5.5", END[0], END[1]]
    );
}

#[test]
fn a_turn_that_the_cli_begins_by_itself() {
    let mut peer = open_session(&bypassing());
    peer.json(&turn_ended("t1", "completed"));
    peer.over();
    peer.json(&turn_started("t2"));
    assert_eq!(peer.session.turn(), None, "there is nothing to report yet");
    peer.json(&delta("t2", "m1", "by the way"));
    assert_eq!(
        peer.session.turn(),
        Some(teamster_core::provider::TurnOrigin::Unasked)
    );
    peer.methods();
    peer.command(SessionCommand::Interrupt);
    assert_eq!(peer.methods(), ["turn/interrupt"]);
    peer.json(&turn_ended("t2", "interrupted"));
    let (events, _) = peer.over();
    assert_eq!(
        shown(&events)[..3],
        ["session gpt-5.5", "text m1: by the way", "turn_end true"]
    );
}

/// The CLI adds a prompt to the active turn.
#[test]
fn turn_begun_by_the_cli_joins_the_next_prompt() {
    let mut peer = open_session(&bypassing());
    peer.json(&turn_ended("t1", "completed"));
    peer.over();
    peer.json(&turn_started("t2"));
    peer.begin("again");
    peer.command(SessionCommand::Interrupt);
    peer.methods();
    peer.json(&turn_answer(4, "t2"));
    assert_eq!(peer.methods(), ["turn/interrupt"], "it was started already");
    peer.json(&turn_ended("t2", "interrupted"));
    peer.over();
    // The CLI's own turn may be over by then.
    peer.json(&turn_started("t3"));
    peer.begin("and again");
    peer.json(&turn_ended("t3", "completed"));
    assert!(!peer.session.is_over());
    peer.json(&turn_answer(6, "t4"));
    peer.json(&turn_started("t4"));
    peer.json(&turn_ended("t4", "completed"));
    peer.over();
}

#[test]
fn errors_are_classified_by_message_or_code() {
    let mut kinds = Vec::new();
    for (message, info) in [
        ("Something new", json!("contextWindowExceeded")),
        ("Something new", json!("usageLimitExceeded")),
        ("Something new", json!("rateLimitExceeded")),
        ("Something new", json!("serverOverloaded")),
        ("Something new", json!("unauthorized")),
        ("Something new", json!("modelNotFound")),
        ("Something new", json!("badRequest")),
        ("Something new", json!("bioPolicy")),
        (
            "Something new",
            json!({"httpConnectionFailed": {"httpStatusCode": 403}}),
        ),
        (
            "Something new",
            json!({"responseStreamDisconnected": {"httpStatusCode": null}}),
        ),
        ("Something new", json!("other")),
        ("Something new", json!(null)),
        ("Something new", json!({"new": {}})),
        ("stream disconnected before completion: x", json!("other")),
        (
            "The requested model 'm' does not exist.",
            json!("badRequest"),
        ),
        ("", json!("unauthorized")),
    ] {
        let mut peer = open_session(&bypassing());
        peer.json(&failing(message, &info, false));
        peer.json(&notification(
            "turn/completed",
            json!({"turn": {"id": "t1", "status": "failed",
                            "error": {"message": message, "codexErrorInfo": info}}}),
        ));
        let (events, result) = peer.over();
        assert_eq!(shown(&events).len(), 4, "{:?}", shown(&events));
        kinds.push(json!(result.errors[0].kind));
    }
    let expected = "
        context_window quota rate_limit overloaded auth model_not_found invalid invalid auth
        network internal internal internal network model_not_found auth
    ";
    assert_eq!(kinds, expected.split_ascii_whitespace().collect::<Vec<_>>());
}

#[test]
fn an_error_in_a_continued_turn_is_a_notice() {
    let lines = [
        failing("one", &json!("other"), false),
        failing("two", &json!("other"), false),
    ];
    assert_eq!(
        turn_of(&lines),
        ["notice Warning one", "notice Warning two", END[0], END[1]]
    );
    // Without anything after it, the failure is the result.
    let mut peer = open_session(&bypassing());
    peer.json(&lines[0]);
    peer.session.finish(Exit::new(1), 0);
    let (events, result) = peer.result();
    assert_eq!(
        shown(&events),
        ["session gpt-5.5", "error Internal one", "done Failed"]
    );
    assert_eq!(result.exit_code, Some(1));
}

#[test]
fn plans_and_models() {
    let plan = |status: &str| {
        notification(
            "turn/plan/updated",
            json!({"turnId": "t1", "plan": [{"step": "A", "status": status},
                                            {"step": "B", "status": "pending"}]}),
        )
    };
    let rerouted = notification(
        "model/rerouted",
        json!({"turnId": "t1", "fromModel": "gpt-5.5", "toModel": "gpt-5.4", "reason": "x"}),
    );
    assert_eq!(
        turn_of(&[
            plan("inProgress"),
            plan("inProgress"),
            plan("completed"),
            rerouted.clone()
        ]),
        [
            "plan A InProgress, B Pending",
            "plan A Completed, B Pending",
            "notice Warning the service answers with the model gpt-5.4",
            END[0],
            END[1]
        ]
    );
    let mut peer = open_session(&bypassing());
    peer.json(&rerouted);
    peer.json(&turn_ended("t1", "completed"));
    assert_eq!(peer.over().1.model.as_deref(), Some("gpt-5.4"));
    peer.begin("again");
    peer.json(&turn_answer(4, "t2"));
    peer.json(&turn_ended("t2", "completed"));
    assert_eq!(peer.over().1.model.as_deref(), Some("gpt-5.5"));
}

#[test]
fn usage_of_a_session_whose_total_is_not_known() {
    let used = |turn: &str, total: u64, last: u64| {
        notification(
            "thread/tokenUsage/updated",
            json!({"turnId": turn, "tokenUsage": {
                "total": {"inputTokens": total, "outputTokens": 1},
                "last": {"inputTokens": last, "outputTokens": 1}}}),
        )
    };
    let mut options = bypassing();
    options.params.session_id = Some(THREAD.into());
    let mut peer = open_session(&options);
    peer.json(&used("t1", 1000, 30));
    peer.json(&used("t1", 1020, 20));
    // A repeated report adds nothing, and a report of an earlier turn is not counted.
    peer.json(&used("t1", 1020, 20));
    peer.json(&used("t0", 900, 10));
    // The total has restarted.
    peer.json(&used("t1", 7, 7));
    peer.json(&turn_ended("t1", "completed"));
    let (events, result) = peer.over();
    let usage = result.usage.unwrap();
    assert_eq!(usage.input_tokens, Some(57));
    let of_end = payloads::<TurnEnd>(&events).find_map(|end| end.usage);
    assert_eq!(of_end, Some(usage));
    assert_eq!(result.session_usage.and_then(|it| it.input_tokens), Some(7));
    // A turn without a report has an unknown usage.
    peer.begin("again");
    peer.json(&turn_answer(4, "t2"));
    peer.json(&turn_ended("t2", "interrupted"));
    assert_eq!(peer.over().1.usage, None::<Usage>);
}

#[test]
fn unknown_fields_are_kept() {
    let mut peer = open_session(&bypassing());
    for line in [
        r#"{"method":"something/new","params":{"threadId":"x"}}"#,
        r#"{"method":"item/started","params":{"turnId":"t1","item":{"type":"somethingNew","id":"x"}}}"#,
        r#"{"method":"turn/completed","params":{"turn":{"id":"t1","status":"somethingNew"}}}"#,
        r#"{"method":"item/agentMessage/delta","params":{"turnId":"t1"}}"#,
        r#"{"id":99,"result":{}}"#,
        r#"{"id":null,"error":{"code":-32700,"message":"parse error"}}"#,
        r#"{"nothing":1}"#,
    ] {
        peer.line(line);
    }
    peer.json(&turn_ended("t1", "completed"));
    assert_eq!(peer.over().1.diagnostics.unknown, 7);
}

#[test]
fn a_session_that_the_cli_lets_go_of_is_resumed() {
    let mut peer = open_session(&bypassing());
    peer.json(&turn_ended("t1", "completed"));
    peer.over();
    peer.json(&notification("thread/closed", json!({"threadId": "other"})));
    peer.json(&notification("thread/closed", json!({})));
    peer.methods();
    assert_eq!(peer.session.session_id().as_deref(), Some(THREAD));
    peer.begin("again");
    assert_eq!(peer.params("thread/resume")["threadId"], THREAD);
    peer.json(&opened(4));
    assert_eq!(peer.params("turn/start")["threadId"], THREAD);
    assert_eq!(peer.methods(), ["thread/resume", "turn/start"]);
    // A session that is not on disk starts over.
    let mut peer = Peer::new(&bypassing());
    peer.json(&opened(2));
    peer.json(&notification("thread/closed", json!({})));
    peer.methods();
    peer.begin("hi");
    assert_eq!(peer.methods(), ["thread/start"]);
}

#[test]
fn an_answer_without_required_fields() {
    for line in [
        json!({"id": 2, "result": {}}),
        json!({"id": 2}),
        json!({"id": 2, "result": {"thread": {}}}),
    ] {
        let mut peer = Peer::new(&bypassing());
        peer.begin("hi");
        peer.json(&line);
        let (_, result) = peer.over();
        assert_eq!(json!(result.errors[0].kind), "protocol");
    }
    let mut peer = Peer::new(&bypassing());
    peer.begin("hi");
    peer.json(&opened(2));
    peer.json(&json!({"id": 3, "result": {"turn": {}}}));
    assert_eq!(json!(peer.over().1.errors[0].kind), "protocol");
}

#[test]
fn session_is_resumable_once_its_first_prompt_is_on_disk() {
    let mut peer = open_session(&bypassing());
    assert_eq!(peer.session.session_id(), None);
    peer.json(&item(
        "started",
        "t1",
        &json!({"type": "userMessage", "id": "u"}),
    ));
    assert_eq!(peer.session.session_id(), None);
    peer.json(&item(
        "completed",
        "t1",
        &json!({"type": "userMessage", "id": "u"}),
    ));
    assert_eq!(peer.session.session_id().as_deref(), Some(THREAD));
}
