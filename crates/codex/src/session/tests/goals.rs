//! Goals, and the turns that the CLI begins for them. The lines are those of Codex 0.169.0, shortened.

use teamster_core::provider::TurnOrigin;
use teamster_core::{ErrorKind, Notice, NoticeLevel, Text};
use teamster_testkit::events::payloads;

use super::*;

fn goal(status: &str) -> Value {
    json!({"threadId": THREAD, "objective": "all tests pass", "status": status,
           "tokenBudget": null, "tokensUsed": 1240, "timeUsedSeconds": 3,
           "createdAt": 1_795_965_048, "updatedAt": 1_795_965_050})
}

fn updated(status: &str) -> Value {
    notification(
        "thread/goal/updated",
        json!({"turnId": null, "goal": goal(status)}),
    )
}

fn request(peer: &Peer) -> u64 {
    peer.written.last().unwrap()["id"].as_u64().unwrap()
}

/// Sends a command, and responds to its request.
fn carry_out(peer: &mut Peer, prompt: &str, result: &Value) {
    peer.begin(prompt);
    peer.json(&answer(request(peer), result));
}

fn set_goal(peer: &mut Peer) {
    let set = json!({"goal": goal("active")});
    carry_out(peer, "/goal all tests pass", &set);
}

fn text(events: &[AgentEvent]) -> String {
    payloads::<Text>(events).map(|text| &*text.text).collect()
}

fn notices(events: &[AgentEvent]) -> Vec<(NoticeLevel, &str)> {
    payloads::<Notice>(events)
        .map(|notice| (notice.level, &*notice.message))
        .collect()
}

#[test]
fn a_goal_command_is_a_turn_that_reports_what_the_cli_has_done() {
    let budget = json!({"goal": {"objective": "all tests pass", "status": "budgetLimited",
                                 "tokenBudget": 1000, "tokensUsed": 1240}});
    for (prompt, method, params, result, expected) in [
        (
            "/goal  all tests pass ",
            "thread/goal/set",
            json!({"objective": "all tests pass", "status": "active", "origin": "user"}),
            json!({"goal": goal("active")}),
            "The goal is set. Codex pursues it in turns that it begins by itself, until it is reached: \
             `/goal pause` and `/goal clear` end that.",
        ),
        (
            "/goal PAUSE",
            "thread/goal/set",
            json!({"status": "paused", "origin": "user"}),
            json!({"goal": goal("paused")}),
            "The goal is paused: `/goal resume` continues it.",
        ),
        (
            "/goal resume",
            "thread/goal/set",
            json!({"status": "active", "origin": "user"}),
            json!({"goal": goal("active")}),
            "The goal is active. Codex pursues it in turns that it begins by itself, until it is reached: \
             `/goal pause` and `/goal clear` end that.",
        ),
        (
            "/goal resume",
            "thread/goal/set",
            json!({"status": "active", "origin": "user"}),
            budget.clone(),
            "The goal is budget limited, with 1240 of 1000 tokens used (`/goal clear` removes it and its budget): \
             all tests pass",
        ),
        (
            "/goal pause",
            "thread/goal/set",
            json!({"status": "paused", "origin": "user"}),
            budget,
            "The goal is budget limited, with 1240 of 1000 tokens used (`/goal clear` removes it and its budget): \
             all tests pass",
        ),
        (
            "/goal",
            "thread/goal/get",
            json!({}),
            json!({"goal": goal("active")}),
            "The goal is active, with 1240 tokens used: all tests pass",
        ),
        (
            "/goal",
            "thread/goal/get",
            json!({}),
            json!({"goal": null}),
            "There is no goal: `/goal OBJECTIVE` sets one.",
        ),
        (
            "/goal clear",
            "thread/goal/clear",
            json!({"origin": "user"}),
            json!({"cleared": true}),
            "The goal is cleared.",
        ),
        (
            "/goal clear",
            "thread/goal/clear",
            json!({"origin": "user"}),
            json!({"cleared": false}),
            "There is no goal: `/goal OBJECTIVE` sets one.",
        ),
    ] {
        let mut peer = session_with_commands();
        carry_out(&mut peer, prompt, &result);
        let mut expected_params = params;
        expected_params["threadId"] = json!(THREAD);
        assert_eq!(peer.params(method), &expected_params);
        let (events, result) = peer.over();
        assert_eq!(text(&events), expected, "{prompt}");
        assert!(result.errors.is_empty(), "{result:?}");
        assert_eq!(peer.unknown, 0);
    }
}

