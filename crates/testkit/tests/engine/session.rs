//! One process for many turns.

mod commands;
mod images;
mod offers;
mod permissions;
#[cfg(target_os = "linux")]
mod soak;
mod talker;

use std::sync::Arc;
use std::time::Duration;

use teamster_core::{ErrorCode, ErrorKind, RunStatus, SessionCapabilities, SessionOptions, Turn};
use teamster_process::{CliRuntime, LineObserver, PoolConfig, SessionPool};
use teamster_testkit::events::assert_types;
use teamster_testkit::proc::{is_alive, wait_gone};

use crate::engine::{LIMIT, LONG, block_on, collect, finish, let_pass, wait_until};
use talker::{pid, prepared, say, waiting};

#[tokio::test]
async fn session_process_runs_all_turns() {
    let session = prepared().open();
    assert_eq!((session.id(), session.is_live()), (None, false));
    let first = say(&*session, "pid").await;
    assert_types(&first.events, "session text turn_end done");
    assert_eq!(first.result.status, RunStatus::Completed);
    assert_eq!(first.result.exit_code, None);
    assert_eq!(session.id().as_deref(), Some("fresh"));
    assert!(session.is_live());
    let second = say(&*session, "pid").await;
    assert_types(&second.events, "text turn_end done");
    assert_eq!(second.result.text, first.result.text);
    let process: u32 = first.result.text.parse().unwrap();
    assert!(is_alive(process));
    session.close().await;
    assert!(!is_alive(process));
    assert!(!session.is_live());
}

#[tokio::test]
async fn turns_wait_for_each_other() {
    let session = prepared().open();
    let streams: Vec<_> = (0..8).map(|_| session.send(Turn::new("pid"))).collect();
    let tasks: Vec<_> = streams
        .into_iter()
        .map(|stream| tokio::spawn(finish(stream)))
        .collect();
    let mut texts = Vec::new();
    for task in tasks {
        texts.push(task.await.unwrap().result.text);
    }
    texts.dedup();
    assert_eq!(texts.len(), 1);
}

#[tokio::test]
async fn an_interrupted_turn_leaves_the_process() {
    let session = prepared().open();
    let (events, process) = waiting(&*session, "wait").await;
    events.rest.abort();
    let story = events.finish().await;
    assert_eq!(story.result.status, RunStatus::Aborted);
    assert_eq!(story.codes(), [ErrorCode::Aborted]);
    assert_eq!(story.result.exit_code, None);
    assert_eq!(pid(&*session).await, process);

    let (events, _) = waiting(&*session, "wait").await;
    session.interrupt();
    assert_eq!(events.finish().await.result.status, RunStatus::Aborted);
    assert_eq!(pid(&*session).await, process);

    let (events, _) = waiting(&*session, "wait").await;
    drop(events);
    assert_eq!(pid(&*session).await, process, "to drop is to interrupt");
    session.interrupt();
    assert_eq!(
        pid(&*session).await,
        process,
        "there was nothing to interrupt"
    );
}

#[tokio::test]
async fn agent_without_interrupt_is_ended() {
    let mut prepared = prepared();
    prepared.talker.capabilities.interrupt = false;
    let session = prepared.open();
    let (events, process) = waiting(&*session, "wait").await;
    events.rest.abort();
    let story = events.finish().await;
    assert_eq!(story.result.status, RunStatus::Aborted);
    assert!(!is_alive(process));
    let next = say(&*session, "id").await;
    assert_eq!(next.result.text, "fresh", "resumed by its id");
    assert_eq!(
        next.notices(),
        ["the process of Fake Agent had ended; the session continues in a new one"]
    );
}

#[tokio::test]
async fn agent_that_ignores_an_interrupt_is_ended() {
    let mut prepared = prepared();
    prepared.config.interrupt_grace = Duration::from_millis(50);
    prepared.config.term_grace = Duration::from_millis(50);
    let session = prepared.open();
    let (events, process) = waiting(&*session, "deaf").await;
    events.rest.abort();
    let story = events.finish().await;
    assert_eq!(story.result.status, RunStatus::Aborted);
    assert_eq!(story.result.exit_signal.as_deref(), Some("SIGKILL"));
    assert!(!is_alive(process));
    assert_ne!(pid(&*session).await, process);
}

