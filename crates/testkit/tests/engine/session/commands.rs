//! Processes of a turn after an interrupt, and turns whose process may end.

use std::sync::Arc;
use std::time::Duration;

use teamster_core::{AgentEvent, EventStream, RunStatus, SessionOptions, Turn};
use teamster_process::{CliRuntime, PoolConfig, ProcessIdentity, ProcessSignal, SessionPool};
use teamster_testkit::proc::{is_alive, wait_gone, wait_pid_file};

use super::talker::{pid, prepared, say, waiting};
use crate::engine::{LIMIT, finish, finish_after, next};

async fn gone(pid: u32) -> bool {
    let gone = tokio::task::spawn_blocking(move || wait_gone(pid, LIMIT));
    gone.await.unwrap()
}

/// The prompt `commands` starts five processes: an earlier server, a background process of the first command,
/// one in the CLI's own group, the second command, and one of its children that has left the tree and ignores
/// SIGTERM.
#[tokio::test]
async fn a_turns_commands_end_with_it_when_it_is_interrupted() {
    let mut prepared = prepared();
    prepared.config.term_grace = Duration::from_millis(50);
    let session = prepared.open();
    let mut rest = session.send(Turn::new("commands"));
    let mut seen = Vec::new();
    let pids: Vec<u32> = loop {
        let event = next(&mut rest).await;
        seen.push(event.clone());
        if let AgentEvent::Text(text) = event {
            let pids = text.text.strip_prefix("waiting ").unwrap();
            break pids.split(' ').map(|pid| pid.parse().unwrap()).collect();
        }
    };
    assert!(pids.iter().all(|pid| is_alive(*pid)), "{pids:?}");
    session.interrupt();
    let story = finish_after(seen, rest).await;
    assert_eq!(story.result.status, RunStatus::Aborted);
    let [server, kept, own, tool, left] = pids[..] else {
        panic!("{pids:?}")
    };
    for pid in [tool, left] {
        assert!(gone(pid).await, "{pid} of {pids:?}");
    }
    assert!([server, kept, own].iter().all(|pid| is_alive(*pid)));
    session.close().await;
    assert!(pids.iter().all(|pid| !is_alive(*pid)));
}

/// The CLI is interrupted while it starts a command, so it starts it after the end of the turn. The `tool_use` of the
/// first command was printed, that of the second was not.
#[tokio::test]
async fn a_command_that_starts_after_its_interrupted_turn_is_ended() {
    let dir = tempfile::tempdir().unwrap();
    let mut prepared = prepared();
    prepared.config.term_grace = Duration::from_millis(50);
    let session = prepared.open();
    for prompt in ["late", "early"] {
        let file = dir.path().join(prompt);
        let (turn, _) = waiting(&*session, &format!("{prompt} {}", file.display())).await;
        session.interrupt();
        assert_eq!(turn.finish().await.result.status, RunStatus::Aborted);
        let started = tokio::task::spawn_blocking(move || wait_pid_file(&file, LIMIT));
        let command = started.await.unwrap().unwrap();
        assert!(gone(command).await, "{prompt}: {command} is left");
    }
    session.close().await;
}

/// The pool's limit never cuts a turn short that a caller is sending.
#[tokio::test]
async fn a_turn_that_was_just_sent_is_not_closed_as_idle() {
    let session = prepared().open();
    let process = pid(&*session).await;
    // The turn is queued for the task, which has not run yet: the process still seems to be idle.
    let mut stream = session.send(Turn::new("hold"));
    assert!(ready(&mut stream).is_none() && session.is_live());
    session.close_if_idle().await;
    session.steer("now".into()).await.unwrap();
    let story = finish(stream).await;
    assert_eq!(story.result.status, RunStatus::Completed);
    assert_eq!(pid(&*session).await, process);
    // Without a turn it ends.
    session.close_if_idle().await;
    assert!(gone(process).await);
    let after = say(&*session, "pid").await;
    assert_eq!(after.result.status, RunStatus::Completed);
    assert_eq!(
        after.notices(),
        [""; 0],
        "it was not needed, and did not crash"
    );
}

/// The same through the pool, when another session needs its only process slot.
#[tokio::test]
async fn a_turn_that_was_just_sent_is_not_interrupted_by_a_full_pool() {
    let prepared = prepared();
    let runtime = Arc::new(CliRuntime::with_config(prepared.talker, prepared.config));
    let pool = SessionPool::new(runtime, PoolConfig::default().max_live(1));
    let session = pool.session("a", SessionOptions::default).unwrap();
    let process = pid(&*session).await;
    let mut stream = session.send(Turn::new("hold"));
    assert!(ready(&mut stream).is_none() && session.is_live());
    let other = pool.session("b", SessionOptions::default).unwrap();
    // Its turn runs concurrently with the first one, which can still be steered.
    assert_ne!(pid(&*other).await, process);
    session.steer("now".into()).await.unwrap();
    let story = finish(stream).await;
    assert_eq!(story.result.status, RunStatus::Completed);
    assert_eq!(pid(&*session).await, process);
}

/// The runtime's only thread is blocked, so the session's task cannot have noticed the kill.
#[tokio::test]
async fn a_killed_process_takes_no_turn() {
    let session = prepared().open();
    let process = pid(&*session).await;
    let identity = ProcessIdentity::of(process).unwrap();
    identity.signal(ProcessSignal::Kill).unwrap();
    assert!(wait_gone(process, LIMIT));
    assert!(!session.is_live());
    assert_ne!(pid(&*session).await, process);
}

/// Returns the next event if it is ready.
fn ready(stream: &mut EventStream) -> Option<AgentEvent> {
    let mut next = std::pin::pin!(stream.next());
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match next.as_mut().poll(&mut context) {
        std::task::Poll::Ready(event) => event,
        std::task::Poll::Pending => None,
    }
}
