//! Agents that a turn starts. The lines are hand-made, in recorded shapes.

use teamster_core::{RunStatus, Usage, UsageReport};
use teamster_testkit::events::payloads;

use super::shown::shown;
use super::*;

/// Returns a line of an agent's thread.
fn of(thread: &str, mut line: Value) -> Value {
    line["params"]["threadId"] = json!(thread);
    line
}

fn begins(thread: &str, turn: &str, root: &str) -> Value {
    of(
        thread,
        notification(
            "turn/started",
            json!({"turn": {"id": turn, "rootTurnId": root, "status": "inProgress"}}),
        ),
    )
}

fn ends(thread: &str, turn: &str, status: &str, error: &Value) -> Value {
    of(
        thread,
        notification(
            "turn/completed",
            json!({"turn": {"id": turn, "status": status, "error": error}}),
        ),
    )
}

/// Returns the lines for a call that starts an agent or sends a message to one.
fn activity(turn: &str, call: &str, kind: &str, thread: &str) -> [Value; 2] {
    ["started", "completed"].map(|stage| {
        item(
            stage,
            turn,
            &json!({"type": "subAgentActivity", "id": call, "kind": kind, "model": null,
                    "reasoningEffort": null, "agentThreadId": thread,
                    "agentPath": format!("/root/{thread}")}),
        )
    })
}

fn used(thread: &str, turn: &str, total: u64, last: u64) -> Value {
    of(
        thread,
        notification(
            "thread/tokenUsage/updated",
            json!({"turnId": turn, "tokenUsage": {
                "total": {"inputTokens": total, "outputTokens": 1},
                "last": {"inputTokens": last, "outputTokens": 1}}}),
        ),
    )
}

impl Peer {
    fn all(&mut self, lines: impl IntoIterator<Item = Value>) {
        for line in lines {
            self.json(&line);
        }
    }

    /// Runs an agent that works for the turn `t1`.
    fn agent(&mut self, call: &str, thread: &str, turn: &str) {
        self.all(activity("t1", call, "started", thread));
        self.json(&begins(thread, turn, "t1"));
    }
}

fn input_of(usage: Option<Usage>) -> Option<u64> {
    usage.and_then(|usage| usage.input_tokens)
}

/// Version 0.159.3 does not report the turn that an agent works for.
#[test]
fn an_agent_works_for_the_turn_of_the_call_that_started_it() {
    let begins = |thread: &str, turn: &str| {
        of(
            thread,
            notification("turn/started", json!({"turn": {"id": turn}})),
        )
    };
    let mut peer = open_session(&bypassing());
    peer.all(activity("t1", "c1", "started", "a"));
    peer.json(&begins("a", "ta"));
    let spawned = activity("ta", "c2", "started", "inner");
    peer.all(spawned.map(|line| of("a", line)));
    peer.json(&begins("inner", "ti"));
    peer.json(&turn_ended("t1", "completed"));
    peer.json(&ends("a", "ta", "completed", &Value::Null));
    assert!(!peer.session.is_over());
    peer.json(&of("inner", message("completed", "ti", "m1", "inner")));
    peer.json(&ends("inner", "ti", "completed", &Value::Null));
    let (events, result) = peer.over();
    assert_eq!(shown(&events)[5], "(c2) text m1: inner");
    assert_eq!(result.diagnostics.unknown, 0);
}

/// The lines are those of gpt-5.5: the thread is in the result of the call.
#[test]
fn agents_of_older_models_have_the_call_that_started_them_too() {
    let call = |stage: &str, receivers: &[&str]| {
        item(
            stage,
            "t1",
            &json!({"type": "collabAgentToolCall", "id": "c1", "tool": "spawnAgent",
                    "status": "completed", "receiverThreadIds": receivers, "prompt": "do it",
                    "agentsStates": {}}),
        )
    };
    let mut peer = open_session(&bypassing());
    peer.json(&call("started", &[]));
    peer.json(&call("completed", &["a"]));
    peer.json(&begins("a", "ta", "t1"));
    peer.json(&of("a", message("completed", "ta", "m1", "done")));
    peer.json(&turn_ended("t1", "completed"));
    assert!(!peer.session.is_over());
    // A working agent that is closed has no end of its turn.
    peer.json(&of(
        "a",
        notification(
            "thread/status/changed",
            json!({"status": {"type": "notLoaded"}}),
        ),
    ));
    let (events, _) = peer.over();
    assert_eq!(shown(&events)[3], "(c1) text m1: done");
}

