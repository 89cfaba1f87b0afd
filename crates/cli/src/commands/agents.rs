//! `teamster agents`, the status and control of a supervisor.

pub(crate) mod args;
mod commands;
mod logs;
mod status;
mod watch;

use std::path::Path;
use std::sync::Arc;

use anyhow::anyhow;
use teamster::agent_loop::supervisor::Error;
use teamster_api::agents::{AgentList, Command, ErrorCode, SupervisorStatus};
use teamster_api::{MachineService, ProblemCode, ServiceError};
use teamster_host::LocalMachine;
use teamster_process::ProcessIdentity;

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
            AgentsCommand::Start(agents) => {
                commands::switch(Command::Start, agents, &supervisor, true).await
            }
            AgentsCommand::Stop(agents) => {
                commands::switch(Command::Stop, agents, &supervisor, false).await
            }
            AgentsCommand::Restart(agents) => {
                commands::switch(Command::Restart, agents, &supervisor, true).await
            }
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

    /// Returns the agents' status. Without a supervisor that answers, it is what files show.
    async fn status(&self) -> anyhow::Result<AgentList> {
        let list = self.machine.loops(Command::Status).await.map_err(coded)?;
        if list.config.is_none() {
            return Err(misuse(anyhow!(
                "{} has no agents: start it with `teamster serve --agents FILE`",
                self.url.as_deref().unwrap_or_default()
            )));
        }
        Ok(list)
    }

    /// Returns why a supervisor with this status takes no commands.
    fn problem(&self, status: &AgentList) -> Option<Error> {
        match &status.supervisor {
            None => Some(Error::NotRunning {
                config: status.config.clone().unwrap_or_default(),
            }),
            Some(SupervisorStatus {
                pid,
                not_answering: true,
                ..
            }) => Some(Error::NotAnswering {
                pid: Some(*pid),
                is_stopped: self.is_here()
                    && ProcessIdentity::of(*pid).is_some_and(ProcessIdentity::is_stopped),
            }),
            Some(_) => None,
        }
    }

    /// Returns the status of a supervisor that answers.
    async fn answering(&self) -> anyhow::Result<AgentList> {
        let status = self.status().await?;
        match self.problem(&status) {
            None => Ok(status),
            Some(error @ Error::NotRunning { .. }) => {
                let config = status.config.as_deref().unwrap_or(Path::new("FILE"));
                let config = config.display();
                Err(anyhow!(
                    "{error}: start one with `teamster supervise {config}`"
                ))
            }
            Some(error) => Err(error.into()),
        }
    }

    /// Sends a command to a supervisor that answers, and returns the agents' status when its result is known. Another would
    /// carry it out at an unknown time.
    async fn control(&self, command: Command) -> anyhow::Result<AgentList> {
        let before = self.answering().await?;
        let done = teamster_host::control_loops(&*self.machine, &before, command).await;
        done.map_err(coded)
    }

    /// Returns the status. An unknown agent in `ids` is an error.
    async fn status_with(
        &self,
        ids: impl IntoIterator<Item = &String>,
    ) -> anyhow::Result<AgentList> {
        let status = self.status().await?;
        for id in ids {
            if !status.agents.iter().any(|agent| agent.id == *id) {
                let known: Vec<&str> = status.agents.iter().map(|agent| &*agent.id).collect();
                return Err(misuse(anyhow!(
                    "unknown agent {id:?}; available: {}",
                    known.join(", ")
                )));
            }
        }
        Ok(status)
    }
}

/// Returns an error of a supervisor with its exit code.
fn coded(error: ServiceError) -> anyhow::Error {
    let is_misuse = error.code == Some(ProblemCode::AgentNotFound)
        || error.refusal == Some(ErrorCode::BadConfig);
    if is_misuse {
        misuse(error)
    } else {
        error.into()
    }
}
