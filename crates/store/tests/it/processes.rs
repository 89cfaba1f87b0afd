//! Tests of several processes that use one store, and of the state after some are killed.
//!
//! The processes are this test program itself. It runs only `the_other_process`, which does nothing without the
//! variable below.

use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, RandomState};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use sqlx::Connection as _;
use teamster_api::history::{RunFilter, RunRecord, RunState};
use teamster_api::{Attempt, Outcome};
use teamster_core::{AgentError, ErrorCode, ErrorKind, RunResult, Usage};
use teamster_store::{Conversation, NewRun, NewSession, SessionFilter, Store};

use crate::support::Database;

/// Environment variable `COUNT NAME URL`: the number of runs (0 for no end), whose ids begin with the name.
const VARIABLE: &str = "TEAMSTER_STORE_TEST_PROCESS";

/// Time limit of waiting for an expected event.
const DEADLINE: Duration = Duration::from_mins(2);

#[tokio::test(flavor = "multi_thread")]
async fn the_other_process() {
    let Ok(order) = std::env::var(VARIABLE) else {
        return;
    };
    let [count, name, url] = order.splitn(3, ' ').collect::<Vec<_>>()[..] else {
        panic!("{order}");
    };
    let count: usize = count.parse().unwrap();
    let store = Store::open(url).await.unwrap();
    let mut i = 0;
    while count == 0 || i < count {
        write(&store, name, i).await;
        i += 1;
    }
    store.close().await;
}

fn start(database: &Database, name: &str, count: usize) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "processes::the_other_process", "--nocapture"])
        .env(VARIABLE, format!("{count} {name} {}", database.url()))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn shared() -> Conversation {
    Conversation::new().channel("shared")
}

/// Writes one run with its sessions. The number determines every field of a row.
async fn write(store: &Store, name: &str, i: usize) {
    let id = format!("{name}-{i}");
    let mut new = NewRun::new(&*id, "claude", &id);
    new.conversation = Some(name.to_owned());
    store.begin_run(&new).await.unwrap();
    assert!(store.set_run_session(&id, "claude", &id).await.unwrap());
    for conversation in [shared(), Conversation::new().channel(name)] {
        let session = NewSession::new(&*id)
            .model(format!("model {id}"))
            .working_directory(format!("/work/{id}"));
        let key = conversation.with("claude");
        store.put_session(&key, &session).await.unwrap();
    }
    assert!(store.heartbeat(&id).await.unwrap());
    store.end_run(&outcome(&id)).await.unwrap();
}

fn outcome(id: &str) -> Outcome {
    let mut outcome = Outcome::new(id, "claude", RunResult::default());
    let figure = Some(id.len() as u64);
    outcome.result.usage = Some(
        Usage::default()
            .input_tokens(figure)
            .output_tokens(figure)
            .cache_read_tokens(figure)
            .cache_write_tokens(figure)
            .reasoning_tokens(figure),
    );
    let failure = AgentError::new(ErrorCode::CliError, ErrorKind::Network, id.repeat(20));
    outcome.session_id = Some(id.into());
    outcome.model = Some(id.into());
    outcome.result.total_cost_usd = Some(0.25);
    outcome.result.num_turns = Some(3);
    outcome.error = Some(failure.clone());
    let mut attempt = Attempt::new("claude", 0);
    attempt.session_id = Some(id.into());
    attempt.usage = outcome.result.usage;
    attempt.error = Some(failure);
    outcome.attempts = vec![attempt];
    outcome
}

/// Returns whether a row has its state of the beginning or of the end, and no mixture.
fn is_whole(run: &RunRecord) -> bool {
    let ended = outcome(&run.run_id);
    let begun = run.prompt_hash == teamster_store::prompt_hash(&run.run_id)
        && run.conversation.as_deref() == run.run_id.split('-').next();
    begun
        && match run.status {
            RunState::Error => {
                run.ended_at.is_some()
                    && run.duration_ms == Some(0)
                    && run.session_id.as_deref() == Some(&*run.run_id)
                    && run.model.as_deref() == Some(&*run.run_id)
                    && run.usage == ended.result.usage
                    && (run.cost_usd, run.num_turns, run.attempts) == (Some(0.25), Some(3), 1)
                    && run.error == ended.error
                    && run.attempt_log == ended.attempts
            }
            RunState::Running | RunState::Interrupted => {
                let empty = (run.ended_at, run.usage, run.cost_usd, run.attempts);
                empty == (None, None, None, 0) && run.error.is_none() && run.attempt_log.is_empty()
            }
            _ => false,
        }
}

/// Checks the integrity of a store. Returns its runs by the process that wrote them.
async fn checked(database: &Database) -> BTreeMap<String, Vec<RunRecord>> {
    let store = database.open().await;
    if database.is_sqlite() {
        let mut connection = sqlx::AnyConnection::connect(database.url()).await.unwrap();
        let answer: String = sqlx::query_scalar("PRAGMA integrity_check")
            .fetch_one(&mut connection)
            .await
            .unwrap();
        assert_eq!(answer, "ok");
    }
    for session in store.sessions(&SessionFilter::default()).await.unwrap() {
        let id = &session.session_id;
        assert_eq!(session.model, Some(format!("model {id}")));
        assert_eq!(
            session.working_directory,
            Some(format!("/work/{id}").into())
        );
        let name = session.key.conversation.channel.as_deref().unwrap();
        assert!(
            name == "shared" || id.starts_with(&format!("{name}-")),
            "{name}: {id}"
        );
    }
    let mut runs = BTreeMap::<String, Vec<RunRecord>>::new();
    for run in store.runs(&RunFilter::default()).await.unwrap() {
        assert!(is_whole(&run), "{run:#?}");
        let name = run.conversation.clone().unwrap();
        runs.entry(name).or_default().push(run);
    }
    runs
}