#[test]
fn agents_usage_counts_for_the_turn_and_is_reported_early() {
    let mut peer = open_session(&bypassing());
    peer.json(&used(THREAD, "t1", 100, 100));
    peer.agent("c1", "a", "ta");
    // The agent is from an earlier process: only its last request belongs to this turn.
    peer.json(&used("a", "ta", 1050, 50));
    peer.json(&used("a", "ta", 1110, 60));
    // The same report again.
    peer.json(&used("a", "ta", 1110, 60));
    peer.json(&turn_ended("t1", "completed"));
    peer.json(&ends("a", "ta", "completed", &Value::Null));
    let (events, result) = peer.over();
    let reports: Vec<_> = payloads::<UsageReport>(&events)
        .filter_map(|report| input_of(Some(report.usage)))
        .collect();
    assert_eq!(reports, [100, 150, 210]);
    assert_eq!(input_of(result.usage), Some(210));
    // The session's total is the main agent's.
    assert_eq!(input_of(result.session_usage), Some(100));
    // Usage of an agent between two turns counts for the next one.
    peer.json(&used("a", "ta", 1180, 70));
    peer.begin("again");
    peer.json(&turn_answer(4, "t2"));
    peer.json(&turn_started("t2"));
    peer.json(&used(THREAD, "t2", 300, 200));
    peer.json(&turn_ended("t2", "completed"));
    let (_, result) = peer.over();
    assert_eq!(input_of(result.usage), Some(270));
}

#[test]
fn an_interrupt_ends_agents_at_every_depth_and_waits_for_them() {
    let mut peer = open_session(&bypassing());
    peer.agent("c1", "a", "ta");
    peer.json(&of("a", command("started", "ta", "x1", "inProgress")));
    peer.written.clear();
    peer.command(SessionCommand::Interrupt);
    let notified = |peer: &mut Peer| -> Vec<_> {
        let written = std::mem::take(&mut peer.written);
        let notified = written.iter().map(|line| {
            let params = &line["params"];
            let what = params["turnId"].as_str().or(params["processId"].as_str());
            (
                line["method"].as_str().unwrap().to_owned(),
                what.unwrap().to_owned(),
            )
        });
        notified.collect()
    };
    let interrupt = |turn: &str| ("turn/interrupt".to_owned(), turn.to_owned());
    assert_eq!(notified(&mut peer), [interrupt("t1"), interrupt("ta")]);
    // An agent that begins now is interrupted, too.
    peer.json(&begins("late", "tl", "t1"));
    assert_eq!(notified(&mut peer), [interrupt("tl")]);
    peer.json(&turn_ended("t1", "interrupted"));
    assert!(!peer.session.is_over());
    let terminate = "thread/backgroundTerminals/terminate".to_owned();
    assert_eq!(notified(&mut peer), [(terminate, "77".to_owned())]);
    peer.json(&used("a", "ta", 50, 50));
    peer.json(&ends("a", "ta", "interrupted", &Value::Null));
    assert!(!peer.session.is_over());
    peer.json(&ends("late", "tl", "interrupted", &Value::Null));
    let (_, result) = peer.over();
    assert_eq!(result.status, RunStatus::Aborted);
    assert_eq!(result.open_tool_ids, ["x1".into()]);
    assert_eq!(input_of(result.usage), Some(50));
    // An agent that the interrupted turn had requested and that begins only now.
    peer.json(&begins("later", "tm", "t1"));
    assert_eq!(notified(&mut peer), [interrupt("tm")]);
    assert_eq!(peer.session.turn(), None);
}

/// The CLI refuses to interrupt the agent: its end is not awaited, and the next turn does not interrupt it.
#[test]
fn an_agent_that_outlives_an_interrupt_holds_nothing_up() {
    let mut peer = open_session(&bypassing());
    peer.agent("c1", "a", "ta");
    peer.command(SessionCommand::Interrupt);
    peer.json(&turn_ended("t1", "interrupted"));
    assert!(!peer.session.is_over());
    let id = peer.written.last().unwrap()["id"].clone();
    peer.json(&json!({"id": id, "error": {"code": -32600, "message": "no active turn"}}));
    let (_, result) = peer.over();
    assert!(result.aborted);
    peer.begin("again");
    peer.json(&turn_answer(6, "t2"));
    peer.json(&turn_started("t2"));
    peer.json(&of("a", message("completed", "ta", "m1", "still here")));
    peer.json(&used("a", "ta", 50, 50));
    peer.json(&turn_ended("t2", "completed"));
    let (events, result) = peer.over();
    assert_eq!(shown(&events)[1..], ["turn_end false", "done Completed"]);
    // But its usage is not lost.
    assert_eq!(input_of(result.usage), Some(50));
}

