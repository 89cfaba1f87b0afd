//! The rest of a machine as a service: agents, usage, history, loops.

use crate::agents::{AgentList, Command};
use crate::history::{RunFilter, RunRecord};
use crate::service::unsupported;
use crate::usage::{LimitList, UsageQuery, UsageSummary};
use crate::{FleetStatus, ProblemCode, ProviderList, ProviderReport, ServiceError};

/// The agents of a machine, their usage and history, and its loops. Defaults are those of a machine that has only agents.
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

    /// Returns tokens and cost of all agents, from their files and the history. Default: [`ProblemCode::Unsupported`].
    async fn usage(&self, query: UsageQuery) -> Result<UsageSummary, ServiceError> {
        let _ = query;
        unsupported("figures of usage")
    }

    /// Returns the limits of subscriptions, as far as they are known.
    async fn limits(&self) -> Result<LimitList, ServiceError> {
        Ok(LimitList::new(Vec::new()))
    }

    /// Returns runs of the history, newest first; an empty list if there is no history.
    async fn history(&self, filter: RunFilter) -> Result<Vec<RunRecord>, ServiceError> {
        let _ = filter;
        Ok(Vec::new())
    }

    /// Returns the run of the history with this id or unique id prefix.
    async fn history_of(&self, id: &str) -> Result<RunRecord, ServiceError> {
        let detail = format!("no run \"{id}\" in the history");
        Err(ServiceError::new(ProblemCode::RunNotFound, detail))
    }

    /// Sends a command to the supervisor of the agents in a loop, and returns their status after it.
    ///
    /// Without a supervisor, [`Command::Status`] returns what is known from files. Without a configuration of agents,
    /// the list is empty and has no `config`.
    async fn loops(&self, command: Command) -> Result<AgentList, ServiceError> {
        match command {
            Command::Status => Ok(AgentList::none()),
            _ => Err(no_loops()),
        }
    }

    /// Returns the last lines of the log of an agent in a loop.
    async fn loop_log(&self, agent: &str, lines: usize) -> Result<String, ServiceError> {
        let _ = (agent, lines);
        Err(no_loops())
    }
}

fn no_loops() -> ServiceError {
    ServiceError::new(
        ProblemCode::AgentNotFound,
        "this machine has no agents in loops",
    )
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll, Waker};

    use super::*;

    struct Bare;

    #[async_trait::async_trait]
    impl MachineService for Bare {
        async fn agents(&self) -> Result<Vec<ProviderReport>, ServiceError> {
            Ok(Vec::new())
        }
    }

    #[test]
    fn machine_without_loops_has_a_status_and_takes_no_commands() {
        let machine = Bare;
        let loops = |command| {
            let mut answer = machine.loops(command);
            let mut context = Context::from_waker(Waker::noop());
            match answer.as_mut().poll(&mut context) {
                Poll::Ready(answer) => answer,
                Poll::Pending => panic!("it waits for nothing"),
            }
        };
        assert_eq!(loops(Command::Status).unwrap(), AgentList::none());
        let refused = loops(Command::Reload).unwrap_err();
        assert_eq!(refused.code, Some(ProblemCode::AgentNotFound));
    }
}
