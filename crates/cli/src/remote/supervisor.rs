//! The supervisor on a server's machine.

use std::sync::Arc;

use teamster::agent_loop::supervisor::Error;
use teamster_api::agents::{AgentList, Command, ErrorCode, Status};
use teamster_api::{MachineService, ProblemCode, ServiceError};

use super::{Machine, text};

/// The supervisor of a server's machine.
pub(crate) struct RemoteSupervisor {
    machine: Arc<dyn MachineService>,
    url: String,
}

impl RemoteSupervisor {
    /// Returns the supervisor of this machine, which is that of a server.
    pub(crate) fn of(machine: &Machine) -> Self {
        Self {
            machine: machine.agents(),
            url: machine.url().unwrap_or_default().to_owned(),
        }
    }

    /// Sends a command and returns the agents' status after it. Without a supervisor, the status is what files show.
    pub(crate) async fn ask(&self, command: Command) -> Result<Status, Error> {
        match self.machine.loops(command).await {
            Ok(list) => self.read(list),
            Err(error) if error.code == Some(ProblemCode::SupervisorNotRunning) => {
                Err(self.not_running(&error).await)
            }
            Err(error) => Err(failed(&error)),
        }
    }

    fn read(&self, list: AgentList) -> Result<Status, Error> {
        let Some(config) = list.config else {
            return Err(Error::Refused {
                code: ErrorCode::BadConfig,
                message: format!(
                    "{} has no agents: start it with `teamster serve --agents FILE`",
                    self.url
                ),
            });
        };
        let mut status = Status::new(config, list.agents);
        status.supervisor = list.supervisor;
        status.enabled = list.enabled;
        status.warnings = list.warnings;
        Ok(status)
    }

    /// Returns the last lines of an agent's log.
    pub(crate) async fn log(&self, agent: &str, lines: usize) -> Result<String, Error> {
        let log = self.machine.loop_log(agent, lines).await;
        log.map_err(|error| failed(&error))
    }

    /// Returns the error of a missing supervisor, with the configuration's path if it is known.
    async fn not_running(&self, error: &ServiceError) -> Error {
        match self.machine.loops(Command::Status).await {
            Ok(AgentList {
                config: Some(config),
                supervisor: None,
                ..
            }) => Error::NotRunning { config },
            _ => failed(error),
        }
    }
}

fn failed(error: &ServiceError) -> Error {
    let code = match error.code {
        Some(ProblemCode::AgentNotFound) => ErrorCode::UnknownAgent,
        _ => ErrorCode::Other,
    };
    Error::Refused {
        code,
        message: text(error),
    }
}
