//! The rest of a machine as a service: agents, usage, history, loops.

use crate::agents::{AgentList, Command};
use crate::history::{RunFilter, RunRecord};
use crate::usage::{LimitList, UsageQuery, UsageSummary};
use crate::{FleetStatus, ProviderList, ProviderReport, ServiceFuture};

/// The agents of a machine, their usage and history, and its loops.
pub trait MachineService: Send + Sync {
    /// Returns a report for each agent: whether it can be used, its version, its login and its capabilities.
    fn agents(&self) -> ServiceFuture<'_, Vec<ProviderReport>>;

    /// Returns the same with the version of teamster on the machine.
    fn report(&self) -> ServiceFuture<'_, ProviderList> {
        Box::pin(async { Ok(ProviderList::new(self.agents().await?)) })
    }

    /// Returns the workers and queues of the fleet whose machines carry out the runs; `None` if this machine does. Default:
    /// `None`.
    fn fleet(&self) -> ServiceFuture<'_, Option<FleetStatus>> {
        Box::pin(async { Ok(None) })
    }

    /// Returns tokens and cost of all agents, from their files and the history.
    fn usage(&self, query: UsageQuery) -> ServiceFuture<'_, UsageSummary>;

    /// Returns the limits of subscriptions.
    fn limits(&self) -> ServiceFuture<'_, LimitList>;

    /// Returns runs of the history, newest first; an empty list if there is no history.
    fn history(&self, filter: RunFilter) -> ServiceFuture<'_, Vec<RunRecord>>;

    /// Returns the run of the history with this id or unique id prefix.
    fn history_of<'a>(&'a self, id: &'a str) -> ServiceFuture<'a, RunRecord>;

    /// Sends a command to the supervisor of the agents in a loop, and returns their status after it.
    ///
    /// Without a supervisor, [`Command::Status`] returns what is known from files. Without a configuration of agents,
    /// the list is empty and has no `config`.
    fn loops(&self, command: Command) -> ServiceFuture<'_, AgentList>;

    /// Returns the last lines of the log of an agent in a loop.
    fn loop_log<'a>(&'a self, agent: &'a str, lines: usize) -> ServiceFuture<'a, String>;
}
