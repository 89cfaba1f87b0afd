//! Time limit of a turn, even with output that never pauses, and limits of the service.

use std::time::Duration;

use serde_json::Value;
use teamster_api::agents::SleepFile;
use teamster_core::{
    AbortHandle, AgentError, AgentEvent, Done, ErrorCode, ErrorKind, EventStream, NoticeLevel,
    NoticeSource, RunResult, RunStatus,
};
use teamster_loop::{Control, Settings};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::agent::{
    Agent, INFO, SESSION, agent_loop, agent_loop_with, failed, in_order, read, turn,
};

/// Returns a turn that always has an event ready.
fn flood() -> EventStream {
    /// More events than are read in 1 ms.
    const EVENTS: u32 = 1_000_000;
    let abort = AbortHandle::new(&CancellationToken::new());
    let aborted = abort.clone();
    let events = async_stream::stream! {
        let mut result = RunResult::default().status(RunStatus::Completed);
        for _ in 0..EVENTS {
            if aborted.is_aborted() {
                result.status = RunStatus::Aborted;
                break;
            }
            yield AgentEvent::notice(NoticeLevel::Info, NoticeSource::Stdout, "x");
        }
        yield AgentEvent::Done(Done::new(Box::new(result)));
    };
    EventStream::new(events, abort)
}

fn short_turn_limit() -> Settings {
    let mut settings = Settings::new(&INFO);
    settings.turn_limit = Duration::from_millis(1);
    settings
}

// Runs in real time: a paused clock does not advance while a task is always ready.
#[tokio::test]
async fn an_endless_turn_is_interrupted() {
    let directory = tempfile::tempdir().unwrap();
    let agent = Agent {
        first: in_order([flood()]),
        ..Agent::default()
    };
    let agent_loop = agent_loop_with(short_turn_limit(), directory.path(), agent, Control::new());
    agent_loop.ticks_limit(Some(1)).run().await.unwrap();
    let log = read(directory.path(), "agent-loop.log");
    assert!(log.contains("tick 1 interrupted after "), "{log}");
}

#[tokio::test]
async fn an_endless_unasked_turn_is_interrupted() {
    let directory = tempfile::tempdir().unwrap();
    let agent = Agent::default();
    agent.unasked.lock().unwrap().push_back(flood());
    let agent_loop = agent_loop_with(short_turn_limit(), directory.path(), agent, Control::new());
    agent_loop.ticks_limit(Some(1)).run().await.unwrap();
    let log = read(directory.path(), "agent-loop.log");
    assert!(log.contains("interrupting a turn that"), "{log}");
}

#[tokio::test]
async fn a_stop_ends_an_endless_turn() {
    let directory = tempfile::tempdir().unwrap();
    let agent = Agent {
        first: in_order([flood()]),
        ..Agent::default()
    };
    let (ticks, control) = (agent.ticks.clone(), Control::new());
    let agent_loop = agent_loop(directory.path(), agent, control.clone());
    tokio::spawn(async move {
        while *ticks.lock().unwrap() == 0 {
            tokio::task::yield_now().await;
        }
        control.stop();
    });
    agent_loop.run().await.unwrap();
    let log = read(directory.path(), "agent-loop.log");
    assert!(log.contains("tick 1 aborted after "), "{log}");
}

#[tokio::test(start_paused = true)]
async fn a_stop_during_a_turn_keeps_the_session_for_the_next_loop() {
    let directory = tempfile::tempdir().unwrap();
    let agent = Agent {
        first: in_order([turn(1, 1.0), turn(3600, 1.0)]),
        ..Agent::default()
    };
    let (ticks, control) = (agent.ticks.clone(), Control::new());
    let mut settings = Settings::new(&INFO);
    settings.keep_session = true;
    let agent_loop = agent_loop_with(settings, directory.path(), agent, control.clone());
    tokio::spawn(async move {
        while *ticks.lock().unwrap() < 2 {
            sleep(Duration::from_secs(1)).await;
        }
        control.stop();
    });
    agent_loop.run().await.unwrap();
    let log = read(directory.path(), "agent-loop.log");
    assert!(log.contains("tick 2 aborted after "), "{log}");
    let session: Value = serde_json::from_str(&read(directory.path(), SESSION)).unwrap();
    assert_eq!(session["session_id"], "s");
}

#[tokio::test(start_paused = true)]
async fn a_service_limit_with_a_known_reset_extends_the_sleep() {
    let directory = tempfile::tempdir().unwrap();
    let error = |kind| AgentError::new(ErrorCode::CliError, kind, "not now");
    let mut quota = error(ErrorKind::Quota);
    // The quota resets in half an hour.
    let midnight: jiff::Timestamp = "2026-11-21T00:00:00Z".parse().unwrap();
    quota.resets_at_ms = Some(u64::try_from(midnight.as_millisecond()).unwrap() + 1_800_000);
    let mut limit = error(ErrorKind::RateLimit);
    limit.retry_after_ms = Some(10_000_500);
    let mut other = error(ErrorKind::Overloaded);
    other.retry_after_ms = Some(3_000_000);
    let agent = Agent {
        first: in_order([quota, limit, other].map(failed)),
        ..Agent::default()
    };
    let agent_loop = agent_loop(directory.path(), agent, Control::new());
    agent_loop.ticks_limit(Some(4)).run().await.unwrap();
    let log = read(directory.path(), "agent-loop.log");
    let sleeps: Vec<_> = log
        .lines()
        .filter_map(|line| line.split_once("] sleeping "))
        .collect();
    let sleeps: Vec<_> = sleeps.into_iter().map(|(_, sleep)| sleep).collect();
    assert_eq!(
        sleeps[..3],
        [
            "1800 s: waiting for a service limit to reset",
            "3600 s: waiting for a service limit to reset",
            "240 s: idle (+60 s, at most 3600 s)"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn the_last_error_is_reported_until_a_tick_completes() {
    let directory = tempfile::tempdir().unwrap();
    let error = |kind, words| AgentError::new(ErrorCode::CliError, kind, words);
    let errors = [
        error(ErrorKind::Auth, "no\nlogin"),
        error(ErrorKind::Quota, "nothing left"),
    ];
    let agent = Agent {
        first: in_order(errors.map(failed)),
        ..Agent::default()
    };
    let (ticks, control) = (agent.ticks.clone(), Control::new());
    let agent_loop = agent_loop(directory.path(), agent, control.clone());
    let path = directory.path().to_owned();
    tokio::spawn(async move {
        let reported = async |count: u32| {
            while *ticks.lock().unwrap() < count {
                sleep(Duration::from_secs(1)).await;
            }
            sleep(Duration::from_secs(2)).await;
            let text = read(&path, "sleep.json");
            serde_json::from_str::<SleepFile>(&text).unwrap()
        };
        let first = reported(1).await;
        let error = first.last_error.unwrap();
        assert_eq!((first.failed_ticks, &*error.message), (1, "no login"));
        assert!(!error.is_limit() && error.at_epoch > 0);
        let second = reported(2).await;
        assert_eq!(second.failed_ticks, 2);
        assert!(second.last_error.unwrap().is_limit());
        let third = reported(3).await;
        assert_eq!((third.failed_ticks, third.last_error), (0, None));
        control.stop_because("it is enough");
    });
    agent_loop.run().await.unwrap();
    let log = read(directory.path(), "agent-loop.log");
    assert!(log.contains("ending the agent: it is enough\n"), "{log}");
    assert!(!read(directory.path(), "sleep.json").contains("last_error"));
}
