//! Agents in a loop, of a supervisor or its files.

use std::io::{self, ErrorKind};
use std::path::Path;
use std::time::{Duration, Instant};

use teamster_api::agents::{AgentList, AgentState, AgentStatus, Command};
use teamster_api::{MachineService, ProblemCode, ServiceError};
use teamster_core::time::epoch_ms;
use teamster_loop::LogReader;
use teamster_loop::supervisor::{Client, Config, Error, log_path, offline_status};
use tokio::time::sleep;

use crate::service::blocking;

/// The maximum number of bytes read from the end of a log.
const LOG_PIECE: u64 = 256 << 10;
/// Interval between checks for the result of a command.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Time after which a running loop without a status counts as started.
const SILENCE_LIMIT: Duration = Duration::from_secs(2);
/// Limit for the result of a command, in addition to the supervisor's grace period.
const RESULT_LIMIT: Duration = Duration::from_secs(15);

/// Sends a command to the supervisor of this configuration.
pub(super) async fn execute(
    config: Option<&Path>,
    command: Command,
) -> Result<AgentList, ServiceError> {
    let Some(file) = config else {
        return Ok(AgentList::none());
    };
    let is_query = command == Command::Status;
    let status = match Client::connect(file).await {
        Ok(mut client) => client.ask(command).await,
        Err(error) => Err(error),
    };
    match status {
        Err(Error::NotRunning { .. } | Error::NotAnswering { .. }) if is_query => {
            let config = Config::read(file).map_err(Error::from)?;
            Ok(offline_status(&config).into())
        }
        status => Ok(status?.into()),
    }
}

/// Returns the last lines of an agent's log.
pub(super) async fn log(
    config: Option<&Path>,
    id: &str,
    lines: usize,
) -> Result<String, ServiceError> {
    let agents = execute(config, Command::Status).await?.agents;
    let Some(agent) = agents.into_iter().find(|agent| agent.id == id) else {
        let detail = format!("no agent \"{id}\"");
        return Err(ServiceError::new(ProblemCode::AgentNotFound, detail));
    };
    blocking(move || match last_lines(&agent.working_dir, lines) {
        // The agent has not written a log yet.
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(String::new()),
        Err(error) => {
            let path = log_path(&agent.working_dir);
            let detail = format!("cannot read {}: {error}", path.display());
            Err(ServiceError::new(ProblemCode::Internal, detail))
        }
        Ok(text) => Ok(text),
    })
    .await
}

/// Returns the last lines of the log in this directory.
fn last_lines(working_dir: &Path, lines: usize) -> io::Result<String> {
    let mut log = LogReader::open(working_dir, lines, LOG_PIECE)?;
    let mut text = Vec::new();
    // Lines may be added meanwhile.
    while (text.len() as u64) < 2 * LOG_PIECE {
        match log.read()? {
            [] => break,
            piece => text.extend_from_slice(piece),
        }
    }
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// Starts, stops or restarts agents in a loop, and waits until the result is known, for at most 15 s and the time that a loop
/// may take to end. `before` is the status before. Returns that after it.
///
/// # Errors
///
/// Fails as [`MachineService::loops`] does.
pub async fn control_loops(
    machine: &dyn MachineService,
    before: &AgentList,
    command: Command,
) -> Result<AgentList, ServiceError> {
    let mut list = machine.loops(command.clone()).await?;
    let (Command::Start(selection) | Command::Stop(selection) | Command::Restart(selection)) =
        &command
    else {
        return Ok(list);
    };
    let is_done = |list: &AgentList, agent: &AgentStatus| {
        // A command for all agents leaves those that are switched off alone.
        let is_off = !(list.enabled && agent.enabled) && agent.pid.is_none();
        let process = before.agents.iter().find(|it| it.id == agent.id);
        is_off
            || match command {
                Command::Stop(_) => agent.pid.is_none(),
                Command::Restart(_) => {
                    let process = process.and_then(|agent| agent.pid);
                    (process.is_none() || process != agent.pid) && has_settled(agent)
                }
                _ => has_settled(agent),
            }
    };
    let grace = list.supervisor.as_ref().map_or(0, |it| it.grace_ms);
    let limit = RESULT_LIMIT.saturating_add(Duration::from_millis(grace));
    let began = Instant::now();
    loop {
        let mut selected = list.agents.iter().filter(|it| selection.contains(&it.id));
        if selected.all(|agent| is_done(&list, agent)) || began.elapsed() > limit {
            return Ok(list);
        }
        sleep(POLL_INTERVAL).await;
        list = machine.loops(Command::Status).await?;
    }
}

/// Returns whether the result of a start is known. A loop that cannot run ends before it reports a status.
fn has_settled(agent: &AgentStatus) -> bool {
    match agent.state {
        AgentState::Starting | AgentState::Stopping => false,
        state if state.is_running() && agent.activity.is_none() => {
            let started = agent.started_at_ms.unwrap_or_default();
            Duration::from_millis(epoch_ms().saturating_sub(started)) >= SILENCE_LIMIT
        }
        _ => true,
    }
}
