//! Turns of a detached session: retry, fallback, steering, interrupt, clear and budget.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use teamster_api::{Command, RefusalCode, Reply, TraceContext};
use teamster_core::{AgentEvent, ErrorKind, PermissionMode, RunStatus, SessionStarted};
use teamster_orchestrator::{Accepted, RunObserver};
use teamster_runner::{RunsError, SessionRuns, client};
use tokio::time::timeout;

use crate::live::{Live, Scripted, answers, fails, send, status, waits};

/// Time limit of waits. Only a failing test waits this long.
const LIMIT: Duration = Duration::from_mins(1);

fn steer(text: &str) -> Command {
    Command::Steer {
        text: text.to_owned(),
        from: None,
    }
}

fn set_model(model: &str) -> Command {
    Command::SetModel {
        model: model.to_owned(),
    }
}

fn of_type(entries: &[Value], name: &str) -> usize {
    entries.iter().filter(|entry| entry["type"] == name).count()
}

fn retry_at_once(runs: &mut SessionRuns) {
    runs.retry.retries = 1;
    runs.retry.base_delay = Duration::from_millis(1);
    runs.retry.jitter = false;
}

#[tokio::test]
async fn a_turn_is_retried_in_its_session() {
    let overloaded = || fails(ErrorKind::Overloaded);
    let agent = Scripted::new(
        "claude",
        [overloaded(), answers("one"), overloaded(), overloaded()],
    );
    let live = Live::start(&[&agent], retry_at_once);
    let first = live.turn("a").await;
    assert_eq!(
        (status(&first), of_type(&first, "run:retry")),
        ("completed", 1)
    );
    assert_eq!(
        of_type(&first, "error"),
        0,
        "only final errors are reported"
    );
    let attempts: Vec<_> = first
        .iter()
        .filter_map(|it| it["attempt"].as_u64())
        .collect();
    assert_eq!(attempts.last(), Some(&2));
    let second = live.turn("b").await;
    assert_eq!(
        (status(&second), of_type(&second, "run:retry")),
        ("failed", 1)
    );
    assert_eq!(agent.calls(), ["a", "a", "b", "b"]);
    let result = live.end().await;
    assert_eq!(
        (result.status, result.num_turns),
        (RunStatus::Completed, Some(2))
    );
}

/// Observer that records the place of each turn in a trace.
struct Traced(Arc<Mutex<Vec<Option<String>>>>);

#[async_trait::async_trait]
impl RunObserver for Traced {
    async fn accepted(&self, run: Accepted<'_>) {
        let parent = run.params.env.get("TRACEPARENT").cloned();
        self.0.lock().unwrap().push(parent);
    }
}

#[tokio::test]
async fn turn_has_the_place_in_a_trace_of_its_sender() {
    let agent = Scripted::new("claude", [answers("one"), answers("two")]);
    let traces = Arc::default();
    let observer = Arc::new(Traced(Arc::clone(&traces)));
    let live = Live::start(&[&agent], |runs| runs.observer = Some(observer));
    let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let mut command = send("a");
    let Command::Send { trace, .. } = &mut command else {
        panic!("{command:?}");
    };
    *trace = TraceContext::new(parent, None);
    let Reply::Turn { seq, .. } = live.command(command).await.unwrap() else {
        panic!("no turn");
    };
    assert_eq!(status(&live.rest_of_turn(seq).await), "completed");
    assert_eq!(status(&live.turn("b").await), "completed");
    assert_eq!(*traces.lock().unwrap(), [Some(parent.to_owned()), None]);
    live.end().await;
}

#[tokio::test]
async fn fallback_in_the_first_turn_keeps_the_session() {
    let first = Scripted::new("claude", [fails(ErrorKind::Auth)]);
    let second = Scripted::new(
        "codex",
        [answers("one"), fails(ErrorKind::Auth), answers("three")],
    );
    let live = Live::start(&[&first, &second], |_| {});
    let one = live.turn("a").await;
    assert_eq!(
        (status(&one), of_type(&one, "run:fallback")),
        ("completed", 1)
    );
    let about = client::status(&live.folder).await.unwrap();
    assert_eq!(about.provider.as_deref(), Some("codex"));
    // Only this agent knows the conversation.
    assert_eq!(status(&live.turn("b").await), "failed");
    assert_eq!(status(&live.turn("c").await), "completed");
    assert_eq!(first.calls(), ["a"]);
    assert_eq!(second.calls(), ["a", "b", "c"]);
    live.end().await;
    assert_eq!(first.calls().last().unwrap(), "[close]");
    assert_eq!(second.calls().last().unwrap(), "[close]");
}

#[tokio::test]
async fn each_turn_begins_with_the_first_agent_until_one_succeeds() {
    let auth = || fails(ErrorKind::Auth);
    let first = Scripted::new("claude", [auth(), answers("two")]);
    let second = Scripted::new("codex", [auth()]);
    let live = Live::start(&[&first, &second], |_| {});
    assert_eq!(status(&live.turn("a").await), "failed");
    assert_eq!(status(&live.turn("b").await), "completed");
    assert_eq!(
        (first.calls(), second.calls()),
        (vec!["a".into(), "b".into()], vec!["a".into()])
    );
    live.end().await;
}

