//! Cases that no recording has in isolation. The lines are hand-made, in recorded shapes.

use teamster_core::Usage;

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
    let mut play = playing(&bypassing());
    for line in lines {
        play.json(line);
    }
    play.json(&turn_ended("t1", "completed"));
    let (events, _) = play.over();
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

/// The command of an earlier turn continues in the background.
#[test]
fn output_between_two_turns_begins_none() {
    let mut play = playing(&bypassing());
    play.json(&command("started", "t1", "c1", "inProgress"));
    play.json(&turn_ended("t1", "completed"));
    let (_, result) = play.over();
    assert_eq!(result.open_tool_ids, ["c1".into()]);
    play.json(&command("completed", "t1", "c1", "completed"));
    play.json(&failing("late", &json!("other"), false));
    play.json(&notification("warning", json!({"message": "careful"})));
    assert_eq!(play.session.turn(), None);
    play.begin("again");
    play.json(&turn_answer(4, "t2"));
    play.json(&turn_ended("t2", "completed"));
    let (events, _) = play.over();
    assert_eq!(
        shown(&events),
        ["notice Warning careful", "session gpt-5.5", END[0], END[1]]
    );
}

#[test]
fn a_turn_that_the_cli_begins_by_itself() {
    let mut play = playing(&bypassing());
    play.json(&turn_ended("t1", "completed"));
    play.over();
    play.json(&turn_started("t2"));
    assert_eq!(play.session.turn(), None, "there is nothing to report yet");
    play.json(&delta("t2", "m1", "by the way"));
    assert_eq!(
        play.session.turn(),
        Some(teamster_core::provider::TurnOrigin::Unasked)
    );
    play.methods();
    play.order(Order::Interrupt);
    assert_eq!(play.methods(), ["turn/interrupt"]);
    play.json(&turn_ended("t2", "interrupted"));
    let (events, _) = play.over();
    assert_eq!(
        shown(&events)[..3],
        ["session gpt-5.5", "text m1: by the way", "turn_end true"]
    );
}

/// The CLI adds a prompt to the active turn.
#[test]
fn turn_begun_by_the_cli_joins_the_next_prompt() {
    let mut play = playing(&bypassing());
    play.json(&turn_ended("t1", "completed"));
    play.over();
    play.json(&turn_started("t2"));
    play.begin("again");
    play.order(Order::Interrupt);
    play.methods();
    play.json(&turn_answer(4, "t2"));
    assert_eq!(play.methods(), ["turn/interrupt"], "it was started already");
    play.json(&turn_ended("t2", "interrupted"));
    play.over();
    // The CLI's own turn may be over by then.
    play.json(&turn_started("t3"));
    play.begin("and again");
    play.json(&turn_ended("t3", "completed"));
    assert!(!play.session.is_over());
    play.json(&turn_answer(6, "t4"));
    play.json(&turn_started("t4"));
    play.json(&turn_ended("t4", "completed"));
    play.over();
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
        let mut play = playing(&bypassing());
        play.json(&failing(message, &info, false));
        play.json(&notification(
            "turn/completed",
            json!({"turn": {"id": "t1", "status": "failed",
                            "error": {"message": message, "codexErrorInfo": info}}}),
        ));
        let (events, result) = play.over();
        assert_eq!(shown(&events).len(), 4, "{:?}", shown(&events));
        kinds.push(json!(result.errors[0].kind));
    }
    assert_eq!(
        kinds,
        [
            "context_window",
            "quota",
            "rate_limit",
            "overloaded",
            "auth",
            "model_not_found",
            "invalid",
            "auth",
            "network",
            "internal",
            "internal",
            "internal",
            "network",
            "model_not_found",
            "auth"
        ]
    );
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
    let mut play = playing(&bypassing());
    play.json(&lines[0]);
    let exit = Exit {
        code: Some(1),
        ..Exit::default()
    };
    play.session.finish(exit, 0);
    let (events, result) = play.result();
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
    let mut play = playing(&bypassing());
    play.json(&rerouted);
    play.json(&turn_ended("t1", "completed"));
    assert_eq!(play.over().1.model.as_deref(), Some("gpt-5.4"));
    play.begin("again");
    play.json(&turn_answer(4, "t2"));
    play.json(&turn_ended("t2", "completed"));
    assert_eq!(play.over().1.model.as_deref(), Some("gpt-5.5"));
}

