//! Tests of the right to begin a conversation's session.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::pin::pin;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Wake, Waker};
use std::time::{Duration, Instant};

use sqlx::Connection as _;
use teamster_core::Id;
use teamster_orchestrator::RunObserver as _;
use teamster_store::{
    LOST_AFTER, NewSession, Recorder, SessionKey, SessionLock, SessionOrLock, Store, StoreError,
};
use tokio::sync::Notify;

use crate::recorder::{accept, attempt, not_found, outcome, params, session_of, talk};
use crate::support::Database;

/// Environment variable `TASK FILE URL`.
const VARIABLE: &str = "TEAMSTER_STORE_TEST_LOCK";

/// Time limit of an expected event.
const LIMIT: Duration = Duration::from_mins(1);
/// Time limit of a wait that must fail.
const SHORT: Duration = Duration::from_millis(50);

fn key() -> SessionKey {
    talk().with("claude")
}

/// The part of this program that another process of a test runs: it begins the session and stores it, or holds the lock
/// until it is killed, and writes down what it got.
#[tokio::test(flavor = "multi_thread")]
async fn the_other_process() {
    let Ok(order) = std::env::var(VARIABLE) else {
        return;
    };
    let [task, file, url] = order.splitn(3, ' ').collect::<Vec<_>>()[..] else {
        panic!("{order}");
    };
    let note = |text: &str| {
        let mut file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(file)
            .unwrap();
        file.write_all(format!("{text}\n").as_bytes()).unwrap();
    };
    let store = Store::open(url).await.unwrap();
    match store.session_or_lock(&key(), LIMIT).await.unwrap() {
        SessionOrLock::Lock(_lock) if task == "hold" => {
            note("locked");
            std::future::pending::<()>().await;
        }
        SessionOrLock::Lock(lock) => {
            let id = format!("s-{}", std::process::id());
            note(&format!("begun {id}"));
            store
                .put_session(&key(), &NewSession::new(&*id))
                .await
                .unwrap();
            lock.release().await.unwrap();
        }
        SessionOrLock::Session(session) => note(&format!("found {}", session.session_id)),
    }
    store.close().await;
}

fn start(database: &Database, task: &str, file: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "session_locks::the_other_process", "--nocapture"])
        .env(
            VARIABLE,
            format!("{task} {} {}", file.display(), database.url()),
        )
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

async fn locked(store: &Store) -> SessionLock {
    match store.session_or_lock(&key(), LIMIT).await.unwrap() {
        SessionOrLock::Lock(lock) => lock,
        SessionOrLock::Session(session) => panic!("{session:?}"),
    }
}

/// Polls a future this often, and drops it once it would be polled again. Returns whether it was ready before.
async fn dropped_after(future: impl Future, polls: usize) -> bool {
    struct Woken(Notify);
    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.notify_one();
        }
    }
    let woken = Arc::new(Woken(Notify::new()));
    let waker = Waker::from(woken.clone());
    let mut future = pin!(future);
    for _ in 0..polls {
        let polled = future.as_mut().poll(&mut Context::from_waker(&waker));
        if polled.is_ready() {
            return true;
        }
        woken.0.notified().await;
    }
    false
}

async fn is_free(store: &Store) -> bool {
    match store.session_or_lock(&key(), SHORT).await {
        Ok(SessionOrLock::Lock(lock)) => {
            lock.release().await.unwrap();
            true
        }
        Ok(SessionOrLock::Session(session)) => panic!("{session:?}"),
        Err(StoreError::SessionBeginning { .. }) => false,
        Err(error) => panic!("{error}"),
    }
}

