//! The rest of a machine as a service: agents, usage, history, loops.

use crate::agents::{AgentList, Command};
use crate::history::{RunFilter, RunRecord};
use crate::service::unsupported;
use crate::usage::{LimitList, UsageQuery, UsageSummary};
use crate::{FleetStatus, ProviderList, ProviderReport, ServiceError};

/// The agents of a machine, their usage and history, and its loops. All but the agents are unsupported by default.
#[async_trait::async_trait]
pub trait MachineService: Send + Sync {
    /// Returns a report for each agent: whether it can be used, its version, its login and its capabilities.
    async fn agents(&self) -> Result<Vec<ProviderReport>, ServiceError>;

    /// Returns the same with the version of teamster on the machine.
    async fn report(&self) -> Result<ProviderList, ServiceError> {
        Ok(ProviderList::new(self.agents().await?))
    }

    /// Returns the workers and queues of the fleet whose machines carry out the runs; `None` if this machine does. Default:
    /// `None`.
    async fn fleet(&self) -> Result<Option<FleetStatus>, ServiceError> {
        Ok(None)
    }

    /// Returns tokens and cost of all agents, from their files and the history.
    async fn usage(&self, query: UsageQuery) -> Result<UsageSummary, ServiceError> {
        let _ = query;
        unsupported("figures of usage")
    }

    /// Returns the limits of subscriptions.
    async fn limits(&self) -> Result<LimitList, ServiceError> {
        unsupported("limits of subscriptions")
    }

    /// Returns runs of the history, newest first; an empty list if there is no history.
    async fn history(&self, filter: RunFilter) -> Result<Vec<RunRecord>, ServiceError> {
        let _ = filter;
        unsupported("history")
    }

    /// Returns the run of the history with this id or unique id prefix.
    async fn history_of(&self, id: &str) -> Result<RunRecord, ServiceError> {
        let _ = id;
        unsupported("history")
    }

    /// Sends a command to the supervisor of the agents in a loop, and returns their status after it.
    ///
    /// Without a supervisor, [`Command::Status`] returns what is known from files. Without a configuration of agents,
    /// the list is empty and has no `config`.
    async fn loops(&self, command: Command) -> Result<AgentList, ServiceError> {
        let _ = command;
        unsupported("agents in a loop")
    }

    /// Returns the last lines of the log of an agent in a loop.
    async fn loop_log(&self, agent: &str, lines: usize) -> Result<String, ServiceError> {
        let _ = (agent, lines);
        unsupported("agents in a loop")
    }
}
