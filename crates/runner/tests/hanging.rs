//! Runners that are live and do not answer.

use std::fs;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::time::Instant;

use teamster_api::{Command, LiveState, ProblemCode, RefusalCode, RunInfo, RunKind, ServiceError};
use teamster_core::{AgentEvent, Stopping, Text};
use teamster_runner::client::{self, Follow};
use teamster_runner::{AcceptedRun, LogLimits, Runs, RunsError};

use crate::live::send;

/// Time within which each command has an answer or an error.
const LIMIT: Duration = Duration::from_secs(15);

/// A run whose runner, this process, never serves its socket. `broken` is how.
fn silent(dir: &tempfile::TempDir) -> AcceptedRun {
    let mut info = RunInfo::new("r", "claude");
    info.kind = RunKind::Session;
    let mut run = Runs::at(dir.path())
        .accept(&info, LogLimits::default())
        .unwrap();
    run.log.push(teamster_api::RunLogEntry::Agent(
        AgentEvent::Text(Text::new("hi")).into(),
    ));
    run.log.flush().unwrap();
    run
}

fn assert_not_answering<T: std::fmt::Debug>(result: Result<T, RunsError>) {
    let error = result.unwrap_err();
    let own = std::process::id();
    let expected = format!("run r does not answer (pid {own})");
    assert!(error.to_string().starts_with(&expected), "{error}");
}

/// Sends each kind of command. The clock is paused: it jumps when all that is left is to wait.
async fn assert_each_command_has_an_error(run: &AcceptedRun) {
    let began = Instant::now();
    let folder = &run.folder;
    let status = client::status(folder).await.unwrap();
    assert_eq!(
        (status.state, status.pid),
        (LiveState::NotAnswering, Some(std::process::id()))
    );
    assert_not_answering(client::requests(folder).await);
    assert_not_answering(client::cancel(folder, Stopping::Graceful).await);
    assert_not_answering(client::command(folder, &Command::Interrupt { kill: true }).await);
    assert!(began.elapsed() < LIMIT * 4);

    // What may take long has an error as well.
    let began = Instant::now();
    assert_not_answering(client::command(folder, &send("x")).await);
    let model = "m".to_owned();
    assert_not_answering(client::command(folder, &Command::SetModel { model }).await);
    assert!(began.elapsed() < LIMIT * 2);

    // The entries that exist are shown first.
    let mut follow = Follow::new(folder.clone(), 0).unwrap();
    assert_eq!(follow.next().await.unwrap().unwrap().type_name(), "text");
    assert_not_answering(follow.next().await);
    assert_not_answering(Follow::end(folder.clone()).await);
}

#[tokio::test(start_paused = true)]
async fn runner_that_accepts_no_connection_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    let run = silent(&dir);
    assert_each_command_has_an_error(&run).await;
    // Further connections are not even queued.
    let socket = run.folder.path().join("control.sock");
    let mut queued = Vec::new();
    while let Ok(stream) = UnixStream::connect(&socket).await {
        queued.push(stream);
    }
    assert_each_command_has_an_error(&run).await;
}

#[tokio::test(start_paused = true)]
async fn runner_without_its_socket_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    let run = silent(&dir);
    fs::remove_file(run.folder.path().join("control.sock")).unwrap();
    assert_each_command_has_an_error(&run).await;
}

/// The lock file of an older version is empty.
#[tokio::test(start_paused = true)]
async fn runner_of_an_unknown_process_is_not_killed() {
    let dir = tempfile::tempdir().unwrap();
    let run = silent(&dir);
    fs::write(run.folder.path().join("lock"), "").unwrap();
    let error = client::cancel(&run.folder, Stopping::Kill)
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "run r does not answer: its process is unknown, or in another container"
    );
}

#[tokio::test(start_paused = true)]
async fn a_command_that_no_runner_reads_is_not_sent() {
    let dir = tempfile::tempdir().unwrap();
    let run = silent(&dir);
    let error = client::command(&run.folder, &send("x".repeat(17 << 20)))
        .await
        .unwrap_err();
    let expected = "a message of 18 MiB is too large for run r, which takes 16 MiB: send fewer or smaller images, or name \
        files in the prompt";
    assert_eq!(error.to_string(), expected);
    assert_eq!(
        ServiceError::from(error).code,
        Some(ProblemCode::BodyTooLarge)
    );
}

#[tokio::test]
async fn a_live_runner_that_is_ending_refuses_a_command() {
    let dir = tempfile::tempdir().unwrap();
    let run = silent(&dir);
    let socket = run.folder.path().join("control.sock");
    fs::remove_file(&socket).unwrap();
    let listener = UnixListener::bind(&socket).unwrap();
    tokio::spawn(async move {
        let (mut client, _) = listener.accept().await.unwrap();
        let reply = r#"{"reply":"refused","code":"ENDING","message":"the session is ending"}"#;
        client.write_all(reply.as_bytes()).await.unwrap();
        client.write_all(b"\n").await.unwrap();
        client.read_to_end(&mut Vec::new()).await.unwrap();
    });
    let error = client::command(&run.folder, &send("x")).await.unwrap_err();
    let RunsError::Refused { code, .. } = error else {
        panic!("{error}");
    };
    assert_eq!(code, RefusalCode::Ending);
}
