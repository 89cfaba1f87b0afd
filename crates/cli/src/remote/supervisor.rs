//! The supervisor on a server's machine.

use bytes::Bytes;
use hyper::Method;
use serde_json::Value;
use teamster::agent_loop::supervisor::Error;
use teamster_api::ProblemCode;
use teamster_api::agents::{Command, ErrorCode, Status};

use super::encode_segment;
use super::http::{Failure, Http};

/// A client of a server's supervisor.
#[derive(Debug)]
pub(crate) struct RemoteSupervisor(pub(crate) Http);

impl RemoteSupervisor {
    /// Sends a command and returns the agents' status after it.
    pub(crate) async fn ask(&mut self, command: Command) -> Result<Status, Error> {
        let (name, selection) = match command {
            Command::Status => return self.status().await,
            Command::Start(selection) => ("start", selection),
            Command::Stop(selection) => ("stop", selection),
            Command::Restart(selection) => ("restart", selection),
            Command::Wake(selection) => ("wake", selection),
            _ => {
                return Err(Error::Refused {
                    code: ErrorCode::BadRequest,
                    message:
                        "this command does not support --remote: run it on the server's machine"
                            .to_owned(),
                });
            }
        };
        let path = format!("/v1/agents/{name}");
        let status = self
            .0
            .exchange::<Value>(Method::POST, &path, &[], &selection)
            .await;
        match status {
            Ok(status) => self.read(status),
            Err(failure) => Err(self.error(failure).await),
        }
    }

    /// Returns the agents' status; without a supervisor, as far as files show it.
    pub(crate) async fn status(&self) -> Result<Status, Error> {
        let status = self.0.get::<Value>("/v1/agents").await;
        self.read(status.map_err(|failure| failed(&failure))?)
    }

    fn read(&self, status: Value) -> Result<Status, Error> {
        if status.get("config").is_none() {
            return Err(Error::Refused {
                code: ErrorCode::BadConfig,
                message: format!(
                    "{} has no agents: start it with `teamster serve --agents FILE`",
                    self.0.url()
                ),
            });
        }
        serde_json::from_value(status).map_err(|error| Error::NoAnswer(error.into()))
    }

    /// Returns the last lines of an agent's log.
    pub(crate) async fn log(&self, agent: &str, lines: usize) -> Result<Bytes, Error> {
        let path = format!("/v1/agents/{}/log?lines={lines}", encode_segment(agent));
        match self.0.text(&path).await {
            Ok(text) => Ok(text),
            Err(failure) => Err(failed(&failure)),
        }
    }

    /// Converts a failure. If no supervisor is running, the error has the configuration's path.
    async fn error(&self, failure: Failure) -> Error {
        if failure.code() == Some(ProblemCode::SupervisorNotRunning)
            && let Ok(status) = self.status().await
            && status.supervisor.is_none()
        {
            return Error::NotRunning {
                config: status.config,
            };
        }
        failed(&failure)
    }
}

fn failed(failure: &Failure) -> Error {
    let code = match failure.code() {
        Some(ProblemCode::AgentNotFound) => ErrorCode::UnknownAgent,
        _ => ErrorCode::Other,
    };
    Error::Refused {
        code,
        message: failure.to_string(),
    }
}