#[tokio::test]
async fn a_turn_is_steered_and_interrupted_and_the_session_continues() {
    let agent = Scripted::new("claude", [waits(), answers("two")]);
    let live = Live::start(&[&agent], |_| {});
    for refused in [
        live.command(steer("x")).await,
        live.command(Command::Interrupt { kill: false }).await,
    ] {
        assert!(
            matches!(
                &refused,
                Err(RunsError::Refused {
                    code: RefusalCode::NoTurn,
                    ..
                })
            ),
            "{refused:?}"
        );
    }
    let from = live.begin("a").await;
    live.until(from, |entry| entry["text"] == "waiting").await;
    live.command(steer("hurry")).await.unwrap();
    let steered = live
        .until(from, |entry| entry["type"] == "user:message")
        .await;
    let message = steered.last().unwrap();
    assert_eq!(
        (&message["text"], &message["steer"]),
        (&"hurry".into(), &true.into())
    );
    let busy = live.command(send("b")).await;
    assert!(
        matches!(
            &busy,
            Err(RunsError::Refused {
                code: RefusalCode::Busy,
                ..
            })
        ),
        "{busy:?}"
    );
    live.command(Command::Interrupt { kill: false })
        .await
        .unwrap();
    assert_eq!(status(&live.rest_of_turn(from).await), "aborted");
    assert_eq!(status(&live.turn("b").await), "completed");
    assert_eq!(agent.calls(), ["a", "[steer hurry]", "b"]);
    assert_eq!(live.end().await.status, RunStatus::Completed);
}

#[tokio::test]
async fn interrupt_right_before_an_unasked_turn_ends_it() {
    let agent = Scripted::new("claude", []);
    let live = Live::start(&[&agent], |_| {});
    let interrupted = live.command(Command::Interrupt { kill: false }).await;
    assert!(interrupted.is_err(), "{interrupted:?}");
    agent.begin(waits());
    let first = timeout(LIMIT, live.rest_of_turn(0)).await.unwrap();
    assert_eq!(status(&first), "aborted");
    // One interrupt ends one turn.
    agent.begin(answers("two"));
    let second = live.until(0, |entry| entry["result"]["text"] == "two");
    let second = timeout(LIMIT, second).await.unwrap();
    assert_eq!(status(&second), "completed");
    live.end().await;
}

#[tokio::test]
async fn settings_of_clients_reach_the_agent_and_the_log() {
    let agent = Scripted::new("claude", [answers("one")]);
    let live = Live::start(&[&agent], |_| {});
    live.command(Command::Clear).await.unwrap();
    live.command(set_model("opus")).await.unwrap();
    let notices = live
        .until(0, |entry| {
            entry["message"]
                .as_str()
                .is_some_and(|it| it.contains("opus"))
        })
        .await;
    assert_eq!(of_type(&notices, "notice"), 2);
    let mode = PermissionMode::Bypass;
    live.command(Command::SetPermission { mode }).await.unwrap();
    // The sender of the next prompt needs the right to it.
    let about = client::status(&live.folder).await.unwrap();
    assert_eq!(about.permission, Some(mode));
    live.turn("a").await;
    let calls = ["[clear]", "[model opus]", "[permission]", "a"];
    assert_eq!(agent.calls(), calls);
    live.end().await;
}

#[tokio::test]
async fn a_cleared_session_is_not_named_at_the_end() {
    let mut turn = answers("one");
    turn.insert(
        0,
        AgentEvent::SessionStarted(Box::new(SessionStarted::new("s"))),
    );
    let agent = Scripted::new("claude", [turn.clone(), turn]);
    for (clears, id) in [(false, Some("s".into())), (true, None)] {
        let live = Live::start(&[&agent], |_| {});
        live.turn("a").await;
        if clears {
            live.command(Command::Clear).await.unwrap();
        }
        assert_eq!(live.end().await.session_id, id);
    }
}

#[tokio::test]
async fn a_turn_after_another_model_was_set_has_that_model_s_price() {
    let mut first = answers("one");
    let named = SessionStarted::new("s").model("claude-opus-4-8");
    first.insert(0, AgentEvent::SessionStarted(Box::new(named)));
    // The agent names its model no more.
    let agent = Scripted::new("codex", [first, answers("two"), answers("three")]);
    let live = Live::start(&[&agent], |_| {});
    let mut costs = Vec::new();
    for prompt in ["a", "b", "c"] {
        if prompt == "c" {
            let model = set_model("claude-haiku-4-5");
            live.command(model).await.unwrap();
        }
        let turn = live.turn(prompt).await;
        costs.push(turn.last().unwrap()["result"]["totalCostUsd"].as_f64());
    }
    // 8 tokens of input and 2 of output: 5 and 25 dollars a million, and then 1 and 5.
    assert_eq!(costs, [Some(9e-5), Some(9e-5), Some(1.8e-5)]);
    live.end().await;
}

#[tokio::test]
async fn a_turn_is_cut_off_by_the_end_of_its_session() {
    let agent = Scripted::new("claude", [waits()]);
    let live = Live::start(&[&agent], |_| {});
    let from = live.begin("a").await;
    live.until(from, |entry| entry["text"] == "waiting").await;
    let result = live.end().await;
    assert_eq!((result.status, result.aborted), (RunStatus::Aborted, true));
    assert_eq!(agent.calls(), ["a", "[close]"]);
}
