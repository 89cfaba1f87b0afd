//! This machine's agents, usage, history and loops as a service.

mod agents;
mod loops;

use std::path::PathBuf;
use std::sync::OnceLock;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use teamster_api::agents::{AgentList, Command};
use teamster_api::history::{RunFilter, RunRecord};
use teamster_api::usage::{Dimension, LimitList, UsageQuery, UsageSummary};
use teamster_api::{MachineService, ProblemCode, ProviderReport, ServiceError};
use teamster_store::{Conversation, Store, StoreError};
use teamster_usage::{Locations, limit_list, limits};

use crate::store::Source;
use crate::usage::{UsageError, UsageSources, collect_usage};
use crate::{Host, Notice, environment, error_chain};

use agents::Examined;
pub use agents::{examine_agents, find_program, log_out, start_agents};
pub use loops::control_loops;

/// The agents of this machine, their usage and history, and its loops.
///
/// Needs a Tokio runtime.
#[derive(Debug)]
pub struct LocalMachine {
    host: Host,
    agents: Examined,
    /// The configuration of the agents in a loop.
    loops: Option<PathBuf>,
    zone: OnceLock<TimeZone>,
    store: Source,
}

impl LocalMachine {
    /// Creates the service of a host, without agents in a loop.
    pub fn new(host: &Host) -> Self {
        Self {
            host: host.clone(),
            agents: Examined::WithVersions(None),
            loops: None,
            zone: OnceLock::new(),
            store: Source::default(),
        }
    }

    /// Sets the configuration file of the supervisor whose agents are shown and controlled.
    #[must_use]
    pub fn with_loops(mut self, config: Option<PathBuf>) -> Self {
        self.loops = config;
        self
    }

    /// Starts no agent to find its version, so that reports take no time. With a name, `agents` reports only this one, which
    /// may be named by its command.
    #[must_use]
    pub fn without_versions(mut self, agent: Option<&str>) -> Self {
        self.agents = Examined::WithoutVersions(agent.map(str::to_owned));
        self
    }

    /// Reports and starts only the agents with these ids; `None` for all. Default: all.
    #[must_use]
    pub fn with_agents(mut self, ids: Option<Vec<String>>) -> Self {
        self.agents = Examined::WithVersions(ids);
        self
    }

    /// Sets the store of the history, which the caller closes; `None` for none. Default: the user's.
    #[must_use]
    pub fn with_store(mut self, store: Option<Store>) -> Self {
        self.store = Source::Given(store);
        self
    }

    fn zone(&self) -> TimeZone {
        let zone =
            (self.zone).get_or_init(|| local_zone(|text| self.host.notice(Notice::Warning(text))));
        zone.clone()
    }
}

/// Returns the zone of `TZ`, or else the machine's. It is UTC, with a warning, if the name in `TZ` is unknown.
pub fn local_zone(warn: impl FnOnce(String)) -> TimeZone {
    TimeZone::try_system().unwrap_or_else(|_| {
        if let Some(name) = environment::variable("TZ") {
            let name = name.display();
            warn(format!("TZ: unknown time zone {name}; using UTC"));
        }
        TimeZone::UTC
    })
}

#[async_trait::async_trait]
impl MachineService for LocalMachine {
    async fn agents(&self) -> Result<Vec<ProviderReport>, ServiceError> {
        agents::reports(&self.host, &self.agents).await
    }

    async fn usage(&self, query: UsageQuery) -> Result<UsageSummary, ServiceError> {
        let now = Timestamp::now().to_zoned(self.zone());
        let collected = run_blocking(move || {
            let by = query.by.unwrap_or(Dimension::Day);
            let collected = collect_usage(&query, &UsageSources::default(), &now, |_, _| ());
            let collected = collected.map_err(usage_error)?;
            Ok((collected.summary(by), collected.warnings))
        });
        let (summary, warnings) = collected.await?;
        for warning in warnings {
            self.host.notice(Notice::Warning(warning.text));
        }
        Ok(summary)
    }

    async fn limits(&self) -> Result<LimitList, ServiceError> {
        run_blocking(|| {
            Ok(limit_list(limits(&Locations::from_variables(
                environment::variable,
            ))))
        })
        .await
    }

    async fn history(&self, mut filter: RunFilter) -> Result<Vec<RunRecord>, ServiceError> {
        if let Some(key) = &filter.conversation {
            let key: Conversation = key.parse().map_err(store_error)?;
            filter.conversation = Some(key.to_string());
        }
        let runs = async |store: Option<&Store>| match store {
            Some(store) => store.runs(&filter).await.map_err(store_error),
            None => Ok(Vec::new()),
        };
        self.store.with(runs).await
    }

    async fn history_of(&self, id: &str) -> Result<RunRecord, ServiceError> {
        let missing = || {
            let detail = format!("no run \"{id}\" in the history");
            ServiceError::new(ProblemCode::RunNotFound, detail)
        };
        let run = async |store: Option<&Store>| match store {
            Some(store) => match store.run(id).await {
                // What cannot be an id is one of no run.
                Ok(None) | Err(StoreError::Invalid { .. }) => Err(missing()),
                run => run.map_err(store_error)?.ok_or_else(missing),
            },
            None => Err(missing()),
        };
        self.store.with(run).await
    }

    async fn loops(&self, command: Command) -> Result<AgentList, ServiceError> {
        loops::execute(self.loops.as_deref(), command).await
    }

    async fn loop_log(&self, agent: &str, lines: usize) -> Result<String, ServiceError> {
        loops::log(self.loops.as_deref(), agent, lines).await
    }
}

/// Runs blocking work, such as disk access, on the blocking thread pool.
async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ServiceError> + Send + 'static,
) -> Result<T, ServiceError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(failure(&error.into())))
}

pub(crate) fn failure(error: &anyhow::Error) -> ServiceError {
    ServiceError::new(ProblemCode::Internal, error_chain(error))
}

pub(crate) fn store_error(error: StoreError) -> ServiceError {
    let code = match error {
        StoreError::Ambiguous { .. } => ProblemCode::RunIdAmbiguous,
        StoreError::Invalid { .. } => ProblemCode::InvalidParams,
        error => return failure(&error.into()),
    };
    ServiceError::new(code, error.to_string())
}

fn usage_error(error: UsageError) -> ServiceError {
    match error {
        UsageError::Query(error) => error.into(),
        error => failure(&error.into()),
    }
}