#[test]
fn a_turn_for_a_goal_is_unasked() {
    let mut peer = session_with_commands();
    set_goal(&mut peer);
    peer.over();
    // The same goal again is nothing new.
    peer.json(&updated("active"));
    peer.json(&turn_started("t2"));
    peer.json(&delta("t2", "m1", "I begin."));
    assert_eq!(peer.session.turn(), Some(TurnOrigin::Unasked));
    peer.json(&updated("active"));
    peer.json(&updated("complete"));
    peer.json(&turn_ended("t2", "completed"));
    let (events, _) = peer.over();
    assert_eq!(text(&events), "I begin.");
    let expected = (NoticeLevel::Info, "the goal is complete: all tests pass");
    assert_eq!(notices(&events), [expected]);
    assert_eq!(peer.unknown, 0);
}

#[test]
fn a_goal_that_the_cli_gives_up_is_a_warning() {
    for (status, expected) in [
        (
            "blocked",
            "the goal is blocked: all tests pass (`/goal resume` continues it)",
        ),
        (
            "budgetLimited",
            "the goal is budget limited: all tests pass (`/goal clear` removes it and its budget)",
        ),
        (
            "usageLimited",
            "the goal is usage limited: all tests pass (`/goal resume` continues it)",
        ),
    ] {
        let mut peer = session_with_commands();
        peer.begin("again");
        peer.json(&turn_answer(request(&peer), "t2"));
        peer.json(&turn_started("t2"));
        peer.json(&updated("active"));
        peer.json(&updated(status));
        peer.json(&notification("thread/goal/cleared", json!({})));
        peer.json(&turn_ended("t2", "completed"));
        let (events, _) = peer.over();
        let expected = [
            (NoticeLevel::Info, "the goal is active: all tests pass"),
            (NoticeLevel::Warning, expected),
            (NoticeLevel::Info, "the goal is cleared"),
        ];
        assert_eq!(notices(&events), expected);
    }
}

#[test]
fn goals_of_other_threads_and_of_runs_are_not_reported() {
    let mut of_run = bypassing();
    of_run.one_turn = true;
    for (options, thread) in [(bypassing(), "agent"), (of_run, THREAD)] {
        let mut peer = open_session(&options);
        let params = json!({"threadId": thread, "turnId": null, "goal": goal("blocked")});
        peer.json(&notification("thread/goal/updated", params));
        peer.json(&notification(
            "thread/goal/cleared",
            json!({"threadId": thread}),
        ));
        peer.json(&turn_ended("t1", "completed"));
        let (events, _) = peer.over();
        assert!(notices(&events).is_empty(), "{events:?}");
        assert_eq!(peer.unknown, 0);
    }
}

/// The next turn for a goal begins within milliseconds of the end of the last.
#[test]
fn a_goal_command_has_the_turn_that_the_cli_has_begun() {
    for started_first in [true, false] {
        let mut peer = session_with_commands();
        if started_first {
            peer.json(&turn_started("t2"));
        }
        peer.begin("/goal");
        let request = request(&peer);
        if !started_first {
            peer.json(&turn_started("t2"));
        }
        peer.json(&answer(request, &json!({"goal": goal("active")})));
        assert!(!peer.session.is_over());
        peer.json(&delta("t2", "m1", "One more step."));
        peer.methods();
        peer.command(SessionCommand::Interrupt);
        assert_eq!(peer.methods(), ["turn/interrupt"]);
        peer.json(&turn_ended("t2", "interrupted"));
        let (events, result) = peer.over();
        assert_eq!(
            text(&events),
            "The goal is active, with 1240 tokens used: all tests pass The turn in progress continues to its end.\
             One more step."
        );
        assert!(result.aborted, "{result:?}");
    }
}

#[test]
fn a_goal_that_is_paused_or_cleared_has_no_further_turn() {
    for (prompt, result, expected) in [
        (
            "/goal pause",
            json!({"goal": goal("paused")}),
            "The goal is paused: `/goal resume` continues it.",
        ),
        (
            "/goal clear",
            json!({"cleared": true}),
            "The goal is cleared.",
        ),
    ] {
        let mut peer = session_with_commands();
        peer.json(&turn_started("t2"));
        peer.begin(prompt);
        let request = request(&peer);
        peer.json(&command("started", "t2", "c1", "inProgress"));
        peer.json(&answer(request, &result));
        assert_eq!(peer.params("turn/interrupt")["turnId"], "t2");
        let terminated = &peer.params("thread/backgroundTerminals/terminate")["processId"];
        assert_eq!(terminated, "77");
        let (events, result) = peer.over();
        assert_eq!(text(&events), expected);
        assert!(!result.aborted, "{result:?}");
        peer.json(&turn_ended("t2", "interrupted"));
        assert_eq!(peer.session.turn(), None);
    }
}

#[test]
fn an_interrupt_of_a_goal_command_is_one_of_its_turn() {
    let mut peer = session_with_commands();
    peer.begin("/goal all tests pass");
    let request = request(&peer);
    peer.command(SessionCommand::Interrupt);
    peer.json(&answer(request, &json!({"goal": goal("active")})));
    assert!(!peer.session.is_over());
    peer.json(&turn_started("t2"));
    assert_eq!(peer.params("turn/interrupt")["turnId"], "t2");
    peer.json(&turn_ended("t2", "interrupted"));
    let (_, result) = peer.over();
    assert!(result.aborted, "{result:?}");
}

