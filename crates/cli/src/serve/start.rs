//! Starts detached runs and sessions for a server.

use teamster::{AgentError, ErrorCode, ErrorKind};
use teamster_api::{Launch, Launched, RunSpec, SessionSpec};
use teamster_server::BackendError;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::{detached, runner, words};

/// Starts a run with these variables for its agent. Resolves once the runner has accepted it.
pub(crate) async fn start(
    run_id: String,
    spec: RunSpec,
    variables: &[(&str, String)],
) -> Result<(), BackendError> {
    let agent = spec.provider.clone();
    launch(&agent, Launch::new(run_id, spec), variables).await
}

/// Starts a session. Resolves once the runner has accepted it.
pub(super) async fn start_session(id: String, spec: SessionSpec) -> Result<(), BackendError> {
    let agent = spec.provider.clone();
    launch(&agent, Launch::new(id, spec), &[]).await
}

async fn launch(
    agent: &str,
    launch: Launch,
    variables: &[(&str, String)],
) -> Result<(), BackendError> {
    let cannot = |what: &str, error: &dyn std::fmt::Display| {
        BackendError::Failed(format!("cannot {what}: {error}"))
    };
    // The agent's name becomes an argument.
    let provider = crate::providers().get(agent);
    let info = provider
        .ok_or_else(|| crate::args::no_such_agent(agent))?
        .info();
    let mut command = runner::command(info.id)
        .map_err(|error| BackendError::Failed(words::error_chain(&error)))?;
    command.envs(variables.iter().map(|(name, value)| (*name, value)));
    // Tokio reaps the runner when it ends.
    let mut runner = tokio::process::Command::from(command)
        .spawn()
        .map_err(|error| cannot("start a runner", &error))?;
    let input = serde_json::to_vec(&launch).map_err(|error| cannot("write the request", &error))?;
    if let Some(mut stdin) = runner.stdin.take() {
        // A runner that has ended has its reason in its answer or exit code.
        let _ = stdin.write_all(&input).await;
    }
    let mut answer = Vec::new();
    if let Some(mut stdout) = runner.stdout.take() {
        let read = stdout.read_to_end(&mut answer).await;
        read.map_err(|error| cannot("read the runner's output", &error))?;
    }
    let answer = match serde_json::from_slice(&answer) {
        Ok(answer) => answer,
        Err(_) => match runner.wait().await {
            Ok(status) => Launched::read(&answer, status),
            Err(error) => return Err(cannot("wait for the runner", &error)),
        },
    };
    match answer {
        Launched::Accepted { .. } => Ok(()),
        Launched::Refused { .. } if is_a_run(&launch.id) => Err(BackendError::Exists(launch.id)),
        Launched::Refused { error, .. } => Err(BackendError::Refused(error)),
        _ => Err(BackendError::Refused(AgentError::new(
            ErrorCode::Io,
            ErrorKind::Internal,
            "the runner has another version",
        ))),
    }
}

fn is_a_run(id: &str) -> bool {
    detached::runs().is_ok_and(|runs| matches!(runs.get(id), Ok(Some(_))))
}
