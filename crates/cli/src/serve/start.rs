//! Starts detached runs and sessions for a server, with the command line of `teamster run --detach` or
//! `teamster chat --detach`.

mod arguments;

use std::io::{Read, Seek};

use teamster_runner::launch::{Launch, accepted_id};
use teamster_server::{BackendError, RunSpec, SessionSpec};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::{detached, exit_code, runner, words};

/// Starts a run with these variables for its agent. Resolves once the runner has accepted it.
pub(crate) async fn start(
    run_id: String,
    request: RunSpec,
    variables: &[(&str, String)],
) -> Result<(), BackendError> {
    let args = arguments::run_arguments(&run_id, &request)?;
    launch(
        &run_id,
        &request.provider,
        Launch::new(args, Some(request.prompt)),
        variables,
    )
    .await
}

/// Starts a session. Resolves once the runner has accepted it.
pub(super) async fn start_session(id: String, request: SessionSpec) -> Result<(), BackendError> {
    let args = arguments::session_arguments(&request)?;
    let mut to_launch = Launch::new(args, None);
    to_launch.session_id = Some(id.clone());
    launch(&id, &request.provider, to_launch, &[]).await
}

async fn launch(
    id: &str,
    provider: &str,
    launch: Launch,
    variables: &[(&str, String)],
) -> Result<(), BackendError> {
    let cannot = |what: &str, error: &dyn std::fmt::Display| {
        BackendError::Failed(format!("cannot {what}: {error}"))
    };
    // A file, because processes that the runner starts would keep a pipe open.
    let mut stderr_file =
        tempfile::tempfile().map_err(|error| cannot("make a temporary file", &error))?;
    let stderr = stderr_file
        .try_clone()
        .map_err(|error| cannot("share a file", &error))?;
    let mut command = runner::command(provider)
        .map_err(|error| BackendError::Failed(words::error_chain(&error)))?;
    command.stderr(stderr);
    command.envs(variables.iter().map(|(name, value)| (*name, value)));
    // Tokio reaps the runner when it ends.
    let mut runner = tokio::process::Command::from(command)
        .spawn()
        .map_err(|error| cannot("start a runner", &error))?;
    let launch =
        serde_json::to_vec(&launch).map_err(|error| cannot("write the request", &error))?;
    if let Some(mut stdin) = runner.stdin.take() {
        // If the runner has ended, its stderr or exit code has the reason.
        let _ = stdin.write_all(&launch).await;
    }
    let mut reply = String::new();
    if let Some(mut stdout) = runner.stdout.take() {
        let read = stdout.read_to_string(&mut reply).await;
        read.map_err(|error| cannot("read the runner's output", &error))?;
    }
    if accepted_id(&reply).is_some() {
        return Ok(());
    }
    let status = runner.wait().await;
    let status = status.map_err(|error| cannot("wait for the runner", &error))?;
    let mut text = String::new();
    // On an error, the text stays empty.
    let _ = stderr_file
        .rewind()
        .and_then(|()| stderr_file.read_to_string(&mut text));
    let text = reason(&text).unwrap_or_else(|| format!("the runner ended ({status})"));
    if detached::runs().is_ok_and(|runs| matches!(runs.get(id), Ok(Some(_)))) {
        return Err(BackendError::Exists(id.to_owned()));
    }
    match status.code() {
        Some(code) if code == i32::from(exit_code::USAGE) => Err(BackendError::Invalid(text)),
        _ => Err(BackendError::Failed(text)),
    }
}

/// Returns the last error that the runner printed.
fn reason(stderr: &str) -> Option<String> {
    let mut lines = stderr.lines().rev();
    let error = lines.find_map(|line| line.strip_prefix("error: "));
    error.map(words::one_line)
}
