//! Tests of databases that do not answer. Runs continue anyway.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use sqlx::Connection as _;
use teamster_api::history::{RunFilter, RunState};
use teamster_core::Id;
use teamster_orchestrator::RunObserver as _;
use teamster_store::{NewRun, Recorder, Store, StoreError};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;

use crate::recorder::{accept, attempt, outcome, params, session_of, talk};
use crate::support::Database;

/// Time limit of waiting for an expected event.
const DEADLINE: Duration = Duration::from_mins(1);

async fn whole_run(recorder: &Recorder, run_id: &Id) {
    accept(recorder, run_id, &params()).await;
    recorder.session(run_id, "claude", &"s-1".into()).await;
    end(recorder, run_id).await;
}

async fn end(recorder: &Recorder, run_id: &Id) {
    let outcome = outcome(run_id, vec![attempt("claude", Some("s-1"), None)]);
    recorder.ended(&outcome).await;
}

/// Keeps paused time from passing by itself until this is dropped. It passes while only other threads work: that of a
/// database knows nothing of it.
fn hold_time() -> mpsc::Sender<()> {
    let (hold, held) = mpsc::channel();
    // None passes during blocking work.
    tokio::task::spawn_blocking(move || held.recv_timeout(DEADLINE));
    hold
}

#[tokio::test]
async fn a_run_waits_for_a_stuck_database_once_and_not_for_long() {
    /// What a run waits by default, and the resolution of timers.
    const PATIENCE: Duration = Duration::from_millis(2001);
    let database = Database::sqlite();
    let store = database.open().await;
    let mut blocker = sqlx::AnyConnection::connect(database.url()).await.unwrap();
    let _lock = blocker.begin_with("BEGIN IMMEDIATE").await.unwrap();

    tokio::time::pause();
    let hold = hold_time();
    let start = Instant::now();
    let recorder = Recorder::new(store.clone()).conversation(talk());
    let run_id = Id::from("r-1");
    // The run waits already when the time passes.
    let run = whole_run(&recorder, &run_id);
    tokio::join!(biased; run, tokio::time::advance(PATIENCE));
    assert_eq!(start.elapsed(), PATIENCE);
    let errors = recorder.take_errors();
    assert!(
        matches!(&errors[..], [StoreError::Slow { seconds: 2, .. }]),
        "{errors:?}"
    );
    let message = errors[0].to_string();
    assert!(message.contains("is something blocking it?"), "{message}");

    // From here on, time passes by waiting. The entries are given up after some time.
    drop(hold);
    assert!(!recorder.settled(Duration::from_secs(30)).await);
    assert!(recorder.settled(Duration::from_secs(90)).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_missed_by_a_blocked_database_are_repeated_later() {
    let database = Database::sqlite();
    let store = database.open().await;
    let mut blocker = sqlx::AnyConnection::connect(database.url()).await.unwrap();
    let lock = blocker.begin_with("BEGIN IMMEDIATE").await.unwrap();
    let patience = Duration::from_millis(20);
    let recorder = Recorder::new(store.clone())
        .conversation(talk())
        .patience(patience);
    whole_run(&recorder, &"r-1".into()).await;
    assert!(!recorder.settled(Duration::ZERO).await);
    let errors = recorder.take_errors();
    assert!(
        matches!(&errors[..], [StoreError::Slow { .. }]),
        "{errors:?}"
    );

    lock.rollback().await.unwrap();
    // As at the end of a program.
    store.close().await;
    let store = database.open().await;
    let runs = store.runs(&RunFilter::default()).await.unwrap();
    assert_eq!(runs.len(), 1);
    assert_eq!(
        (runs[0].status, runs[0].session_id.as_deref()),
        (RunState::Success, Some("s-1"))
    );
    assert_eq!(session_of(&store, "claude").await.as_deref(), Some("s-1"));
    assert_eq!(recorder.take_errors(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_run_is_awaited_again_when_the_database_recovers() {
    let database = Database::sqlite();
    let store = database.open().await;
    let mut blocker = sqlx::AnyConnection::connect(database.url()).await.unwrap();
    let lock = blocker.begin_with("BEGIN IMMEDIATE").await.unwrap();
    let recorder = Recorder::new(store.clone()).patience(Duration::from_secs(1));
    let run_id = accept(&recorder, "r-1", &params()).await;
    lock.rollback().await.unwrap();
    assert!(recorder.settled(DEADLINE).await);
    assert_eq!(recorder.take_errors().len(), 1);
    end(&recorder, &run_id).await;
    // The entry is written when the call returns.
    assert_eq!(
        store.run("r-1").await.unwrap().unwrap().status,
        RunState::Success
    );
}

/// A proxy between a store and its server. It can stop forwarding, like a stopped server that does not answer.
struct Line {
    url: String,
    /// Connections up to this number are dead.
    dead: Arc<AtomicUsize>,
    /// Connections up to this number die at the pool's next ping.
    dead_when_asked: Arc<AtomicUsize>,
    made: Arc<AtomicUsize>,
}

impl Line {
    async fn to(database: &Database) -> Self {
        let (head, rest) = database.url().split_once('@').unwrap();
        let (server, path) = rest.split_once('/').unwrap();
        let server = server.to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        // Without TLS, so that the proxy can read the messages.
        let url = format!(
            "{head}@{}/{path}&sslmode=disable",
            listener.local_addr().unwrap()
        );
        let [dead, dead_when_asked, made] = [0; 3].map(|number| Arc::new(AtomicUsize::new(number)));
        let deaths = [&dead, &dead_when_asked].map(Arc::clone);
        let count = Arc::clone(&made);
        tokio::spawn(async move {
            loop {
                let (client, _) = listener.accept().await.unwrap();
                let number = count.fetch_add(1, SeqCst) + 1;
                let server = TcpStream::connect(&server).await.unwrap();
                let (client, server) = (client.into_split(), server.into_split());
                tokio::spawn(pass(client.0, server.1, number, deaths.clone()));
                tokio::spawn(pass(server.0, client.1, number, deaths.clone()));
            }
        });
        Self {
            url,
            dead,
            dead_when_asked,
            made,
        }
    }

    /// Stops forwarding on all existing connections.
    fn cut(&self) {
        self.dead.store(self.made.load(SeqCst), SeqCst);
    }

    /// Stops forwarding on all existing and future connections.
    fn cut_all(&self) {
        self.dead.store(usize::MAX, SeqCst);
    }
}

async fn pass(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    number: usize,
    [dead, dead_when_asked]: [Arc<AtomicUsize>; 2],
) {
    // A single Sync message.
    const SIGN_OF_LIFE: &[u8] = b"S\0\0\0\x04";
    let mut bytes = vec![0; 65536];
    while let Ok(length @ 1..) = from.read(&mut bytes).await {
        let is_asked = &bytes[..length] == SIGN_OF_LIFE;
        if number <= dead.load(SeqCst) || is_asked && number <= dead_when_asked.load(SeqCst) {
            std::future::pending::<()>().await;
        }
        if to.write_all(&bytes[..length]).await.is_err() {
            return;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn end_of_a_run_is_written_on_a_fresh_connection() {
    let Some(database) = Database::postgres().await else {
        return;
    };
    let line = Line::to(&database).await;
    let store = Store::open(&line.url).await.unwrap();
    let recorder = Recorder::new(store.clone()).conversation(talk());
    let run_id = accept(&recorder, "r-1", &params()).await;
    assert_eq!(recorder.take_errors(), []);
    line.cut();
    end(&recorder, &run_id).await;

    // The first use of the connection fails: the end, or work that was left from the beginning.
    let errors = recorder.take_errors();
    assert!(
        matches!(&errors[..], [] | [StoreError::Slow { .. }]),
        "{errors:?}"
    );
    // At the latest in the background.
    assert!(recorder.settled(DEADLINE).await);
    let other = database.open().await;
    assert_eq!(
        other.run("r-1").await.unwrap().unwrap().status,
        RunState::Success
    );
    assert_eq!(session_of(&other, "claude").await.as_deref(), Some("s-1"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_that_was_given_up_does_not_hold_up_the_next() {
    let Some(database) = Database::postgres().await else {
        return;
    };
    let line = Line::to(&database).await;
    let store = Store::open(&line.url).await.unwrap();
    line.cut();
    let run = NewRun::new("one", "claude", "");
    let begun = tokio::time::timeout(Duration::from_millis(50), store.begin_run(&run)).await;
    begun.unwrap_err();
    let found = tokio::time::timeout(DEADLINE, store.run_exists("one")).await;
    assert!(!found.unwrap().unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn connection_that_dies_on_return_does_not_delay_the_next() {
    let Some(database) = Database::postgres().await else {
        return;
    };
    let line = Line::to(&database).await;
    line.dead_when_asked.store(1, SeqCst);
    let store = Store::open(&line.url).await.unwrap();
    let found = store.run_exists("one").await;
    assert_eq!(found, Ok(false));
}

#[tokio::test]
async fn a_silent_server_is_waited_for_within_the_limit() {
    // Connections are accepted but never read.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let url = format!("postgres://user:secret@{address}/db");
    let opened = Store::open_within(&url, Duration::from_secs(1)).await;
    let expected = StoreError::Slow {
        doing: "open",
        location: format!("postgres://{address}/db"),
        seconds: 1,
    };
    assert_eq!(opened.err(), Some(expected));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_continues_when_the_server_does_not_answer() {
    let Some(database) = Database::postgres().await else {
        return;
    };
    let line = Line::to(&database).await;
    let store = Store::open(&line.url).await.unwrap();
    let patience = Duration::from_millis(50);
    let recorder = Recorder::new(store).conversation(talk()).patience(patience);
    line.cut_all();
    whole_run(&recorder, &"r-1".into()).await;
    let errors = recorder.take_errors();
    assert!(
        matches!(&errors[..], [StoreError::Slow { .. }]),
        "{errors:?}"
    );
    // The server is back, so the missed entries are written.
    line.cut();
    assert!(recorder.settled(DEADLINE).await);
    let other = database.open().await;
    assert_eq!(
        other.run("r-1").await.unwrap().unwrap().status,
        RunState::Success
    );
}
