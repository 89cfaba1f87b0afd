//! Turns that an agent begins by itself between two ticks, and what is in the way of a loop.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use teamster_core::{
    AbortHandle, AgentError, AgentEvent, CostSource, Done, EventStream, Id, RunResult, RunStatus,
    Usage,
};
use teamster_loop::clock::TokioClock;
use teamster_loop::{
    Adapter, AdapterFuture, AgentFolder, AgentLoop, Control, Log, Prompts, Settings, UsageRecord,
};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

/// A turn that takes so long, or until it is interrupted, and costs as many dollars.
fn turn(seconds: u64, dollars: f64) -> EventStream {
    let abort = AbortHandle::new(&CancellationToken::new());
    let aborted = abort.clone();
    let events = async_stream::stream! {
        let status = tokio::select! {
            biased;
            () = aborted.aborted() => RunStatus::Aborted,
            () = sleep(Duration::from_secs(seconds)) => RunStatus::Completed,
        };
        let result = RunResult {
            status,
            session_id: Some("s".into()),
            model: Some("made-up".into()),
            usage: Some(Usage { input_tokens: Some(1), ..Usage::default() }),
            total_cost_usd: Some(dollars),
            cost_source: Some(CostSource::Reported),
            ..RunResult::default()
        };
        yield AgentEvent::Done(Done { result: Box::new(result) });
    };
    EventStream::new(events, abort)
}

type Unasked = Arc<Mutex<VecDeque<EventStream>>>;

/// An agent whose ticks take a second and cost a dollar each.
#[derive(Default)]
struct Agent {
    unasked: Unasked,
    ticks: Arc<Mutex<u32>>,
    /// Why it cannot be begun, the first times.
    refuses: VecDeque<AgentError>,
    /// In which sessions it was to be begun.
    resumed: Arc<Mutex<Vec<Option<Id>>>>,
    /// Its process goes when it is asked for turns of its own so often, which is before each step.
    dies: Option<u32>,
    asked: u32,
    /// When it was begun, in ticks, and which ticks were told everything.
    begun: Arc<Mutex<Vec<u32>>>,
    full: Arc<Mutex<Vec<u32>>>,
}

impl Adapter for Agent {
    fn begin(&mut self, resume: Option<Id>) -> Result<(), AgentError> {
        self.resumed.lock().unwrap().push(resume);
        if let Some(error) = self.refuses.pop_front() {
            return Err(error);
        }
        if !self.begun.lock().unwrap().is_empty() {
            self.dies = None;
        }
        self.begun.lock().unwrap().push(*self.ticks.lock().unwrap());
        Ok(())
    }

    fn session(&self) -> Option<Id> {
        Some("s".into())
    }

    fn is_alive(&self) -> bool {
        self.dies.is_none_or(|dies| self.asked < dies)
    }

    fn keeps_context(&self) -> bool {
        true
    }

    fn clears_in_session(&self) -> bool {
        true
    }

    fn clear(&mut self) -> AdapterFuture<'_, Result<(), AgentError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn tick(&mut self, prompt: &str) -> Result<EventStream, AgentError> {
        assert!(self.is_alive(), "another process would get the prompt");
        let mut ticks = self.ticks.lock().unwrap();
        *ticks += 1;
        if prompt.contains("MEMORY.md") {
            self.full.lock().unwrap().push(*ticks);
        }
        Ok(turn(1, 1.0))
    }

    fn tick_ended(&mut self, _: &RunResult) {}

    fn unasked(&mut self) -> Option<EventStream> {
        self.asked += 1;
        self.unasked.lock().unwrap().pop_front()
    }

    fn end(&mut self) -> AdapterFuture<'_, ()> {
        // With its process go the turns that it played.
        self.unasked.lock().unwrap().clear();
        Box::pin(std::future::ready(()))
    }
}

fn agent_loop(directory: &Path, agent: Agent, control: Control) -> AgentLoop {
    let folder = AgentFolder::open(directory).unwrap();
    let clock = Arc::new(TokioClock::new("2026-11-21T00:00:00Z".parse().unwrap()));
    let log = Log::new(folder.path("agent-loop.log"), 1 << 20, clock.clone());
    let settings = Settings::default();
    let prompts = Prompts::read(&settings, directory).unwrap();
    AgentLoop::new(
        folder,
        settings,
        prompts,
        Box::new(agent),
        clock,
        control,
        log,
    )
    .unwrap()
}

fn read(directory: &Path, name: &str) -> String {
    fs::read_to_string(directory.join(".orchestrator").join(name)).unwrap()
}

fn costs(directory: &Path) -> Vec<f64> {
    let text = read(directory, "usage.jsonl");
    let record = |line: &str| serde_json::from_str::<UsageRecord>(line).unwrap();
    let costs = text.lines().map(|line| record(line).cost_usd.unwrap());
    costs.collect()
}

