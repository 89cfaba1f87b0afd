//! Agents in a loop, of a supervisor or its files.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::path::Path;

use teamster_api::agents::{AgentList, Command, ErrorCode};
use teamster_api::{ProblemCode, ServiceError};
use teamster_loop::supervisor::{Client, Config, Error, log_path, offline_status};

use crate::service::blocking;

/// The maximum number of bytes read from the end of a log.
const LOG_PIECE: u64 = 256 << 10;

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
            let config = Config::read(file).map_err(|error| problem(&error.into()))?;
            Ok(offline_status(&config).into())
        }
        status => status.map(Into::into).map_err(|error| problem(&error)),
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
    blocking(move || {
        let path = log_path(&agent.working_dir);
        match last_lines(&path, lines) {
            // The agent has not written a log yet.
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(String::new()),
            Err(error) => {
                let detail = format!("cannot read {}: {error}", path.display());
                Err(ServiceError::new(ProblemCode::Internal, detail))
            }
            Ok(text) => Ok(text),
        }
    })
    .await
}

/// Returns the last lines of a file, from at most its last [`LOG_PIECE`] bytes.
fn last_lines(path: &Path, lines: usize) -> io::Result<String> {
    let mut file = File::open(path)?;
    let begin = file.metadata()?.len().saturating_sub(LOG_PIECE);
    file.seek(SeekFrom::Start(begin))?;
    let mut bytes = Vec::new();
    file.take(LOG_PIECE).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    // Drop the partial first line.
    let whole = match (begin, text.split_once('\n')) {
        (1.., Some((_, rest))) => rest,
        _ => &text,
    };
    let skipped = whole.lines().count().saturating_sub(lines);
    Ok(whole.split_inclusive('\n').skip(skipped).collect())
}

fn problem(error: &Error) -> ServiceError {
    let code = match error {
        Error::NotRunning { .. } | Error::NotAnswering { .. } => ProblemCode::SupervisorNotRunning,
        Error::Refused { code, .. } => match code {
            ErrorCode::UnknownAgent => ProblemCode::AgentNotFound,
            _ => ProblemCode::AgentRefused,
        },
        _ => ProblemCode::Internal,
    };
    ServiceError::new(code, error.to_string())
}
