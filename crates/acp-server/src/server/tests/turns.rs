//! Prompts and the responses to them.

use super::*;

#[test]
fn a_turn_ends_with_the_answer_to_its_prompt() {
    let mut editor = Editor::with_session();
    editor.prompt(2, "hi");
    let Some(Action::Prompt { prompt, setup, .. }) = editor.actions.pop() else {
        panic!();
    };
    assert_eq!((&*prompt.text, setup.resumed), ("hi", false));
    editor.turn("s1.1");
    editor.log(json!({"type": "text", "text": "Hello", "messageId": "m"}));
    assert!(!editor.has_answer(2));
    let usage =
        json!({"inputTokens": 100, "outputTokens": 20, "cacheReadTokens": 5, "reasoningTokens": 3});
    editor.done(
        "s1.1",
        json!({"usage": usage, "totalCostUsd": 0.25, "costSource": "reported"}),
    );
    let answer = editor.answer(2)["result"].clone();
    assert_eq!(answer["stopReason"], "end_turn");
    assert_eq!(
        answer["usage"],
        json!({"totalTokens": 125, "inputTokens": 100, "outputTokens": 20, "thoughtTokens": 3, "cachedReadTokens": 5})
    );
    assert_eq!(answer["_meta"]["teamster"]["costUsd"], 0.25);
    assert_eq!(answer["_meta"]["teamster"]["usage"], usage);

    editor.prompt(3, "more");
    let Some(Action::Prompt { setup, .. }) = editor.actions.pop() else {
        panic!();
    };
    assert!(setup.resumed);
}

#[test]
fn a_failed_turn_is_an_error_with_the_agent_s_error_as_data() {
    let mut editor = Editor::with_session();
    editor.prompt(2, "hi");
    editor.turn("s1.1");
    let error = json!({"message": "limit", "code": "CLI_ERROR", "kind": "rate_limit", "retryable": true, "retryAfterMs": 7});
    editor.done("s1.1", json!({"status": "failed", "errors": [error]}));
    let answer = editor.answer(2);
    assert_eq!(answer["error"]["code"], -32603);
    assert_eq!(answer["error"]["data"]["teamster"], error);
}

#[test]
fn a_failed_turn_without_a_prompt_is_a_notice() {
    let mut editor = Editor::with_session();
    let error =
        json!({"message": "limit", "code": "CLI_ERROR", "kind": "budget", "retryable": false});
    let failed = json!({"status": "failed", "errors": [error]});
    let stopped = json!({"status": "aborted", "aborted": true});
    for (fields, expected) in [(failed, vec!["Turn failed: limit\n"]), (stopped, vec![])] {
        editor.messages.clear();
        editor.done("s1.1", fields);
        let updates = editor.messages.iter().map(|it| &it["params"]["update"]);
        let thoughts = updates.filter(|it| it["sessionUpdate"] == "agent_thought_chunk");
        let texts: Vec<_> = thoughts.map(|it| &it["content"]["text"]).collect();
        assert_eq!(texts, expected);
    }
}

#[test]
fn stop_reasons() {
    let error = |kind: &str| json!([{"message": "x", "code": "CLI_ERROR", "kind": kind, "retryable": false}]);
    for (fields, reason) in [
        (json!({"stopReason": "max_tokens"}), "max_tokens"),
        (json!({"stopReason": "refusal"}), "refusal"),
        (json!({"status": "aborted", "aborted": true}), "cancelled"),
        (
            json!({"status": "failed", "errors": error("max_turns")}),
            "max_turn_requests",
        ),
        // The editor's user has denied every call, and the agent reports that.
        (
            json!({"status": "incomplete", "text": "I may not.", "permissionDenials": [{"toolName": "Bash"}]}),
            "end_turn",
        ),
    ] {
        let mut editor = Editor::with_session();
        editor.prompt(2, "hi");
        editor.turn("s1.1");
        editor.done("s1.1", fields);
        assert_eq!(editor.answer(2)["result"]["stopReason"], reason);
    }
}