#[tokio::test(start_paused = true)]
async fn one_that_takes_too_long_is_interrupted_and_each_counts_once() {
    let directory = tempfile::tempdir().unwrap();
    let agent = Agent::default();
    let (unasked, ticks) = (agent.unasked.clone(), agent.ticks.clone());
    tokio::spawn(async move {
        sleep(Duration::from_mins(1)).await;
        // While the loop sleeps: the second one for longer than a turn may take.
        let mut unasked = unasked.lock().unwrap();
        unasked.extend([turn(0, 0.25), turn(9999, 0.5)]);
    });
    let agent_loop = agent_loop(directory.path(), agent, Control::new());
    agent_loop.with_ticks_limit(Some(2)).run().await.unwrap();
    assert_eq!(*ticks.lock().unwrap(), 2);
    assert_eq!(costs(directory.path()), [1.0, 0.25, 0.5, 1.0]);
    let log = read(directory.path(), "agent-loop.log");
    // 1 s for the tick, 120 s of sleep, 600 s for the turn.
    let interrupted = "[2026-11-21T00:12:01Z] interrupting a turn that the agent plays by itself";
    assert!(log.contains(interrupted), "{log}");
}

#[tokio::test(start_paused = true)]
async fn they_are_taken_while_the_loop_sleeps_because_only_the_last_few_are_kept() {
    let directory = tempfile::tempdir().unwrap();
    let (agent, control) = (Agent::default(), Control::new());
    let (unasked, asks) = (agent.unasked.clone(), control.clone());
    let agent_loop = agent_loop(directory.path(), agent, control);
    let path = directory.path().to_owned();
    let looks = tokio::spawn(async move {
        sleep(Duration::from_secs(5)).await;
        // The second one is being played when the third comes.
        let turns = [turn(0, 0.25), turn(10, 0.5), turn(0, 0.75)];
        unasked.lock().unwrap().extend(turns);
        sleep(Duration::from_mins(1)).await;
        let taken = costs(&path);
        asks.stop();
        taken
    });
    // As a task among others, too.
    tokio::spawn(agent_loop.run()).await.unwrap().unwrap();
    assert_eq!(looks.await.unwrap(), [1.0, 0.25, 0.5, 0.75]);
    assert_eq!(costs(directory.path()).len(), 4);
}

#[tokio::test(start_paused = true)]
async fn they_count_at_the_end_of_the_loop_and_before_a_reset_too() {
    let directory = tempfile::tempdir().unwrap();
    let (agent, control) = (Agent::default(), Control::new());
    let (unasked, asks) = (agent.unasked.clone(), control.clone());
    let flag = directory.path().join(".orchestrator/reset-session");
    tokio::spawn(async move {
        sleep(Duration::from_mins(1)).await;
        // It would take as long as a day, and is not waited for.
        unasked.lock().unwrap().push_back(turn(86_400, 0.25));
        fs::write(flag, "").unwrap();
        // The second tick is over, and the third far away.
        sleep(Duration::from_mins(2)).await;
        unasked.lock().unwrap().push_back(turn(9999, 0.5));
        asks.stop();
    });
    let agent_loop = agent_loop(directory.path(), agent, control);
    agent_loop.run().await.unwrap();
    assert_eq!(costs(directory.path()), [1.0, 0.25, 1.0, 0.5]);
}

#[tokio::test(start_paused = true)]
async fn no_tick_begins_when_the_end_was_asked_for_meanwhile() {
    let directory = tempfile::tempdir().unwrap();
    let (agent, control) = (Agent::default(), Control::new());
    agent.unasked.lock().unwrap().push_back(turn(100, 0.25));
    let (ticks, asks) = (agent.ticks.clone(), control.clone());
    tokio::spawn(async move {
        sleep(Duration::from_secs(50)).await;
        asks.stop();
    });
    let agent_loop = agent_loop(directory.path(), agent, control);
    agent_loop.run().await.unwrap();
    assert_eq!(*ticks.lock().unwrap(), 0);
    assert_eq!(costs(directory.path()), [0.25]);
}

