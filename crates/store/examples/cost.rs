//! Measures the time that a store adds to a run: the median of 50 runs, in a file and, if `TEAMSTER_TEST_POSTGRES` is
//! set, on a server.
//!
//! ```sh
//! .ci/postgres cargo run --release -p teamster-store --example cost
//! ```
#![expect(clippy::print_stdout, reason = "it is a program")]
#![expect(clippy::unwrap_used, reason = "there is nothing to do about an error")]

use std::time::{Duration, Instant};

use teamster_api::Outcome;
use teamster_core::{RunResult, RunStatus};
use teamster_store::{Conversation, NewRun, NewSession, Store};

const TIMES: usize = 50;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("store.db").display().to_string();
    measure("SQLite", &file).await;
    if let Ok(server) = std::env::var("TEAMSTER_TEST_POSTGRES") {
        measure("PostgreSQL on loopback", &server).await;
    }
}

async fn measure(name: &str, url: &str) {
    let start = Instant::now();
    Store::open(url).await.unwrap().close().await;
    println!("{name}: made in {:.2} ms", millis(start.elapsed()));

    let names = ["open", "begin", "session", "end", "close", "all"];
    let mut figures = names.map(|_| Vec::new());
    let key = Conversation::new().channel("cost").with("claude");
    for i in 0..TIMES {
        let id = format!("{}-{i}", std::process::id());
        let start = Instant::now();
        let mut before = start;
        let mut lap = || {
            let now = Instant::now();
            now - std::mem::replace(&mut before, now)
        };
        let store = Store::open(url).await.unwrap();
        figures[0].push(lap());
        store
            .begin_run(&NewRun::new(&*id, "claude", "a prompt"))
            .await
            .unwrap();
        figures[1].push(lap());
        store.set_run_session(&id, "claude", &id).await.unwrap();
        let session = NewSession::new(&*id);
        store.put_session(&key, &session).await.unwrap();
        figures[2].push(lap());
        let outcome = Outcome::new(&*id, "claude", completed());
        store.end_run(&outcome).await.unwrap();
        figures[3].push(lap());
        store.close().await;
        figures[4].push(lap());
        figures[5].push(start.elapsed());
    }
    for (name, mut figures) in names.into_iter().zip(figures) {
        figures.sort();
        let [median, most] = [figures[TIMES / 2], figures[TIMES - 1]].map(millis);
        println!("  {name:8} {median:6.2} ms (at most {most:.2})");
    }
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

fn completed() -> RunResult {
    RunResult::default().status(RunStatus::Completed)
}