on_each_database! {
    async fn many_processes_make_a_store_and_write_to_it_and_nothing_is_lost(database) {
        const PROCESSES: usize = 8;
        const RUNS: usize = 15;
        let children: Vec<_> = (0..PROCESSES)
            .map(|i| start(&database, &format!("p{i}"), RUNS))
            .collect();
        for child in children {
            let output = child.wait_with_output().unwrap();
            let message = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{message}");
        }
        let runs = checked(&database).await;
        assert_eq!(runs.len(), PROCESSES);
        for (name, runs) in runs {
            assert_eq!(runs.len(), RUNS, "{name}");
            assert!(runs.iter().all(|run| run.status == RunState::Error));
        }
        let sessions = database.open().await.sessions(&SessionFilter::default()).await.unwrap();
        assert_eq!(sessions.len(), PROCESSES + 1);
        let last = format!("-{}", RUNS - 1);
        for session in sessions {
            let is_shared = session.key.conversation == shared();
            assert!(is_shared || session.session_id.ends_with(&last), "{session:?}");
        }
    }

    async fn nothing_is_wrong_after_processes_were_killed_while_they_wrote(database) {
        let mut chance = Chance::new();
        let store = database.open().await;
        for round in 0..5 {
            let mut writers: Vec<_> = (0..3)
                .map(|i| {
                    let name = format!("w{round}x{i}");
                    (start(&database, &name, 0), name)
                })
                .collect();
            // Each process is killed at its own moment, while the others continue.
            for (child, name) in &mut writers {
                let mut filter = RunFilter::default();
                filter.conversation = Some(name.clone());
                let goal = u32::try_from(chance.below(20)).unwrap() + 1;
                filter.limit = Some(goal);
                let deadline = Instant::now() + DEADLINE;
                while store.runs(&filter).await.unwrap().len() < goal as usize {
                    assert!(Instant::now() < deadline, "{name} writes nothing");
                    assert_eq!(child.try_wait().unwrap(), None, "{name} has ended by itself");
                }
                let moment = Instant::now() + Duration::from_micros(chance.below(8000));
                while Instant::now() < moment {
                    std::hint::spin_loop();
                }
                child.kill().unwrap();
                child.wait().unwrap();
            }
            let runs = checked(&database).await;
            for (_, name) in &writers {
                let runs = &runs[name];
                let unfinished: Vec<_> = runs
                    .iter()
                    .filter(|run| run.status != RunState::Error)
                    .collect();
                // Only the last run may be unfinished, and every run before it is there. PostgreSQL may execute a
                // pending statement shortly after its process is gone, so the last run may also be finished.
                assert!(unfinished.len() <= 1, "{unfinished:#?}");
                for i in 0..runs.len() {
                    assert!(runs.iter().any(|run| run.run_id == format!("{name}-{i}")));
                }
                if cfg!(target_os = "linux") {
                    assert!(unfinished.iter().all(|run| run.status == RunState::Interrupted));
                }
            }
        }
        let mut filter = RunFilter::default();
        filter.status = Some(RunState::Interrupted);
        let interrupted = store.runs(&filter).await.unwrap().len() as u64;
        if cfg!(target_os = "linux") {
            assert!(interrupted > 0, "no process was killed in the middle of a run");
            assert_eq!(store.mark_interrupted().await.unwrap(), interrupted);
        }
    }

    async fn a_store_can_be_opened_after_a_kill_during_its_creation(database) {
        let mut chance = Chance::new();
        // Kills are aimed at the time between the start and the creation of the tables.
        for round in 0..25 {
            let mut child = start(&database, &format!("o{round}"), 0);
            let moment = Instant::now() + Duration::from_micros(chance.below(30_000));
            while Instant::now() < moment {
                std::thread::yield_now();
            }
            child.kill().unwrap();
            child.wait().unwrap();
            if round % 5 == 4 {
                checked(&database).await;
                let tables = [
                    "teamster_runs",
                    "teamster_sessions",
                    "teamster_session_locks",
                    "teamster_holds",
                    "teamster_migrations",
                ];
                for table in tables {
                    database.execute(&format!("DROP TABLE IF EXISTS {table}")).await;
                }
            }
        }
        let store = database.open().await;
        write(&store, "after", 0).await;
        assert_eq!(checked(&database).await["after"].len(), 1);
    }
}

/// Random moments. A failed test prints the seed.
struct Chance(u64);

impl Chance {
    fn new() -> Self {
        let seed = RandomState::new().hash_one(0) | 1;
        println!("seed {seed}");
        Self(seed)
    }

    /// Returns a random number below `bound` (xorshift).
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}
