//! Turns that the agent begins by itself between two ticks (unasked turns).

use std::fs;
use std::time::Duration;

use teamster_loop::{Control, Settings};
use tokio::time::sleep;

use crate::agent::{Agent, INFO, agent_loop, agent_loop_with, costs, read, turn};

#[tokio::test(start_paused = true)]
async fn unasked_turns_are_limited_and_counted_once() {
    let directory = tempfile::tempdir().unwrap();
    let agent = Agent::default();
    let (unasked, ticks) = (agent.unasked.clone(), agent.ticks.clone());
    tokio::spawn(async move {
        sleep(Duration::from_mins(1)).await;
        // The loop sleeps. The second turn exceeds the time limit.
        let mut unasked = unasked.lock().unwrap();
        unasked.extend([turn(0, 0.25), turn(9999, 0.5)]);
    });
    let agent_loop = agent_loop(directory.path(), agent, Control::new());
    agent_loop.ticks_limit(Some(2)).run().await.unwrap();
    assert_eq!(*ticks.lock().unwrap(), 2);
    assert_eq!(costs(directory.path()), [1.0, 0.25, 0.5, 1.0]);
    let log = read(directory.path(), "agent-loop.log");
    // 1 s for the tick, 60 s until the turn is noticed, 600 s for the turn. The sleep ends earlier.
    let interrupted = "[2026-11-21T00:11:01Z] interrupting a turn that the agent began by itself";
    assert!(log.contains(interrupted), "{log}");
}

#[tokio::test(start_paused = true)]
async fn an_unasked_turn_is_limited_during_a_sleep() {
    let directory = tempfile::tempdir().unwrap();
    let agent = Agent::default();
    agent.unasked.lock().unwrap().push_back(turn(0, 0.25));
    let unasked = agent.unasked.clone();
    let mut settings = Settings::new(&INFO);
    settings.turn_limit = Duration::from_secs(10);
    tokio::spawn(async move {
        sleep(Duration::from_secs(5)).await;
        unasked.lock().unwrap().push_back(turn(9999, 0.5));
    });
    let agent_loop = agent_loop_with(settings, directory.path(), agent, Control::new());
    agent_loop.ticks_limit(Some(2)).run().await.unwrap();
    let log = read(directory.path(), "agent-loop.log");
    // 1 s for the tick, 30 s until the turn is noticed, 10 s for the turn. The sleep takes 120 s.
    let interrupted = "[2026-11-21T00:00:41Z] interrupting a turn that the agent began by itself";
    assert_eq!(log.matches("interrupting").count(), 1, "{log}");
    assert!(log.contains(interrupted), "{log}");
    assert_eq!(costs(directory.path()), [0.25, 1.0, 0.5, 1.0]);
}

#[tokio::test(start_paused = true)]
async fn unasked_turns_are_taken_during_a_sleep() {
    let directory = tempfile::tempdir().unwrap();
    let (agent, control) = (Agent::default(), Control::new());
    let (unasked, stopper) = (agent.unasked.clone(), control.clone());
    let agent_loop = agent_loop(directory.path(), agent, control);
    let path = directory.path().to_owned();
    let reader = tokio::spawn(async move {
        sleep(Duration::from_secs(5)).await;
        // The second turn is in progress when the third begins.
        let turns = [turn(0, 0.25), turn(10, 0.5), turn(0, 0.75)];
        unasked.lock().unwrap().extend(turns);
        sleep(Duration::from_mins(1)).await;
        let taken = costs(&path);
        stopper.stop();
        taken
    });
    // The future is `Send`.
    tokio::spawn(agent_loop.run()).await.unwrap().unwrap();
    assert_eq!(reader.await.unwrap(), [1.0, 0.25, 0.5, 0.75]);
    assert_eq!(costs(directory.path()).len(), 4);
}

#[tokio::test(start_paused = true)]
async fn unasked_turns_count_at_the_end_and_before_a_reset() {
    let directory = tempfile::tempdir().unwrap();
    let (agent, control) = (Agent::default(), Control::new());
    let (unasked, stopper) = (agent.unasked.clone(), control.clone());
    let flag = directory.path().join(".orchestrator/reset-session");
    tokio::spawn(async move {
        sleep(Duration::from_mins(1)).await;
        // The turn would take a day and is interrupted.
        unasked.lock().unwrap().push_back(turn(86_400, 0.25));
        fs::write(flag, "").unwrap();
        // The loop is between the second and the third tick.
        sleep(Duration::from_mins(2)).await;
        unasked.lock().unwrap().push_back(turn(9999, 0.5));
        stopper.stop();
    });
    let agent_loop = agent_loop(directory.path(), agent, control);
    agent_loop.run().await.unwrap();
    assert_eq!(costs(directory.path()), [1.0, 0.25, 1.0, 0.5]);
}

#[tokio::test(start_paused = true)]
async fn no_tick_begins_after_a_stop() {
    let directory = tempfile::tempdir().unwrap();
    let (agent, control) = (Agent::default(), Control::new());
    agent.unasked.lock().unwrap().push_back(turn(100, 0.25));
    let (ticks, stopper) = (agent.ticks.clone(), control.clone());
    tokio::spawn(async move {
        sleep(Duration::from_secs(50)).await;
        stopper.stop();
    });
    let agent_loop = agent_loop(directory.path(), agent, control);
    agent_loop.run().await.unwrap();
    assert_eq!(*ticks.lock().unwrap(), 0);
    assert_eq!(costs(directory.path()), [0.25]);
}