#[test]
fn both_ways_to_cancel_end_the_turn_as_cancelled() {
    let cancels = [
        ("session/cancel", json!({"sessionId": "s1"})),
        ("$/cancel_request", json!({"requestId": 2})),
    ];
    for (method, params) in cancels {
        let mut editor = Editor::with_session();
        editor.prompt(2, "hi");
        editor.turn("s1.1");
        editor.actions.clear();
        editor.notify(method, params);
        assert_eq!(
            editor.actions,
            [Action::Interrupt {
                session_id: "s1".to_owned()
            }]
        );
        assert!(!editor.has_answer(2));
        // A cancelled turn that completes still reports `cancelled`.
        editor.done("s1.1", json!({}));
        assert_eq!(editor.answer(2)["result"]["stopReason"], "cancelled");
    }
}

#[test]
fn cancel_between_prompts_stops_what_the_agent_began() {
    let mut editor = Editor::with_session();
    editor.notify("session/cancel", json!({"sessionId": "s1"}));
    assert_eq!(editor.actions, []);
    editor.prompt(2, "hi");
    editor.turn("s1.1");
    editor.done("s1.1", json!({}));
    editor.actions.clear();
    editor.notify("session/cancel", json!({"sessionId": "s1"}));
    let session_id = "s1".to_owned();
    assert_eq!(editor.actions, [Action::Interrupt { session_id }]);
}

#[test]
fn prompt_waits_for_the_turn_and_can_be_cancelled_meanwhile() {
    let mut editor = Editor::with_session();
    for id in 2..5 {
        editor.prompt(id, &format!("prompt {id}"));
    }
    editor.turn("s1.1");
    editor.notify("$/cancel_request", json!({"requestId": 3}));
    assert_eq!(editor.answer(3)["result"]["stopReason"], "cancelled");
    editor.actions.clear();
    editor.done("s1.1", json!({}));
    assert_eq!(editor.answer(2)["result"]["stopReason"], "end_turn");
    let Some(Action::Prompt { prompt, .. }) = editor.actions.pop() else {
        panic!();
    };
    assert_eq!(prompt.text, "prompt 4");
}

#[test]
fn another_client_s_turn_is_shown_and_is_no_answer() {
    let mut editor = Editor::with_session();
    editor.prompt(2, "hi");
    editor.updates();
    editor
        .log(json!({"type": "user:message", "runId": "s1.1", "text": "mine", "from": "terminal"}));
    editor.done("s1.1", json!({}));
    assert!(!editor.has_answer(2));
    let updates = editor.updates();
    assert_eq!(
        updates[0]["params"]["update"]["sessionUpdate"],
        "user_message_chunk"
    );
    editor.turn("s1.2");
    editor.done("s1.2", json!({}));
    assert!(editor.has_answer(2));
}

#[test]
fn the_end_of_a_log_answers_the_prompt_of_its_turn_and_no_other() {
    let mut editor = Editor::with_session();
    editor.prompt(2, "hi");
    let lost = AgentError::new(Code::Interrupted, ErrorKind::Interrupted, "killed");
    // The turn begins in another log.
    editor.host(|server, out| server.lost("s1", "s1", &lost, out));
    assert!(!editor.has_answer(2));
    editor.turn("s12.1");
    editor.host(|server, out| server.lost("s1", "s1", &lost, out));
    assert!(!editor.has_answer(2));
    editor.host(|server, out| server.lost("s1", "s12", &lost, out));
    let answer = editor.answer(2);
    assert_eq!(answer["error"]["data"]["teamster"]["kind"], "interrupted");
    // One that was cancelled is answered as such.
    editor.prompt(3, "more");
    editor.turn("s13.1");
    editor.notify("session/cancel", json!({"sessionId": "s1"}));
    editor.host(|server, out| server.lost("s1", "s13", &lost, out));
    assert_eq!(editor.answer(3)["result"]["stopReason"], "cancelled");
}
