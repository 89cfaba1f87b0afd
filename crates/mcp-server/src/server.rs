//! The server of one client.

use std::sync::Arc;

use rmcp::ServiceExt;
use teamster_api::{MachineService, RunService};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::handler::Handler;
use crate::runs::AgentRuns;
use crate::{Limit, Limits};

/// An MCP server whose tools are agents, for one client.
#[derive(Clone)]
pub struct AgentServer {
    runs: Arc<AgentRuns>,
    machine: Arc<dyn MachineService>,
}

teamster_core::debug_fields!(AgentServer |it| { limits: it.runs.limits() });

impl AgentServer {
    /// Creates a server whose runs `runs` carries out. `machine` is the machine of these runs.
    pub fn new(
        runs: Arc<dyn RunService>,
        machine: Arc<dyn MachineService>,
        limits: Limits,
    ) -> Self {
        let id_of = |name: &str| Some(name.to_owned());
        Self::of_program(runs, machine, limits, |_| None, id_of)
    }

    /// Creates the server of a program.
    ///
    /// `hint` returns how the user raises a limit, such as by a flag: the text follows the refusal and a semicolon.
    /// `id_of` returns the id of the agent with this name, which may be an alias; `None` refuses it.
    pub fn of_program(
        runs: Arc<dyn RunService>,
        machine: Arc<dyn MachineService>,
        limits: Limits,
        hint: fn(Limit) -> Option<&'static str>,
        id_of: fn(&str) -> Option<String>,
    ) -> Self {
        let runs = Arc::new(AgentRuns::new(runs, limits, hint, id_of));
        Self { runs, machine }
    }

    /// Serves a client until it disconnects, also before its first message. Dropping the future ends the connection, and
    /// no run.
    pub async fn serve<R, W>(&self, reader: R, writer: W)
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let handler = Handler::new(self.runs.clone(), self.machine.clone());
        if let Ok(service) = handler.serve((reader, writer)).await {
            // However the connection ends, the client is gone.
            let _ = service.waiting().await;
        }
    }

    /// Stops the runs of the client and waits for their ends, unless they are [kept](Limits::keep_runs). To be called
    /// when the client has disconnected.
    pub async fn end(&self) {
        self.runs.end().await;
    }
}
