//! The supervisor on a server's machine.

use teamster::agent_loop::supervisor::Error;
use teamster_api::ProblemCode;
use teamster_api::agents::{AgentList, Command, ErrorCode, Status};
use teamster_client::{AgentCommand, Client, ClientError};

use super::text;

/// A client of a server's supervisor.
#[derive(Debug)]
pub(crate) struct RemoteSupervisor(pub(crate) Client);

impl RemoteSupervisor {
    /// Sends a command and returns the agents' status after it.
    pub(crate) async fn ask(&mut self, command: Command) -> Result<Status, Error> {
        let (command, selection) = match command {
            Command::Status => return self.status().await,
            Command::Start(selection) => (AgentCommand::Start, selection),
            Command::Stop(selection) => (AgentCommand::Stop, selection),
            Command::Restart(selection) => (AgentCommand::Restart, selection),
            Command::Wake(selection) => (AgentCommand::Wake, selection),
            _ => {
                return Err(Error::Refused {
                    code: ErrorCode::BadRequest,
                    message:
                        "this command does not support --remote: run it on the server's machine"
                            .to_owned(),
                });
            }
        };
        match self.0.command_agents(command, &selection).await {
            Ok(list) => self.read(list),
            Err(error) => Err(self.error(error).await),
        }
    }

    /// Returns the agents' status; without a supervisor, as far as files show it.
    pub(crate) async fn status(&self) -> Result<Status, Error> {
        self.read(self.0.agents().await.map_err(|error| failed(&error))?)
    }

    fn read(&self, list: AgentList) -> Result<Status, Error> {
        let Some(config) = list.config else {
            return Err(Error::Refused {
                code: ErrorCode::BadConfig,
                message: format!(
                    "{} has no agents: start it with `teamster serve --agents FILE`",
                    self.0.url()
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
    pub(crate) async fn log(&self, agent: &str, lines: usize) -> Result<Vec<u8>, Error> {
        self.0
            .agent_log(agent, lines)
            .await
            .map_err(|error| failed(&error))
    }

    /// Converts an error. If no supervisor is running, the result has the configuration's path.
    async fn error(&self, error: ClientError) -> Error {
        if error.code == Some(ProblemCode::SupervisorNotRunning)
            && let Ok(status) = self.status().await
            && status.supervisor.is_none()
        {
            return Error::NotRunning {
                config: status.config,
            };
        }
        failed(&error)
    }
}

fn failed(error: &ClientError) -> Error {
    let code = match error.code {
        Some(ProblemCode::AgentNotFound) => ErrorCode::UnknownAgent,
        _ => ErrorCode::Other,
    };
    Error::Refused {
        code,
        message: text(error),
    }
}