#[tokio::test(start_paused = true)]
async fn what_was_in_the_way_of_a_flag_may_go() {
    let directory = tempfile::tempdir().unwrap();
    let (agent, control) = (Agent::default(), Control::new());
    let agent_loop = agent_loop(directory.path(), agent, control.clone());
    let path = |name: &str| directory.path().join(".orchestrator").join(name);
    // Nothing can be renamed to a directory that is not empty.
    let obstacle = path("reset-session.taken");
    fs::create_dir(&obstacle).unwrap();
    fs::write(obstacle.join("x"), "").unwrap();
    fs::write(path("reset-session"), "").unwrap();
    tokio::spawn(async move {
        sleep(Duration::from_secs(200)).await;
        fs::remove_dir_all(obstacle).unwrap();
        sleep(Duration::from_hours(1)).await;
        control.stop();
    });
    agent_loop.run().await.unwrap();
    let log = read(directory.path(), "agent-loop.log");
    // Once for each tick, and no more.
    assert_eq!(
        log.matches(".orchestrator/reset-session: ").count(),
        2,
        "{log}"
    );
    assert_eq!(log.matches("as reset-session asked").count(), 1, "{log}");
    assert!(!path("reset-session").exists());
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_removes_what_it_does_not_know_gets_it_again() {
    let directory = tempfile::tempdir().unwrap();
    let (agent, control) = (Agent::default(), Control::new());
    let orchestrator = directory.path().join(".orchestrator");
    let agent_loop = agent_loop(directory.path(), agent, control);
    let removed = orchestrator.clone();
    tokio::spawn(async move {
        // In the second tick.
        sleep(Duration::from_millis(121_500)).await;
        fs::remove_dir_all(removed).unwrap();
    });
    agent_loop.with_ticks_limit(Some(3)).run().await.unwrap();
    let log = read(directory.path(), "agent-loop.log");
    let made = ".orchestrator was gone and is made again";
    assert!(log.contains(made), "{log}");
    // What the second and the third used; and the lock went with the folder, so a new one is there.
    assert_eq!(costs(directory.path()), [1.0, 1.0]);
    assert!(orchestrator.join("loop.lock").exists());
    assert!(!orchestrator.join("session.json").exists());
}

#[tokio::test(start_paused = true)]
async fn whenever_the_process_goes_between_two_ticks_the_second_one_tells_everything() {
    let mut at = Vec::new();
    for dies in 2..=10 {
        let directory = tempfile::tempdir().unwrap();
        let agent = Agent {
            dies: Some(dies),
            ..Agent::default()
        };
        let (begun, full) = (agent.begun.clone(), agent.full.clone());
        let agent_loop = agent_loop(directory.path(), agent, Control::new());
        agent_loop.with_ticks_limit(Some(3)).run().await.unwrap();
        let (begun, full) = (begun.lock().unwrap().clone(), full.lock().unwrap().clone());
        // After so many ticks it was begun again: the next one is another process's.
        if let [0, ticks] = begun[..]
            && ticks > 0
        {
            assert_eq!(full, [1, ticks + 1], "{dies}");
            at.push(ticks);
        }
    }
    assert!(at.contains(&1) && at.contains(&2), "{at:?}");
}

#[tokio::test(start_paused = true)]
async fn a_loop_ends_with_the_directory_of_its_agent() {
    let directory = tempfile::tempdir().unwrap();
    let agent = Agent::default();
    let ticks = agent.ticks.clone();
    let agent_loop = agent_loop(directory.path(), agent, Control::new());
    tokio::spawn(async move {
        // In the first sleep.
        sleep(Duration::from_mins(1)).await;
        directory.close().unwrap();
    });
    agent_loop.run().await.unwrap();
    assert_eq!(*ticks.lock().unwrap(), 1);
}

/// What a loop has left that was cut off.
fn cut_off(directory: &Path) -> (PathBuf, &'static str) {
    let orchestrator = directory.join(".orchestrator");
    fs::create_dir(&orchestrator).unwrap();
    let file = orchestrator.join("session.json");
    let text = r#"{"runtime": "claude", "session_id": "s", "pid": 1, "updated_at_epoch": 1}"#;
    fs::write(&file, text).unwrap();
    (file, text)
}

#[tokio::test(start_paused = true)]
async fn a_loop_that_cannot_begin_leaves_what_an_earlier_one_left() {
    let directory = tempfile::tempdir().unwrap();
    let (file, text) = cut_off(directory.path());
    let not_so = || AgentError::invalid_params("not so");
    let agent = Agent {
        refuses: [not_so(), not_so()].into(),
        ..Agent::default()
    };
    // Without the session it is tried once more.
    let resumed = agent.resumed.clone();
    let error = agent_loop(directory.path(), agent, Control::new()).run();
    assert_eq!(error.await.unwrap_err().message, "not so");
    assert_eq!(*resumed.lock().unwrap(), [Some("s".into()), None]);
    assert_eq!(fs::read_to_string(file).unwrap(), text);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_can_go_on_later_is_waited_for() {
    let directory = tempfile::tempdir().unwrap();
    cut_off(directory.path());
    let mut error = AgentError::invalid_params("not in this minute");
    error.retry_after_ms = Some(42_500);
    let agent = Agent {
        refuses: [error].into(),
        ..Agent::default()
    };
    let resumed = agent.resumed.clone();
    let begun = Instant::now();
    let agent_loop = agent_loop(directory.path(), agent, Control::new());
    agent_loop.with_ticks_limit(Some(1)).run().await.unwrap();
    assert_eq!(
        *resumed.lock().unwrap(),
        [Some("s".into()), Some("s".into())]
    );
    let waited = begun.elapsed().as_secs();
    assert!((43..50).contains(&waited), "{waited}");
}