#[tokio::test]
async fn cli_that_floods_after_an_interrupt_is_ended_early() {
    let mut prepared = prepared();
    prepared.config.interrupt_grace = LONG;
    let session = prepared.open();
    let (events, process) = waiting(&*session, "flood").await;
    events.rest.abort();
    let story = events.finish().await;
    assert_eq!(story.result.status, RunStatus::Aborted);
    let text = story.result.text.len();
    assert!(text < 20 << 20, "{text} bytes of text");
    assert!(!is_alive(process));
}

#[tokio::test]
async fn a_forced_end_does_not_wait() {
    let session = prepared().open();
    let (events, process) = waiting(&*session, "deaf").await;
    events.rest.abort_handle().kill();
    let story = events.finish().await;
    assert_eq!(story.result.status, RunStatus::Aborted);
    assert!(!is_alive(process));
}

#[tokio::test]
async fn a_crash_ends_its_turn_and_the_next_one_resumes() {
    let mut prepared = prepared();
    prepared.options.params.session_id = Some("mine".into());
    let session = prepared.open();
    assert_eq!(session.id().as_deref(), Some("mine"));
    let before = pid(&*session).await;
    let story = say(&*session, "die").await;
    assert_eq!(story.result.status, RunStatus::Failed);
    assert_eq!(story.codes(), [ErrorCode::CliExitError]);
    assert_eq!(story.result.exit_code, Some(3));
    let story = say(&*session, "id").await;
    assert_eq!(story.result.text, "mine");
    assert_ne!(pid(&*session).await, before);
}

#[tokio::test]
async fn a_fork_that_did_not_come_about_is_made_by_the_next_process() {
    let mut prepared = prepared();
    prepared.options.params.session_id = Some("mine".into());
    prepared.options.params.fork = true;
    let session = prepared.open();
    say(&*session, "die").await;
    assert_eq!(say(&*session, "args").await.result.text, "mine fork");
}

#[tokio::test]
async fn a_lost_session_is_reported_once_and_then_begins_again() {
    let mut prepared = prepared();
    (prepared.options.params.env).insert("FORGETS".into(), "1".into());
    let session = prepared.open();
    say(&*session, "die").await;
    let story = say(&*session, "id").await;
    assert_eq!(story.error().kind, ErrorKind::SessionNotFound);
    let story = say(&*session, "id").await;
    assert_eq!(story.result.text, "fresh");
    assert_eq!(
        story.notices(),
        ["the process of Fake Agent had ended; a new session begins"]
    );
}

#[tokio::test]
async fn an_end_between_two_turns_is_reported_with_the_next() {
    let session = prepared().open();
    let process: u32 = say(&*session, "leave").await.result.text.parse().unwrap();
    assert!(wait_gone(process, LIMIT));
    let story = say(&*session, "id").await;
    // It is random whether the end was seen before the turn was sent.
    if story.result.status == RunStatus::Completed {
        assert_eq!(story.notices().len(), 1, "{:?}", story.events);
    } else {
        assert_eq!(say(&*session, "id").await.result.text, "fresh");
    }
}

#[tokio::test]
async fn other_output_is_reported_at_once_also_between_turns() {
    let (sink, mut lines) = tokio::sync::mpsc::unbounded_channel();
    let mut prepared = prepared();
    // The receiver lives until the end of the test.
    let observer = LineObserver::new(move |line| drop(sink.send(line.to_owned())));
    prepared.config.observer = Some(observer);
    let session = prepared.open();
    say(&*session, "warn").await;
    for line in ["first", "second after it"] {
        let next = tokio::time::timeout(LIMIT, lines.recv()).await;
        assert_eq!(next.unwrap().unwrap(), line);
    }
    assert!(session.is_live());
}

#[tokio::test]
async fn a_session_that_is_dropped_ends_its_process() {
    let session = prepared().open();
    let process = pid(&*session).await;
    drop(session);
    wait_until(|| !is_alive(process)).await;
}

#[tokio::test]
async fn a_stream_outlives_its_session() {
    let session = prepared().open();
    let stream = session.send(Turn::new("pid"));
    drop(session);
    let process: u32 = finish(stream).await.result.text.parse().unwrap();
    wait_until(|| !is_alive(process)).await;
}

#[tokio::test]
async fn processes_left_by_its_tools_end_with_it() {
    let session = prepared().open();
    let child: u32 = say(&*session, "child").await.result.text.parse().unwrap();
    assert!(is_alive(child));
    session.close().await;
    assert!(!is_alive(child));
    assert_ne!(pid(&*session).await, 0, "another turn starts it again");
}

