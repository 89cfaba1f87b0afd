//! Runs that are stopped at different times.

use std::time::Duration;

use teamster_core::{AgentEvent, AgentRuntime, ErrorKind, RunStatus, Timeouts};
use teamster_process::ProcessIdentity;

use crate::stage::{MODELS, Stage, read, read_with, wait_for};

#[tokio::test(flavor = "multi_thread")]
async fn before_the_start_nothing_is_asked() {
    let stage = Stage::new("[[turn]]\nparts = [{ text = \"x\" }]").await;
    let stream = stage.runtime.execute(stage.params(MODELS[1], "Go."));
    stream.abort();
    let (result, events) = read(stream).await;
    assert_eq!(result.status, RunStatus::Aborted);
    assert_eq!(events.len(), 2);
    assert!(stage.model.requests().is_empty());
    assert!(!stage.state().exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn while_the_model_writes_and_the_session_keeps_its_text() {
    let script = "[[turn]]\nparts = [{ text = [\"This continues \"] }, \"stall\"]\n[[turn]]\nparts = [{ text = \"Well.\" }]";
    let stage = Stage::new(script).await;
    let stream = stage.runtime.execute(stage.params(MODELS[1], "Speak."));
    let handle = stream.abort_handle();
    let (result, _) = read_with(stream, |event| {
        if matches!(event, AgentEvent::Text(_)) {
            handle.abort();
        }
    })
    .await;
    assert_eq!(result.status, RunStatus::Aborted);
    assert_eq!(result.text, "This continues ");
    assert_eq!(result.errors.len(), 1);
    assert_eq!(result.errors[0].kind, ErrorKind::Aborted);
    let mut params = stage.params(MODELS[1], "And now?");
    params.session_id = result.session_id.as_deref().map(str::to_owned);
    let (result, _) = stage.play(params).await;
    assert_eq!(result.text, "Well.");
    let body = stage.request(1).to_string();
    assert!(
        body.contains("Speak.") && body.contains("This continues ") && body.contains("And now?"),
        "{body}"
    );
}

/// A command that starts a process in another process session, and writes its id to a file.
const STRAY: &str = "setsid sleep 300 & echo $! > pid; sleep 300";

/// Waits for the process of [`STRAY`].
fn stray_of(stage: &Stage) -> ProcessIdentity {
    wait_for("the command", || {
        stage.file("pid").is_some_and(|it| it.ends_with('\n'))
    });
    let stray = stage.file("pid").unwrap().trim().parse().unwrap();
    ProcessIdentity::of(stray).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn while_a_command_runs_and_none_of_its_processes_is_left() {
    let stage = Stage::new(&format!("[[turn]]\nparts = [{{ shell = \"{STRAY}\" }}]")).await;
    let stream = stage.runtime.execute(stage.params(MODELS[1], "Wait."));
    let handle = stream.abort_handle();
    let reading = tokio::spawn(read(stream));
    let stray = stray_of(&stage);
    handle.abort();
    let (result, _) = reading.await.unwrap();
    assert!(!stray.is_running());
    assert_eq!(result.status, RunStatus::Aborted);
    assert_eq!(result.open_tool_ids.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn by_dropping_the_stream() {
    let stage = Stage::new(&format!("[[turn]]\nparts = [{{ shell = \"{STRAY}\" }}]")).await;
    let mut stream = stage.runtime.execute(stage.params(MODELS[1], "Wait."));
    let reading = tokio::spawn(async move { while stream.next().await.is_some() {} });
    let stray = stray_of(&stage);
    reading.abort();
    wait_for("the end of the command", || !stray.is_running());
}

#[tokio::test(flavor = "multi_thread")]
async fn while_a_request_waits_to_be_made_again() {
    let script = "[[turn]]\nerror = { kind = \"rate_limit\", headers = { retry-after = \"30\" } }";
    let stage = Stage::new(script).await;
    let stream = stage.runtime.execute(stage.params(MODELS[1], "Go."));
    let handle = stream.abort_handle();
    let reading = tokio::spawn(read(stream));
    stage.model.wait_for_requests(1).await;
    handle.abort();
    let (result, _) = reading.await.unwrap();
    assert_eq!(result.status, RunStatus::Aborted);
    assert_eq!(stage.model.requests().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_takes_too_long_ends_the_run_and_its_processes() {
    let stage = Stage::new(&format!("[[turn]]\nparts = [{{ shell = \"{STRAY}\" }}]")).await;
    let mut params = stage.params(MODELS[1], "Wait.");
    params.timeouts = Timeouts::default().tool(Duration::from_millis(700));
    let (result, _) = stage.play(params).await;
    assert_eq!(result.status, RunStatus::TimedOut);
    assert_eq!(
        result.error().unwrap().message,
        "the tool bash did not end within 700ms"
    );
    let stray = stage.file("pid").unwrap().trim().parse().unwrap();
    assert_eq!(ProcessIdentity::of(stray), None);
}
