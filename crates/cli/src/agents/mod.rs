//! `teamster agents`: what a supervisor does, and what it is told to do.

mod logs;
mod orders;
mod status;

use std::path::Path;

use anyhow::Context;
use teamster::agent_loop::supervisor::protocol::{Command, ErrorCode};
use teamster::agent_loop::supervisor::{Config, Error};

use crate::args::{AgentsArgs, AgentsCommand};
use crate::{exit_code, tokio_runtime};

/// Does what is asked for; the exit code.
pub(crate) fn main(args: &AgentsArgs) -> anyhow::Result<u8> {
    let runtime = tokio_runtime().context("cannot start the runtime")?;
    let done = runtime.block_on(async {
        let config = Config::read(&args.config)?;
        match &args.command {
            AgentsCommand::Status(args) => status::main(args, &config).await,
            AgentsCommand::Logs(args) => logs::main(args, &config).await,
            AgentsCommand::Start(agents) => orders::start(agents, &config).await,
            AgentsCommand::Stop(agents) => orders::stop(agents, &config).await,
            AgentsCommand::Restart(agents) => orders::restart(agents, &config).await,
            AgentsCommand::Wake(agents) => orders::wake(agents, &config).await,
            AgentsCommand::Reload => orders::reload(&config).await,
        }
    });
    match done {
        Err(Failure::Supervisor(
            error @ (Error::Config(_)
            | Error::OtherConfig { .. }
            | Error::Refused {
                code: ErrorCode::UnknownAgent | ErrorCode::BadConfig,
                ..
            }),
        )) => {
            crate::fail(&error.into());
            Ok(exit_code::USAGE)
        }
        Err(Failure::Unknown(message)) => {
            crate::fail(&anyhow::Error::msg(message));
            Ok(exit_code::USAGE)
        }
        Err(Failure::Supervisor(error)) => Err(error.into()),
        Ok(code) => Ok(code),
    }
}

/// Why something was not done.
enum Failure {
    Supervisor(Error),
    /// There is no agent of this name.
    Unknown(String),
}

impl<E: Into<Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::Supervisor(error.into())
    }
}

/// That these agents are in the configuration.
fn check<'a>(config: &Config, ids: impl IntoIterator<Item = &'a String>) -> Result<(), Failure> {
    for id in ids {
        if config.agent(id).is_none() {
            let known: Vec<&str> = config.agents.iter().map(|agent| &*agent.id).collect();
            return Err(Failure::Unknown(format!(
                "there is no agent {id:?} in {}; there is: {}",
                config.file.display(),
                known.join(", ")
            )));
        }
    }
    Ok(())
}

/// Asks the supervisor of this configuration.
async fn ask(
    config: &Path,
    command: Command,
) -> Result<teamster::agent_loop::supervisor::protocol::Status, Error> {
    let mut client = teamster::agent_loop::supervisor::Client::connect(config).await?;
    client.ask(command).await
}