#[tokio::test]
async fn a_close_lets_the_cli_end_in_its_own_way() {
    let scratch = tempfile::tempdir().unwrap();
    let closed = scratch.path().join("closed");
    let mut prepared = prepared();
    (prepared.options.params.env).insert("CLOSED".into(), closed.to_str().unwrap().into());
    let session = prepared.open();
    let (events, _) = waiting(&*session, "wait").await;
    let ((), story) = tokio::join!(session.close(), events.finish());
    assert_eq!(story.result.status, RunStatus::Aborted);
    assert!(closed.exists());
    session.close().await;
}

#[tokio::test]
async fn two_processes_of_one_session_never_run_at_the_same_time() {
    let mut prepared = prepared();
    prepared.config.exit_grace = Some(Duration::from_millis(200));
    let session = prepared.open();
    // It ignores the end of its input and has to be stopped.
    let process: u32 = say(&*session, "stay").await.result.text.parse().unwrap();
    let next = async {
        let story = say(&*session, "id").await;
        assert!(!is_alive(process));
        story
    };
    let ((), story) = tokio::join!(session.close(), next);
    assert_eq!(story.result.text, "fresh");
}

#[tokio::test]
async fn silence_in_a_turn_has_its_limit_and_between_turns_none() {
    let mut prepared = prepared();
    prepared.options.params.timeouts.idle = Some(Duration::from_millis(1500));
    let session = prepared.open();
    let process = pid(&*session).await;
    let_pass(Duration::from_hours(1)).await;
    assert_eq!(pid(&*session).await, process);
    let story = say(&*session, "wait").await;
    assert_eq!(story.result.status, RunStatus::TimedOut);
    assert_eq!(story.codes(), [ErrorCode::WatchdogTimeout]);
    let mut turn = Turn::new("wait");
    turn.timeouts.idle = Some(Duration::from_millis(50));
    let story = finish(session.send(turn)).await;
    assert!(
        story.error().message.contains("50ms"),
        "{:?}",
        story.error()
    );
}

#[tokio::test]
async fn output_of_a_stopping_process_is_not_why_its_turn_ends() {
    let mut prepared = prepared();
    prepared.options.params.timeouts.idle = Some(Duration::from_millis(200));
    let session = prepared.open();
    let (events, process) = waiting(&*session, "polite").await;
    let story = events.finish().await;
    assert_eq!(story.result.status, RunStatus::TimedOut);
    assert_eq!(story.codes(), [ErrorCode::WatchdogTimeout]);
    assert!(!is_alive(process));
}

#[tokio::test]
async fn a_process_that_is_unused_ends_and_comes_back_without_a_word() {
    let mut prepared = prepared();
    prepared.options.idle = Some(Duration::from_millis(20));
    let session = prepared.open();
    let process = pid(&*session).await;
    wait_until(|| !is_alive(process)).await;
    let story = say(&*session, "id").await;
    assert_eq!(story.result.text, "fresh");
    assert_types(&story.events, "session text turn_end done");
}

#[tokio::test]
async fn a_turn_that_was_not_requested_has_its_own_stream() {
    let session = prepared().open();
    assert_eq!(say(&*session, "later").await.result.text, "now");
    let mut unasked = None;
    wait_until(|| {
        unasked = session.unasked();
        unasked.is_some()
    })
    .await;
    let story = finish(unasked.unwrap()).await;
    assert_eq!(story.result.text, "by the way");
    assert_types(&story.events, "text turn_end done");
    assert!(session.unasked().is_none());
    assert_eq!(say(&*session, "id").await.result.text, "fresh");
}

#[tokio::test]
async fn orders_are_carried_out_or_refused() {
    let session = prepared().open();
    let error = session.steer("more".into()).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::NoTurn);
    session.set_model("kept".into()).await.unwrap();
    say(&*session, "id").await;
    let error = session.steer("more".into()).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::NoTurn);
    session.set_model("good".into()).await.unwrap();
    let error = session.set_model("bad".into()).await.unwrap_err();
    assert_eq!(error.message, "refused");
    let (events, _) = waiting(&*session, "wait").await;
    session.steer("more".into()).await.unwrap();
    let story = events.finish().await;
    assert!(story.result.text.ends_with("steered"), "{:?}", story.events);
    session.clear().await.unwrap();
    assert_eq!(session.id().as_deref(), Some("cleared"));
    assert_eq!(say(&*session, "id").await.result.text, "cleared");
    session.close().await;
    assert_eq!(say(&*session, "id").await.result.text, "cleared");
}