#[test]
fn agents_have_the_words_of_a_run() {
    let call = |stage: &str, status: &str, states: &Value| {
        item(
            stage,
            "t1",
            &json!({"type": "collabAgentToolCall", "id": "c1", "tool": "spawnAgent",
                    "status": status, "senderThreadId": THREAD, "receiverThreadIds": ["a"],
                    "prompt": "do it", "model": "", "reasoningEffort": "low",
                    "agentsStates": states}),
        )
    };
    assert_eq!(
        turn_of(&[
            call("started", "inProgress", &json!({})),
            call(
                "completed",
                "completed",
                &json!({"a": {"status": "pendingInit", "message": null}})
            ),
        ]),
        [
            r#"tool_use spawn_agent Task c1 {"prompt":"do it","receiver_thread_ids":["a"]}"#,
            r#"tool_result c1 Some(false) "a (pending_init)""#,
            END[0],
            END[1]
        ]
    );
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
    let mut play = playing(&options);
    play.json(&used("t1", 1000, 30));
    play.json(&used("t1", 1020, 20));
    // A repeated report adds nothing, and a report of an earlier turn is not counted.
    play.json(&used("t1", 1020, 20));
    play.json(&used("t0", 900, 10));
    // The total has restarted.
    play.json(&used("t1", 7, 7));
    play.json(&turn_ended("t1", "completed"));
    let (events, result) = play.over();
    let usage = result.usage.unwrap();
    assert_eq!(usage.input_tokens, Some(57));
    let of_end = events.iter().find_map(|event| match event {
        AgentEvent::TurnEnd(end) => end.usage,
        _ => None,
    });
    assert_eq!(of_end, Some(usage));
    assert_eq!(result.session_usage.and_then(|it| it.input_tokens), Some(7));
    // A turn without a report has an unknown usage.
    play.begin("again");
    play.json(&turn_answer(4, "t2"));
    play.json(&turn_ended("t2", "interrupted"));
    assert_eq!(play.over().1.usage, None::<Usage>);
}

#[test]
fn unknown_fields_are_kept() {
    let mut play = playing(&bypassing());
    for line in [
        r#"{"method":"something/new","params":{"threadId":"x"}}"#,
        r#"{"method":"item/started","params":{"turnId":"t1","item":{"type":"somethingNew","id":"x"}}}"#,
        r#"{"method":"turn/completed","params":{"turn":{"id":"t1","status":"somethingNew"}}}"#,
        r#"{"method":"item/agentMessage/delta","params":{"turnId":"t1"}}"#,
        r#"{"id":99,"result":{}}"#,
        r#"{"id":null,"error":{"code":-32700,"message":"parse error"}}"#,
        r#"{"nothing":1}"#,
    ] {
        play.line(line);
    }
    play.json(&turn_ended("t1", "completed"));
    assert_eq!(play.over().1.diagnostics.unknown, 7);
}

#[test]
fn a_session_that_the_cli_lets_go_of_is_resumed() {
    let mut play = playing(&bypassing());
    play.json(&turn_ended("t1", "completed"));
    play.over();
    play.json(&notification("thread/closed", json!({"threadId": "other"})));
    play.json(&notification("thread/closed", json!({})));
    play.methods();
    assert_eq!(play.session.session_id().as_deref(), Some(THREAD));
    play.begin("again");
    assert_eq!(play.params("thread/resume")["threadId"], THREAD);
    play.json(&opened(4));
    assert_eq!(play.params("turn/start")["threadId"], THREAD);
    assert_eq!(play.methods(), ["thread/resume", "turn/start"]);
    // A session that is not on disk starts over.
    let mut play = Play::new(&bypassing());
    play.json(&opened(2));
    play.json(&notification("thread/closed", json!({})));
    play.methods();
    play.begin("hi");
    assert_eq!(play.methods(), ["thread/start"]);
}

#[test]
fn an_answer_without_required_fields() {
    for line in [
        json!({"id": 2, "result": {}}),
        json!({"id": 2}),
        json!({"id": 2, "result": {"thread": {}}}),
    ] {
        let mut play = Play::new(&bypassing());
        play.begin("hi");
        play.json(&line);
        let (_, result) = play.over();
        assert_eq!(json!(result.errors[0].kind), "protocol");
    }
    let mut play = Play::new(&bypassing());
    play.begin("hi");
    play.json(&opened(2));
    play.json(&json!({"id": 3, "result": {"turn": {}}}));
    assert_eq!(json!(play.over().1.errors[0].kind), "protocol");
}

#[test]
fn session_is_resumable_once_its_first_prompt_is_on_disk() {
    let mut play = playing(&bypassing());
    assert_eq!(play.session.session_id(), None);
    play.json(&item(
        "started",
        "t1",
        &json!({"type": "userMessage", "id": "u"}),
    ));
    assert_eq!(play.session.session_id(), None);
    play.json(&item(
        "completed",
        "t1",
        &json!({"type": "userMessage", "id": "u"}),
    ));
    assert_eq!(play.session.session_id().as_deref(), Some(THREAD));
}
