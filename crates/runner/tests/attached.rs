//! Sessions without a folder, for one client in this process.

use std::sync::Arc;
use std::time::Duration;

use teamster_api::RunLogEntry;
use teamster_core::{AgentEvent, Capabilities, ExecuteParams, Text};
use teamster_orchestrator::{Orchestrator, OrchestratorConfig};
use teamster_runner::server::Control;
use teamster_runner::{
    AttachedClient, AttachedSession, Command, Finished, Reply, RequestChannel, SessionCandidate,
    SessionPlan, SessionRuns,
};
use tokio::task::JoinHandle;

use crate::live::{Scripted, answers};

/// Returns a delta of one message.
fn delta(text: &str) -> AgentEvent {
    AgentEvent::Text(Text::new(text).message_id(Some("m1".into())))
}

struct Attached {
    control: Control,
    client: AttachedClient,
    work: JoinHandle<Finished>,
}

impl Attached {
    fn start(agent: &Scripted) -> Self {
        let candidate = SessionCandidate::of(
            Arc::new(agent.clone()),
            Capabilities::none(),
            ExecuteParams::new(""),
        );
        let channel = RequestChannel::new("s");
        let orchestrator = Orchestrator::new(OrchestratorConfig::default()).unwrap();
        let plan = SessionPlan::new(SessionRuns::new("s", candidate));
        let (session, client) = AttachedSession::new(orchestrator, plan, channel);
        Self {
            control: session.control().0,
            client,
            work: tokio::spawn(session.work()),
        }
    }

    async fn say(&self, prompt: &str) -> Reply {
        let command = Command::Send {
            prompt: prompt.to_owned(),
            images: Vec::new(),
            from: None,
            key: None,
            trace: None,
        };
        self.control.carry_out(command).await
    }

    async fn entry(&mut self) -> (u64, String) {
        let entry = self.client.entries.recv().await.unwrap();
        let entry = serde_json::to_value(entry).unwrap();
        let name = entry["type"].as_str().unwrap();
        (entry["seq"].as_u64().unwrap(), name.to_owned())
    }
}

#[tokio::test]
async fn its_reader_gets_each_entry_as_it_is() {
    let done = answers("one").pop();
    let turn = ["o", "n", "e"].map(delta).into_iter().chain(done);
    let agent = Scripted::new("claude", [turn.collect()]);
    let mut session = Attached::start(&agent);
    let newest = *session
        .client
        .at_rest
        .wait_for(Option::is_some)
        .await
        .unwrap();
    assert_eq!(newest, Some(0));
    let turn = Reply::Turn {
        run_id: "s.1".to_owned(),
        seq: 1,
        known: false,
    };
    assert_eq!(session.say("a").await, turn);
    let mut entries = Vec::new();
    while entries.last().is_none_or(|(_, name)| name != "done") {
        entries.push(session.entry().await);
    }
    // In a log on disk, the last two of these deltas would be one.
    let names: Vec<_> = entries.iter().map(|(_, name)| &**name).collect();
    assert_eq!(names[..2], ["user:message", "run:start"]);
    assert_eq!(names.iter().filter(|it| **it == "text").count(), 3);
    let numbers: Vec<_> = entries.iter().map(|(seq, _)| *seq).collect();
    let expected: Vec<_> = (1..=entries.len() as u64).collect();
    assert_eq!(numbers, expected);
    let newest = *session
        .client
        .at_rest
        .wait_for(Option::is_some)
        .await
        .unwrap();
    assert_eq!(newest, expected.last().copied());

    let ended = session
        .control
        .carry_out(Command::Cancel { kill: false })
        .await;
    assert_eq!(ended, Reply::Done);
    let last = session.client.entries.recv().await.unwrap();
    let RunLogEntry::Agent(last) = last else {
        panic!("{last:?}");
    };
    assert_eq!(last.run_id.as_deref(), Some("s"));
    assert!(matches!(last.event, AgentEvent::Done(_)), "{last:?}");
    assert!(session.client.entries.recv().await.is_none());
    let finished = session.work.await.unwrap();
    finished.log.unwrap();
    assert_eq!(finished.result.num_turns, Some(1));
    assert_eq!(agent.calls(), ["a", "[close]"]);
}

/// Returns the number of events that are read from the agent while the client reads nothing of its first turn. Then the
/// client reads the turn to its end, and gets all of these deltas.
async fn read_ahead(agent: &Scripted, deltas: usize) -> (usize, Attached) {
    let mut session = Attached::start(agent);
    session.say("a").await;
    // Time passes once nothing else can happen.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let ahead = agent.read();
    let mut seen = 0;
    loop {
        match session.entry().await.1.as_str() {
            "text" => seen += 1,
            "done" => break,
            _ => {}
        }
    }
    assert_eq!(seen, deltas, "nothing is lost");
    (ahead, session)
}

#[tokio::test(start_paused = true)]
async fn slow_reader_delays_the_agent_and_a_lost_one_ends_the_session() {
    let mut turn: Vec<_> = std::iter::repeat_with(|| delta("x")).take(5000).collect();
    turn.extend(answers("").pop());
    let agent = Scripted::new("claude", [turn.clone(), turn]);
    let (ahead, session) = read_ahead(&agent, 5000).await;
    assert!((1000..2500).contains(&ahead), "{ahead}");
    session.say("b").await;
    drop(session.client);
    let finished = session.work.await.unwrap();
    assert!(finished.log.is_err());
    assert_eq!(agent.calls(), ["a", "b", "[close]"]);
}

#[tokio::test(start_paused = true)]
async fn long_entries_take_the_room_of_many() {
    let long = "x".repeat(1 << 20);
    let mut turn: Vec<_> = std::iter::repeat_with(|| delta(&long)).take(100).collect();
    turn.extend(answers("").pop());
    let agent = Scripted::new("claude", [turn]);
    let (ahead, _) = read_ahead(&agent, 100).await;
    assert!((1..10).contains(&ahead), "{ahead}");
}

#[tokio::test]
async fn a_change_before_a_prompt_is_no_part_of_its_turn() {
    let agent = Scripted::new("claude", [answers("one")]);
    let mut session = Attached::start(&agent);
    let model = "opus".to_owned();
    let changed = session.control.carry_out(Command::SetModel { model }).await;
    assert_eq!(changed, Reply::Done);
    session.say("a").await;
    let RunLogEntry::Agent(first) = session.client.entries.recv().await.unwrap() else {
        panic!("a notice comes first");
    };
    assert!(matches!(first.event, AgentEvent::Notice(_)), "{first:?}");
    assert_eq!(first.run_id.as_deref(), Some("s"));
    assert_eq!(session.entry().await, (2, "user:message".to_owned()));
    drop(session.client);
    session.work.await.unwrap();
}
