//! Very many turns of one session, and sessions that wait for a very long time: what the engine keeps for a turn goes
//! with it, and waiting costs nothing.

use std::time::Duration;

use teamster_core::RunStatus;
use teamster_testkit::soak::Soak;

use crate::engine::session::talker::{pid, prepared, say};

#[tokio::test]
async fn many_turns_of_a_session_leave_nothing() {
    let mut soak = Soak::new("turns", 100, std::process::id());
    let session = prepared().open();
    let process = say(&*session, "pid").await.result.text;
    for turn in 1..=soak.count() {
        let prompt = ["pid", "id", "args"][usize::try_from(turn % 3).unwrap()];
        let story = say(&*session, prompt).await;
        assert_eq!(story.result.status, RunStatus::Completed, "turn {turn}");
        if prompt == "pid" {
            assert_eq!(story.result.text, process, "another process in turn {turn}");
        }
        soak.done(turn);
    }
    soak.end();
    session.close().await;
}

#[tokio::test]
async fn many_hours_of_idle_sessions_leave_nothing() {
    let mut soak = Soak::new("hours", 24, std::process::id());
    let mut sessions = Vec::new();
    for _ in 0..5 {
        let session = prepared().open();
        let process = pid(&*session).await;
        sessions.push((session, process));
    }
    tokio::time::pause();
    for hour in 1..=soak.count() {
        tokio::time::advance(Duration::from_hours(1)).await;
        soak.done(hour);
    }
    tokio::time::resume();
    for (session, process) in sessions {
        assert_eq!(pid(&*session).await, process);
        session.close().await;
    }
    soak.end();
}