#[test]
fn agents_can_be_interrupted_when_the_main_one_is_done() {
    let mut peer = open_session(&bypassing());
    peer.agent("c1", "a", "ta");
    peer.json(&message("completed", "t1", "m1", "not waiting"));
    peer.json(&turn_ended("t1", "completed"));
    peer.written.clear();
    peer.command(SessionCommand::Interrupt);
    assert_eq!(
        peer.params("turn/interrupt"),
        &json!({"threadId": "a", "turnId": "ta"})
    );
    assert_eq!(peer.written.len(), 1);
    peer.json(&ends("a", "ta", "interrupted", &Value::Null));
    let (_, result) = peer.over();
    assert!(result.aborted);
    assert_eq!(result.text, "not waiting");
}

#[test]
fn a_message_while_only_agents_are_at_work() {
    let mut peer = open_session(&bypassing());
    peer.agent("c1", "a", "ta");
    peer.json(&turn_ended("t1", "completed"));
    peer.written.clear();
    peer.command(SessionCommand::Steer(CommandId::new(1), "and this".into()));
    assert_eq!(
        peer.params("turn/start"),
        &json!({"threadId": THREAD,
                "input": [{"type": "text", "text": "and this", "text_elements": []}]})
    );
    // The end of the agent does not end the turn: an answer is to come.
    peer.json(&ends("a", "ta", "completed", &Value::Null));
    assert!(!peer.session.is_over());
    peer.json(&turn_answer(4, "t2"));
    assert_eq!(peer.settled, [(CommandId::new(1), Ok(()))]);
    peer.json(&turn_started("t2"));
    peer.json(&message("completed", "t2", "m1", "heard"));
    peer.json(&turn_ended("t2", "completed"));
    let (_, result) = peer.over();
    assert_eq!(result.text, "heard");

    peer.begin("again");
    peer.json(&turn_answer(5, "t3"));
    peer.json(&turn_started("t3"));
    peer.all(activity("t3", "c2", "interacted", "a"));
    peer.json(&begins("a", "tb", "t3"));
    peer.json(&turn_ended("t3", "completed"));
    peer.command(SessionCommand::Steer(CommandId::new(2), "more".into()));
    peer.json(&json!({"id": 6, "error": {"code": -32600, "message": "no"}}));
    assert_eq!(peer.settled[1], (CommandId::new(2), Err("no".into())));
    assert!(!peer.session.is_over());
    // The agent works for the call that last sent it a message.
    peer.json(&of("a", message("completed", "tb", "m2", "again")));
    peer.json(&ends("a", "tb", "completed", &Value::Null));
    let (events, _) = peer.over();
    assert_eq!(
        shown(&events)[1..4],
        [
            r#"tool_use send_message Task c2 {"agent_path":"/root/a","agent_thread_id":"a"}"#,
            r#"tool_result c2 Some(false) "/root/a""#,
            "(c2) text m2: again",
        ]
    );
}

/// The CLI does this for a goal, for example.
#[test]
fn turn_begun_while_agents_work_belongs_to_the_same_turn() {
    let mut peer = open_session(&bypassing());
    peer.agent("c1", "a", "ta");
    peer.json(&turn_ended("t1", "completed"));
    peer.json(&turn_started("t2"));
    peer.json(&ends("a", "ta", "completed", &Value::Null));
    assert!(!peer.session.is_over());
    peer.json(&message("completed", "t2", "m1", "by itself"));
    peer.json(&turn_ended("t2", "completed"));
    let (_, result) = peer.over();
    assert_eq!(result.text, "by itself");
}

/// Some services restart their message ids with each request.
#[test]
fn ids_of_agents_are_not_those_of_others() {
    let mut peer = open_session(&bypassing());
    peer.json(&command("started", "t1", "x", "inProgress"));
    peer.agent("c1", "a", "ta");
    peer.json(&of("a", command("started", "ta", "x", "inProgress")));
    peer.json(&of("a", command("completed", "ta", "x", "completed")));
    peer.json(&command("completed", "t1", "x", "completed"));
    peer.json(&ends("a", "ta", "completed", &Value::Null));
    peer.json(&turn_ended("t1", "completed"));
    let (events, _) = peer.over();
    let lines = shown(&events);
    assert!(lines[4].starts_with("(c1) tool_use command_execution Execute x#2 "));
    assert_eq!(lines[5], r#"(c1) tool_result x#2 Some(false) "out""#);
    assert_eq!(lines[6], r#"tool_result x Some(false) "out""#);
}

#[test]
fn the_plan_of_an_agent_is_not_the_turns() {
    let mut peer = open_session(&bypassing());
    peer.agent("c1", "a", "ta");
    let plan = json!({"turnId": "ta", "plan": [{"step": "its own", "status": "pending"}]});
    peer.json(&of("a", notification("turn/plan/updated", plan)));
    peer.json(&ends("a", "ta", "completed", &Value::Null));
    peer.json(&turn_ended("t1", "completed"));
    let (events, _) = peer.over();
    assert_eq!(shown(&events)[3..], ["turn_end false", "done Completed"]);
}