#[test]
fn a_goal_begins_once_the_cli_has_taken_a_changed_mode() {
    let mut peer = session_with_commands();
    let mode = SessionCommand::SetPermission(CommandId::new(7), PermissionMode::Plan);
    peer.command(mode);
    peer.begin("/goal all tests pass");
    assert_eq!(peer.methods(), ["thread/settings/update"]);
    peer.json(&answer(4, &json!({})));
    assert_eq!(peer.methods(), ["thread/goal/set"]);
    peer.json(&answer(5, &json!({"goal": goal("active")})));
    let (events, _) = peer.over();
    assert_eq!(
        text(&events),
        "The goal is set. Codex pursues none in its plan mode: choose another mode, then `/goal resume`."
    );
}

#[test]
fn an_interrupted_goal_command_ends_without_a_turn_in_plan_mode() {
    let mut peer = session_with_commands();
    let mode = SessionCommand::SetPermission(CommandId::new(7), PermissionMode::Plan);
    peer.command(mode);
    peer.begin("/goal all tests pass");
    peer.json(&answer(4, &json!({})));
    peer.command(SessionCommand::Interrupt);
    assert!(!peer.session.is_over());
    peer.json(&answer(5, &json!({"goal": goal("active")})));
    let (_, result) = peer.over();
    assert!(!result.aborted, "{result:?}");
}

#[test]
fn a_session_that_is_cleared_pauses_its_goal() {
    let mut peer = session_with_commands();
    set_goal(&mut peer);
    peer.over();
    peer.json(&turn_started("t2"));
    peer.methods();
    peer.command(SessionCommand::Clear(CommandId::new(7)));
    let request = request(&peer);
    let interrupted = json!({"threadId": THREAD, "turnId": "t2"});
    assert_eq!(peer.params("turn/interrupt"), &interrupted);
    assert_eq!(peer.methods(), ["turn/interrupt", "thread/start"]);
    let thread = json!({"thread": {"id": "other"}, "model": "gpt-5.5"});
    peer.json(&answer(request, &thread));
    assert_eq!(peer.params("thread/goal/set")["status"], "paused");
    assert_eq!(peer.params("thread/unsubscribe")["threadId"], THREAD);
}

#[test]
fn a_turn_that_the_cli_began_ends_when_the_session_is_cleared() {
    let mut peer = session_with_commands();
    peer.json(&turn_started("t2"));
    peer.json(&delta("t2", "m1", "by the way"));
    assert_eq!(peer.session.turn(), Some(TurnOrigin::Unasked));
    peer.methods();
    peer.command(SessionCommand::Clear(CommandId::new(7)));
    assert_eq!(peer.methods(), ["turn/interrupt", "thread/start"]);
    let (events, result) = peer.over();
    assert_eq!(text(&events), "by the way");
    assert!(result.aborted, "{result:?}");
    assert_eq!(result.session_id.as_deref(), Some(THREAD));
}

#[test]
fn a_refused_goal_has_the_next_step_in_its_error() {
    // Messages of Codex 0.169.0; the first is as for any request that a version does not know.
    for (prompt, message, expected) in [
        (
            "/goal x",
            "Invalid request: unknown variant `thread/goal/set`, expected one of `initialize`",
            "prompt: this version of Codex has no goals: update it, such as with `npm install -g @openai/codex`",
        ),
        (
            "/goal x",
            "goals feature is disabled",
            "prompt: Codex's goals are turned off: `codex features enable goals` turns them on, for new sessions",
        ),
        (
            "/goal pause",
            "cannot update goal for thread 01a2: no goal exists",
            "prompt: there is no goal: `/goal OBJECTIVE` sets one",
        ),
        (
            "/goal x",
            "ephemeral thread does not support goals: 01a2",
            "ephemeral thread does not support goals: 01a2",
        ),
    ] {
        let mut peer = session_with_commands();
        peer.begin(prompt);
        let error = json!({"code": -32600, "message": message});
        peer.json(&json!({"id": request(&peer), "error": error}));
        let (_, result) = peer.over();
        assert_eq!(result.errors[0].message, expected);
        assert_eq!(result.errors[0].kind, ErrorKind::Invalid);
    }
    let mut peer = session_with_commands();
    peer.begin("/goal edit");
    let (_, result) = peer.over();
    let expected = "prompt: /goal of Codex has no `edit` here: `/goal OBJECTIVE` replaces the goal";
    assert_eq!(result.errors[0].message, expected);
    assert_eq!(peer.methods(), [""; 0]);
}
