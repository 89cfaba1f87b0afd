//! `teamster agents`, the status and control of a supervisor.

pub(crate) mod args;
mod commands;
mod logs;
mod status;
mod watch;

use std::path::Path;
use std::sync::Arc;

use anyhow::anyhow;
use teamster_api::agents::{AgentList, Command, ErrorCode};
use teamster_api::{MachineService, ProblemCode, ServiceError};
use teamster_host::LocalMachine;

use crate::exit_code::misuse;
use crate::remote::Machine;
use crate::runtime::tokio_runtime;
use args::{AgentsArgs, AgentsCommand};

/// Runs the subcommand and returns the exit code.
pub(crate) fn main(args: &AgentsArgs, machine: &Machine) -> anyhow::Result<u8> {
    let supervisor = Supervisor::of(machine, &args.config);
    tokio_runtime()?.block_on(async {
        match &args.command {
            AgentsCommand::Status(args) => status::main(args, &supervisor).await,
            AgentsCommand::Watch(watch) => watch::main(watch, &args.config, &supervisor).await,
            AgentsCommand::Logs(args) => logs::main(args, &supervisor).await,
            AgentsCommand::Start(agents) => commands::start(agents, &supervisor).await,
            AgentsCommand::Stop(agents) => commands::stop(agents, &supervisor).await,
            AgentsCommand::Restart(agents) => commands::restart(agents, &supervisor).await,
            AgentsCommand::Wake(agents) => commands::wake(agents, &supervisor).await,
            AgentsCommand::Reload => commands::reload(&supervisor).await,
        }
    })
}

/// The supervisor of a configuration, or that of a server.
struct Supervisor {
    machine: Arc<dyn MachineService>,
    /// The URL of the server; `None` for this machine.
    url: Option<String>,
}

impl Supervisor {
    fn of(machine: &Machine, config: &Path) -> Self {
        let url = machine.url().map(str::to_owned);
        let machine = if machine.is_here() {
            let here = LocalMachine::new(crate::global::host());
            Arc::new(here.with_loops(Some(config.to_owned())))
        } else {
            machine.agents()
        };
        Self { machine, url }
    }

    fn is_here(&self) -> bool {
        self.url.is_none()
    }

    /// Sends a command and returns the agents' status after it. Without a supervisor, the status is what files show.
    async fn ask(&self, command: Command) -> anyhow::Result<AgentList> {
        let list = match self.machine.loops(command).await {
            Ok(list) => list,
            Err(error) => return Err(self.explained(error).await),
        };
        if list.config.is_none() {
            return Err(misuse(anyhow!(
                "{} has no agents: start it with `teamster serve --agents FILE`",
                self.url.as_deref().unwrap_or_default()
            )));
        }
        Ok(list)
    }

    /// Sends a command for agents, and returns their status when its result is known.
    async fn control(&self, command: Command) -> anyhow::Result<AgentList> {
        let before = self.ask(Command::Status).await?;
        match teamster_host::control_loops(&*self.machine, &before, command).await {
            Ok(list) => Ok(list),
            Err(error) => Err(self.explained(error).await),
        }
    }

    /// Returns the status. An unknown agent in `ids` is an error.
    async fn status_with(
        &self,
        ids: impl IntoIterator<Item = &String>,
    ) -> anyhow::Result<AgentList> {
        let status = self.ask(Command::Status).await?;
        for id in ids {
            if !status.agents.iter().any(|agent| agent.id == *id) {
                let known: Vec<&str> = status.agents.iter().map(|agent| &*agent.id).collect();
                return Err(misuse(anyhow!(
                    "there is no agent {id:?}; there is: {}",
                    known.join(", ")
                )));
            }
        }
        Ok(status)
    }

    /// Returns an error of a supervisor with its exit code, and the next step if there is no supervisor.
    async fn explained(&self, error: ServiceError) -> anyhow::Error {
        if error.code == Some(ProblemCode::SupervisorNotRunning) {
            match self.machine.loops(Command::Status).await {
                Ok(AgentList {
                    config: Some(config),
                    supervisor: None,
                    ..
                }) => {
                    let config = config.display();
                    return anyhow!("{error}: start one with `teamster supervise {config}`");
                }
                // The configuration is reported first.
                Err(error) if error.refusal == Some(ErrorCode::BadConfig) => return misuse(error),
                _ => return error.into(),
            }
        }
        let is_misuse = error.code == Some(ProblemCode::AgentNotFound)
            || error.refusal == Some(ErrorCode::BadConfig);
        if is_misuse {
            misuse(error)
        } else {
            error.into()
        }
    }
}
