//! Sessions that are tasks of this process, and sessions of a conversation.

use std::env;
use std::fs;
use std::sync::Arc;
use std::time::Duration;

use teamster_api::{Command, ProblemCode, Reply, RunHandle, RunService, SessionSpec, ViewState};
use teamster_core::{Image, Stopping};
use teamster_host::{Host, LocalRuns, SessionTasks};
use teamster_providers::Providers;
use teamster_testkit::proc::wait_until;

use crate::AGENT;

const LIMIT: Duration = Duration::from_secs(20);

/// The agent, which also writes down its arguments and its input.
fn recorded() -> String {
    AGENT
        .replacen(
            "#!/bin/sh\n",
            "#!/bin/sh\nprintf '%s\\n' \"$*\" >> argv\n",
            1,
        )
        .replacen(
            "read -r line; do\n",
            "read -r line; do printf '%s\\n' \"$line\" >> stdin\n",
            1,
        )
}

/// A session whose requests are denied at once.
fn session() -> SessionSpec {
    let mut spec = SessionSpec::new("claude");
    spec.ask_timeout_ms = Some(0);
    spec.trusted
        .env
        .insert("ANTHROPIC_API_KEY".into(), "made-up".into());
    spec
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Runtime::new().unwrap()
}

/// Waits until the turn after the entry with this number has ended.
async fn until_done(run: &RunHandle, seq: u64) {
    let mut log = run.follow(seq);
    while log.next().await.unwrap().unwrap().type_name() != "done" {}
}

#[test]
fn a_task_takes_images_and_ends_with_its_owner() {
    in_own_process!(&recorded());
    // Also where sessions could have processes of their own.
    let host = Host::new(Providers::builtin()).program(env::current_exe().unwrap());
    runtime().block_on(async {
        let history = host.history(None, None).await.unwrap();
        let tasks = SessionTasks::new(Arc::new(history), |_| String::new());
        let runs = LocalRuns::new(&host)
            .unwrap()
            .with_sessions_here(tasks.clone());
        let runs: Arc<dyn RunService> = Arc::new(runs);
        let session = RunHandle::start(runs, "here", session()).await.unwrap();
        let send = Command::Send {
            prompt: "look".to_owned(),
            images: vec![Image::bytes("image/png", *b"hi")],
            from: None,
            key: None,
            trace: None,
        };
        let Ok(Reply::Turn { seq, .. }) = session.send(send).await else {
            panic!("no turn");
        };
        until_done(&session, seq).await;
        let stdin = fs::read_to_string("stdin").unwrap();
        assert!(stdin.contains("image/png"), "{stdin}");
        assert!(tasks.end().await.is_empty());
        let state = session.outline().await.unwrap().summary.state;
        assert_eq!(state, ViewState::Ended);
    });
}

#[test]
fn a_session_continues_the_conversation_of_its_key() {
    let store = ("TEAMSTER_STORE", "store.db");
    in_own_process!(&recorded(), &[store]);
    let host = Host::new(Providers::builtin());
    let runtime = runtime();
    let mut spec = session();
    spec.session_key = Some("editor:app".to_owned());
    for id in ["first", "second"] {
        let mut started = None;
        // The previous one is about to end.
        assert!(wait_until(LIMIT, || {
            match runtime.block_on(host.start(id, spec.clone())) {
                Ok(session) => started = Some(session),
                Err(error) => {
                    assert_eq!(error.code, Some(ProblemCode::SessionInUse), "{error}");
                    assert_eq!(error.parameter.as_deref(), Some("session_key"));
                }
            }
            started.is_some()
        }));
        let session = started.unwrap();
        runtime.block_on(async {
            let (_, seq) = session.say("hello").await.unwrap();
            until_done(&session, seq).await;
            session.cancel(Stopping::Graceful).await.unwrap();
            session.result().await.unwrap();
        });
    }
    let argv = fs::read_to_string("argv").unwrap();
    let starts: Vec<_> = argv.lines().map(|it| it.contains("--resume")).collect();
    assert_eq!(starts, [false, true], "{argv}");
}