#[tokio::test]
async fn missing_session_features_are_refused_by_name() {
    let mut prepared = prepared();
    prepared.talker.capabilities = SessionCapabilities::none();
    let session = prepared.open();
    for error in [
        session.clear().await.unwrap_err(),
        session.steer(String::new()).await.unwrap_err(),
        session.set_model("x".into()).await.unwrap_err(),
        session
            .set_permission(teamster_core::PermissionMode::ReadOnly)
            .await
            .unwrap_err(),
    ] {
        assert_eq!(error.code, ErrorCode::InvalidParams);
        assert!(
            error
                .message
                .starts_with("a session with Fake Agent cannot ")
        );
    }
}

#[tokio::test]
async fn a_session_that_is_cleared_without_a_process_begins_again() {
    let mut prepared = prepared();
    prepared.options.params.session_id = Some("mine".into());
    let session = prepared.open();
    session.clear().await.unwrap();
    assert_eq!(session.id(), None);
    assert_eq!(say(&*session, "id").await.result.text, "fresh");
}

#[tokio::test]
async fn a_failed_start_is_the_turns_error() {
    let mut prepared = prepared();
    prepared.config.program = Some("/nowhere/cli".into());
    let session = prepared.open();
    for _ in 0..2 {
        let story = say(&*session, "pid").await;
        assert_eq!(story.codes(), [ErrorCode::CliNotFound]);
    }
}

#[tokio::test]
async fn a_protocol_that_panics_costs_one_turn() {
    let session = prepared().open();
    let before = pid(&*session).await;
    let story = say(&*session, "panic").await;
    assert_eq!(story.result.status, RunStatus::Failed);
    assert!(!is_alive(before));
    assert_eq!(say(&*session, "id").await.result.text, "fresh");
}

#[tokio::test]
async fn an_aborted_turn_is_never_sent() {
    let session = prepared().open();
    let turn = Turn::new("pid");
    turn.cancel.cancel();
    let story = finish(session.send(turn)).await;
    assert_types(&story.events, "error done");
    assert_eq!(story.result.status, RunStatus::Aborted);
    assert!(!session.is_live());
    // Neither is a turn that is aborted while it waits for another.
    let (events, _) = waiting(&*session, "wait").await;
    let second = Turn::new("pid");
    let cancel = second.cancel.clone();
    let second = tokio::spawn(finish(session.send(second)));
    tokio::task::yield_now().await;
    cancel.cancel();
    assert_types(&second.await.unwrap().events, "error done");
    session.interrupt();
    events.finish().await;
}

#[tokio::test]
async fn pool_has_a_session_for_each_key_and_limits_processes() {
    let prepared = prepared();
    let runtime = Arc::new(CliRuntime::with_config(prepared.talker, prepared.config));
    let config = PoolConfig::default().max_live(2);
    let pool = SessionPool::new(runtime, config);
    let mut pids = Vec::new();
    for key in ["a", "b", "a"] {
        let session = pool.session(key, SessionOptions::default).unwrap();
        pids.push(pid(&*session).await);
    }
    assert_eq!(pids[0], pids[2]);
    assert_eq!(pool.live(), 2);
    let third = pool.session("c", SessionOptions::default).unwrap();
    let b = pids[1];
    wait_until(|| !is_alive(b)).await;
    pid(&*third).await;
    assert!(is_alive(pids[0]), "it was used after the other");
    let again = pool.session("b", || panic!("it is there")).unwrap();
    let story = say(&*again, "id").await;
    assert_eq!((&*story.result.text, story.notices().len()), ("fresh", 0));
    pool.close().await;
    assert_eq!(pool.live(), 0);
    assert!(pool.remove("a").is_some());
    assert!(pool.remove("a").is_none());
}

/// The caller has no Tokio runtime.
#[test]
fn any_executor_will_do() {
    let session = prepared().open();
    let story = block_on(async {
        let story = collect(Vec::new(), session.send(Turn::new("id"))).await;
        session.close().await;
        story
    });
    assert_eq!(story.result.text, "fresh");
}
