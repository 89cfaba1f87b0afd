//! `teamster agents`, the status and control of a supervisor.

pub(crate) mod args;
mod commands;
mod logs;
mod status;
mod watch;

use std::io;
use std::path::Path;

use teamster::agent_loop::supervisor::{Client, Config, Error, offline_status};
use teamster_api::agents::{Command, ErrorCode, Status};

use crate::exit_code;
use crate::remote::{Machine, RemoteSupervisor};
use crate::runtime::tokio_runtime;
use args::{AgentsArgs, AgentsCommand};

/// Runs the subcommand and returns the exit code.
pub(crate) fn main(args: &AgentsArgs, machine: &Machine) -> anyhow::Result<u8> {
    let runtime = tokio_runtime()?;
    let done = runtime.block_on(async {
        let file = &args.config;
        let target = match machine {
            here if here.is_here() => Target::File(file),
            there => Target::Server(there),
        };
        match &args.command {
            AgentsCommand::Status(args) => status::main(args, target).await,
            AgentsCommand::Watch(args) => watch::main(args, file).await,
            AgentsCommand::Logs(args) => logs::main(args, target).await,
            AgentsCommand::Start(agents) => commands::start(agents, target).await,
            AgentsCommand::Stop(agents) => commands::stop(agents, target).await,
            AgentsCommand::Restart(agents) => commands::restart(agents, target).await,
            AgentsCommand::Wake(agents) => commands::wake(agents, target).await,
            AgentsCommand::Reload => commands::reload(file).await,
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
            crate::report::fail(&error.into());
            Ok(exit_code::USAGE)
        }
        Err(Failure::Unknown(message)) => {
            crate::report::fail(&anyhow::Error::msg(message));
            Ok(exit_code::USAGE)
        }
        Err(Failure::Supervisor(error)) => Err(error.into()),
        Err(Failure::Output(error)) => Err(error),
        Ok(code) => Ok(code),
    }
}

/// Error of a subcommand.
enum Failure {
    Supervisor(Error),
    /// An unknown agent, with the message.
    Unknown(String),
    /// The output cannot be written.
    Output(anyhow::Error),
}

impl<E: Into<Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::Supervisor(error.into())
    }
}

/// Returns the exit code of printed output.
fn of_printed(printed: io::Result<()>) -> Result<u8, Failure> {
    exit_code::of_printed(printed).map_err(Failure::Output)
}

/// The supervisor that a command is about.
#[derive(Clone, Copy)]
enum Target<'a> {
    /// That of this configuration.
    File(&'a Path),
    /// That of a server.
    Server(&'a Machine),
}

/// Connection to a supervisor, local or through a server.
enum Supervisor {
    Local(Client),
    Remote(RemoteSupervisor),
}

impl Supervisor {
    /// Sends a command and returns the status after it.
    async fn ask(&mut self, command: Command) -> Result<Status, Error> {
        match self {
            Self::Local(client) => client.ask(command).await,
            Self::Remote(supervisor) => supervisor.ask(command).await,
        }
    }
}

/// Connects to the supervisor.
async fn connect(target: Target<'_>) -> Result<Supervisor, Error> {
    Ok(match target {
        Target::File(file) => Supervisor::Local(connect_here(file).await?),
        Target::Server(machine) => Supervisor::Remote(RemoteSupervisor::of(machine)),
    })
}

/// Connects to the supervisor of this configuration.
async fn connect_here(file: &Path) -> Result<Client, Error> {
    match Client::connect(file).await {
        Err(error @ Error::NotRunning { .. }) => {
            // Report an invalid configuration first.
            Config::read(file)?;
            Err(error)
        }
        connected => connected,
    }
}

/// Sends a command to the supervisor, and returns the status after it.
async fn ask(target: Target<'_>, command: Command) -> Result<Status, Error> {
    connect(target).await?.ask(command).await
}

/// Returns the status, read from files if no supervisor is running. An unknown agent in `ids` is an error.
async fn status_with<'a>(
    target: Target<'_>,
    ids: impl IntoIterator<Item = &'a String>,
) -> Result<Status, Failure> {
    let status = match (ask(target, Command::Status).await, target) {
        (Err(Error::NotRunning { .. } | Error::NotAnswering { .. }), Target::File(file)) => {
            offline_status(&Config::read(file)?)
        }
        (answer, _) => answer?,
    };
    for id in ids {
        if !status.agents.iter().any(|agent| agent.id == *id) {
            let known: Vec<&str> = status.agents.iter().map(|agent| &*agent.id).collect();
            return Err(Failure::Unknown(format!(
                "there is no agent {id:?}; there is: {}",
                known.join(", ")
            )));
        }
    }
    Ok(status)
}
