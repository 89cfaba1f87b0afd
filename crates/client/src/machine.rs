//! The machine of a server: history, usage, limits, and agents in a loop.

use std::path::PathBuf;

use serde::Serialize;
use teamster_api::agents::{AgentList, Command};
use teamster_api::history::{ForgetRuns, Forgotten, HistoryList, RunRecord, RunState};
use teamster_api::usage::{LimitList, UsageQuery, UsageSummary};
use teamster_api::{FleetStatus, ProviderList, ProviderReport};

use crate::Client;
use crate::call::{Call, Media};
use crate::error::ClientError;
use crate::runs::LARGEST_PAGE;

/// A filter of the history of runs, for [`Client::history`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct HistoryQuery {
    /// Only runs that began at this time or later, in milliseconds since the Unix epoch.
    pub since: Option<u64>,
    /// Only runs that began before this time, in milliseconds since the Unix epoch.
    pub until: Option<u64>,
    /// Only runs in this state.
    pub status: Option<RunState>,
    /// Only runs of this agent, such as `claude`.
    pub agent: Option<String>,
    /// Only runs of the conversation with this key.
    pub key: Option<String>,
    /// Only runs in this directory of the server's machine or below it, an absolute path.
    pub directory: Option<PathBuf>,
    /// Only runs whose title has these words, in any order and case.
    pub text: Option<String>,
    /// The maximum number of runs in a page, at most 1000. Default: 50.
    pub limit: Option<u32>,
    /// The `next` of the previous page.
    pub cursor: Option<String>,
}

impl Client {
    /// Returns a page of the history, newest first: all recorded runs, attached ones and ticks of agents too.
    pub async fn history(&self, query: &HistoryQuery) -> Result<HistoryList, ClientError> {
        let call = Call::get(&["history"])?.with_query(query)?;
        self.http.json(&call).await
    }

    /// Returns the runs of all pages of the history, newest first, at most `limit`.
    pub async fn all_history(
        &self,
        mut query: HistoryQuery,
        limit: usize,
    ) -> Result<Vec<RunRecord>, ClientError> {
        let mut runs = Vec::new();
        loop {
            let missing = (limit - runs.len()).min(LARGEST_PAGE);
            query.limit = u32::try_from(missing).ok();
            let page = self.history(&query).await?;
            runs.extend(page.runs);
            runs.truncate(limit);
            if page.next.is_none() || runs.len() == limit {
                return Ok(runs);
            }
            query.cursor = page.next;
        }
    }

    /// Returns the run of the history with this id or unique prefix of one.
    ///
    /// # Errors
    ///
    /// Fails if the history has no such run, or the server cannot be reached.
    pub async fn recorded(&self, id: &str) -> Result<RunRecord, ClientError> {
        self.http.json(&Call::get(&["history", id])?).await
    }

    /// Deletes runs of the history and logs.
    pub async fn forget(&self, request: &ForgetRuns) -> Result<Forgotten, ClientError> {
        let call = Call::post(&["history", "forget"], request)?;
        self.http.json(&call).await
    }

    /// Returns the tokens and cost of the agents of the server's machine.
    pub async fn usage(&self, query: &UsageQuery) -> Result<UsageSummary, ClientError> {
        let call = Call::get(&["usage"])?.with_query(query)?;
        self.http.json(&call).await
    }

    /// Returns the limits of the subscriptions of the server's machine.
    pub async fn limits(&self) -> Result<LimitList, ClientError> {
        self.http.json(&Call::get(&["limits"])?).await
    }

    /// Returns what is known of the agents' CLIs on the server's machine, and their capabilities.
    pub async fn providers(&self) -> Result<Vec<ProviderReport>, ClientError> {
        Ok(self.machine_report().await?.providers)
    }

    /// Returns what is known of the agents' CLIs on the server's machine, and the version of teamster there.
    pub async fn machine_report(&self) -> Result<ProviderList, ClientError> {
        self.http.json(&Call::get(&["providers"])?).await
    }

    /// Returns the state of the server's fleet; `None` if the server's own machine carries out its runs.
    ///
    /// # Errors
    ///
    /// Fails if the server cannot be reached, or does not reach its fleet.
    pub async fn fleet(&self) -> Result<Option<FleetStatus>, ClientError> {
        let body = self.http.bytes(&Call::get(&["fleet"])?).await?;
        if body.is_empty() {
            return Ok(None);
        }
        Ok(Some(self.http.read(&body)?))
    }

    /// Returns the agents in a loop and their supervisor. Without a supervisor, the status is what files show.
    pub async fn agents(&self) -> Result<AgentList, ClientError> {
        self.http.json(&Call::get(&["agents"])?).await
    }

    /// Sends a command to agents in a loop. Returns their status as soon as the supervisor has accepted the command.
    ///
    /// # Errors
    ///
    /// Fails if an agent does not exist, no supervisor is running, or the server cannot be reached.
    pub async fn command_agents(&self, command: &Command) -> Result<AgentList, ClientError> {
        let (name, selection) = match command {
            Command::Start(selection) => ("start", selection),
            Command::Stop(selection) => ("stop", selection),
            Command::Restart(selection) => ("restart", selection),
            Command::Wake(selection) => ("wake", selection),
            Command::Status => return self.agents().await,
            Command::Reload | Command::Subscribe => {
                let problem = "the HTTP API does not support this command";
                return Err(ClientError::argument("command", problem));
            }
        };
        self.http
            .json(&Call::post(&["agents", name], selection)?)
            .await
    }

    /// Returns the last lines of an agent's log.
    ///
    /// # Errors
    ///
    /// Fails if the agent does not exist, or the server cannot be reached.
    pub async fn agent_log(&self, agent: &str, lines: usize) -> Result<Vec<u8>, ClientError> {
        let query = serde_json::json!({ "lines": lines });
        let call = Call::get(&["agents", agent, "log"])?.with_query(&query)?;
        let text = self.http.bytes(&call.with_media(Media::Text)).await?;
        Ok(text.to_vec())
    }
}