on_each_database! {
    async fn of_many_processes_one_begins_the_session_and_the_others_find_it(database) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("notes");
        drop(database.open().await);
        let children: Vec<_> = (0..12).map(|_| start(&database, "begin", &file)).collect();
        for child in children {
            let output = child.wait_with_output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
        let notes = fs::read_to_string(&file).unwrap();
        let begun: Vec<_> = notes.lines().filter_map(|line| line.strip_prefix("begun ")).collect();
        let [id] = begun[..] else {
            panic!("{notes}");
        };
        assert_eq!(notes.matches(&format!("found {id}\n")).count(), 11, "{notes}");
    }

    async fn the_lock_of_a_killed_process_is_free(database) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("notes");
        let store = database.open().await;
        let mut child = start(&database, "hold", &file);
        let deadline = Instant::now() + LIMIT;
        while fs::read_to_string(&file).unwrap_or_default() != "locked\n" {
            assert!(Instant::now() < deadline, "the lock was never taken");
            tokio::task::yield_now().await;
        }
        let error = store.session_or_lock(&key(), SHORT).await.unwrap_err();
        let StoreError::SessionBeginning { key: shown, pid, .. } = &error else {
            panic!("{error}");
        };
        assert_eq!((&**shown, *pid), ("test:_:_ with claude", child.id()));
        assert!(error.to_string().contains("use another key"), "{error}");
        child.kill().unwrap();
        child.wait().unwrap();
        // Elsewhere only the heartbeat shows that it has ended.
        if cfg!(target_os = "linux") {
            locked(&store).await.release().await.unwrap();
        }
    }

    async fn a_lock_is_held_until_it_is_released_or_dropped(database) {
        let store = database.open().await;
        let other = database.open().await;
        let lock = locked(&store).await;
        assert!(!is_free(&other).await && !is_free(&store).await);
        // Another agent, and another conversation, are not concerned.
        let codex = other.session_or_lock(&talk().with("codex"), SHORT).await.unwrap();
        assert!(matches!(codex, SessionOrLock::Lock(_)));
        lock.release().await.unwrap();
        assert!(is_free(&other).await);

        drop(locked(&store).await);
        // The release of a dropped lock is awaited by the next caller, and by `close`.
        locked(&other).await.release().await.unwrap();
        drop(locked(&store).await);
        store.close().await;
        assert!(is_free(&other).await);
    }

    async fn nothing_is_left_of_a_lock_whose_caller_is_dropped(database) {
        for polls in 1.. {
            let store = database.open().await;
            let is_taken = dropped_after(store.session_or_lock(&key(), LIMIT), polls).await;
            store.close().await;
            let mut connection = sqlx::AnyConnection::connect(database.url()).await.unwrap();
            let locks: i64 = sqlx::query_scalar("SELECT count(*) FROM teamster_session_locks")
                .fetch_one(&mut connection)
                .await
                .unwrap();
            assert_eq!(locks, 0, "{polls} polls");
            if is_taken {
                break;
            }
        }
    }

    async fn the_lock_of_another_machine_is_free_without_heartbeats(database) {
        let (store, clock) = database.open_at(1_000_000).await;
        let former = locked(&store).await;
        database.execute("UPDATE teamster_session_locks SET process_space = 'elsewhere'").await;
        let lost_after = u64::try_from(LOST_AFTER.as_millis()).unwrap();
        clock.store(1_000_000 + lost_after, Relaxed);
        assert!(!is_free(&store).await);
        clock.store(1_000_001 + lost_after, Relaxed);
        let lock = locked(&store).await;
        // The former holder no longer has anything to release.
        former.release().await.unwrap();
        assert!(!is_free(&store).await);
        lock.release().await.unwrap();
        assert!(is_free(&store).await);
    }

    async fn old_locks_are_deleted_with_expired_sessions(database) {
        let (store, clock) = database.open_at(1_000_000).await;
        let lock = locked(&store).await;
        store.expire().await.unwrap();
        assert!(!is_free(&store).await);
        clock.store(1_000_000 + 24 * 60 * 60 * 1000, Relaxed);
        store.expire().await.unwrap();
        assert!(is_free(&store).await);
        lock.release().await.unwrap();
    }

    async fn a_recorder_releases_it_when_the_session_is_stored(database) {
        let store = database.open().await;
        let lock = locked(&store).await;
        let recorder = Recorder::new(store.clone()).conversation(talk()).session_locks([lock]);
        let run_id = accept(&recorder, "r-1", &params()).await;
        assert!(!is_free(&store).await);
        recorder.session(&run_id, "claude", &"s-1".into()).await;
        let found = store.session_or_lock(&key(), Duration::ZERO).await.unwrap();
        assert!(matches!(found, SessionOrLock::Session(session) if session.session_id == "s-1"));
        assert!(store.remove_session(&key()).await.unwrap());
        assert!(is_free(&store).await);
        assert_eq!(recorder.take_errors(), []);
    }

    async fn the_locks_of_other_agents_are_released_with_it(database) {
        let store = database.open().await;
        let lock = locked(&store).await;
        let recorder = Recorder::new(store.clone()).conversation(talk()).session_locks([lock]);
        let run_id = accept(&recorder, "r-1", &params()).await;
        recorder.session(&run_id, "codex", &"s-1".into()).await;
        assert!(is_free(&store).await);
        assert_eq!(recorder.take_errors(), []);
    }

    async fn a_dropped_lock_is_free_although_it_could_not_be_released(database) {
        let store = database.open().await;
        let lock = locked(&store).await;
        // Without a runtime.
        std::thread::spawn(move || drop(lock)).join().unwrap();
        // Elsewhere only the heartbeat shows it.
        if cfg!(target_os = "linux") {
            assert!(is_free(&store).await);
        }
    }

    async fn a_conversation_that_is_started_over_does_not_go_back_to_a_chat_that_goes_on(database) {
        let (store, clock) = database.open_at(1000).await;
        let lock = locked(&store).await;
        let chat = Recorder::new(store.clone()).conversation(talk()).session_locks([lock]);
        let held = async || session_of(&store, "claude").await;
        // A turn of the chat, after the first one in its own session. Returns the session of the key.
        let turn = async |number: u32, session: &str| {
            clock.fetch_add(1, Relaxed);
            let run_id = Id::from(format!("chat.{number}"));
            let mut params = params();
            params.session_id = (number > 1).then(|| "old".to_owned());
            accept(&chat, &run_id, &params).await;
            chat.session(&run_id, "claude", &session.into()).await;
            let during = held().await;
            chat.ended(&outcome(&run_id, vec![attempt("claude", Some(session), None)])).await;
            assert_eq!(held().await, during);
            during
        };
        assert_eq!(turn(1, "old").await.as_deref(), Some("old"));
        // It was forgotten, and no run has begun another one.
        assert!(store.remove_session(&key()).await.unwrap());
        assert_eq!(turn(2, "old").await.as_deref(), Some("old"));

        assert!(store.remove_session(&key()).await.unwrap());
        let lock = locked(&store).await;
        assert_eq!(turn(3, "old").await, None, "another run is about to begin the session");
        let newest = Recorder::new(store.clone()).conversation(talk()).session_locks([lock]);
        let run_id = accept(&newest, "newest", &params()).await;
        newest.session(&run_id, "claude", &"new".into()).await;
        assert_eq!(held().await.as_deref(), Some("new"));
        // With the chat's session under another id too, as of a CLI that gives each turn one.
        assert_eq!(turn(4, "old").await.as_deref(), Some("new"));
        assert_eq!(turn(5, "older").await.as_deref(), Some("new"));
        newest.ended(&outcome(&run_id, vec![attempt("claude", Some("new"), None)])).await;
        assert_eq!(held().await.as_deref(), Some("new"));
        assert_eq!((chat.take_errors(), newest.take_errors()), (Vec::new(), Vec::new()));
    }

    async fn a_run_that_resumes_a_session_takes_no_key_from_one_that_starts_over(database) {
        let (store, clock) = database.open_at(1000).await;
        for (key_has, expected) in [("old", "next"), ("new", "new")] {
            store.put_session(&key(), &NewSession::new(key_has)).await.unwrap();
            clock.fetch_add(1, Relaxed);
            let recorder = Recorder::new(store.clone()).conversation(talk());
            let recorder = recorder.resumed_session("claude", "old");
            let run_id = Id::from(format!("r-{key_has}"));
            let mut params = params();
            params.session_id = Some("old".to_owned());
            accept(&recorder, &run_id, &params).await;
            recorder.session(&run_id, "claude", &"next".into()).await;
            assert_eq!(session_of(&store, "claude").await.as_deref(), Some(expected));
            assert_eq!(recorder.take_errors(), []);
        }
    }

    async fn a_run_that_ends_without_a_session_releases_it(database) {
        let store = database.open().await;
        let lock = locked(&store).await;
        let recorder = Recorder::new(store.clone()).conversation(talk()).session_locks([lock]);
        let run_id = accept(&recorder, "r-1", &params()).await;
        recorder.ended(&outcome(&run_id, vec![attempt("claude", None, Some(not_found()))])).await;
        assert_eq!(session_of(&store, "claude").await, None);
        assert!(is_free(&store).await);
    }
}
