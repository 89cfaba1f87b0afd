//! The machines of a fleet as one: their agents, and the history and usage of the user's runs.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::json;
use teamster_api::agents::{AgentList, Command};
use teamster_api::history::{RunFilter, RunRecord, RunState};
use teamster_api::usage::{LimitList, UsageLimit, UsageQuery, UsageSummary};
use teamster_api::{
    FleetStatus, MachineService, ProblemCode, ProviderReport, RunQuery, RunService, RunSummary,
    ServiceError, ViewState, list_all,
};
use teamster_fleet::{Fleet, Hold, LOGGED_OUT, StatusReader};
use teamster_host::usage::usage_of_runs;

use crate::zone;

/// The machines of a fleet.
pub(super) struct FleetMachine {
    fleet: Fleet,
    status: StatusReader,
    runs: Arc<dyn RunService>,
}

impl FleetMachine {
    pub(super) fn new(fleet: Fleet, runs: Arc<dyn RunService>) -> Self {
        Self {
            status: StatusReader::new(&fleet),
            fleet,
            runs,
        }
    }

    async fn reports(&self) -> Result<Vec<ProviderReport>, ServiceError> {
        let providers = crate::global::providers();
        let mut reports = Vec::new();
        for worker in self.fleet.workers().await? {
            for agent in worker.agents {
                // One that only a newer version knows has no capabilities here.
                let Some(provider) = providers.get(&agent.id) else {
                    continue;
                };
                let info = provider.info();
                let version = agent.version.as_deref();
                let is_logged_out = agent.problem.as_deref() == Some(LOGGED_OUT);
                let facts = json!({
                    "id": info.id,
                    "name": info.name,
                    "usable": agent.ready,
                    "inProcess": info.program.is_empty(),
                    "version": version,
                    "tested": version.is_none_or(|it| info.tested_versions.contains(&it)),
                    "testedVersions": info.tested_versions,
                    "oldestVersion": info.oldest_version,
                    "tooOld": version.is_some_and(|it| info.is_too_old(it)),
                    "problem": agent.problem,
                    "install": info.install,
                    "login": {"state": if is_logged_out { "no" } else { "unknown" }},
                    "howToLogIn": info.login,
                });
                let facts = serde_json::from_value(facts)
                    .map_err(|error| ServiceError::new(ProblemCode::Internal, error.to_string()))?;
                let config = teamster_process::RuntimeConfig::default();
                let sessions = providers.session_runtime(&agent.id, config);
                let capabilities = provider.capabilities().clone();
                let mut report = ProviderReport::new(facts, capabilities);
                report.sessions = sessions.is_ok();
                report.session_images = sessions.is_ok_and(|it| it.session_capabilities().images);
                report.machine = Some(worker.worker.clone());
                reports.push(report);
            }
        }
        Ok(reports)
    }

    async fn records(&self, filter: &RunFilter) -> Result<Vec<RunRecord>, ServiceError> {
        let mut query = RunQuery::default();
        query.since = filter.since_ms;
        let mut records: Vec<_> = (list_all(&*self.runs, query).await?.iter())
            .map(|run| record(run))
            .filter(|run| filter.selects(run))
            .collect();
        records.truncate(filter.limit.map_or(usize::MAX, |limit| limit as usize));
        Ok(records)
    }
}

#[async_trait::async_trait]
impl MachineService for FleetMachine {
    async fn agents(&self) -> Result<Vec<ProviderReport>, ServiceError> {
        self.reports().await
    }

    async fn fleet(&self) -> Result<Option<FleetStatus>, ServiceError> {
        Ok(Some(self.status.status().await?.into()))
    }

    async fn usage(&self, query: UsageQuery) -> Result<UsageSummary, ServiceError> {
        let mut runs = self.records(&RunFilter::default()).await?;
        // Without its model, a run cannot be estimated again.
        for run in runs.iter_mut().filter(|run| run.model.is_none()) {
            run.cost_source = None;
        }
        let now = Timestamp::now().to_zoned(zone::local());
        Ok(usage_of_runs(&query, &runs, &now)?)
    }

    async fn limits(&self) -> Result<LimitList, ServiceError> {
        let holds = self.fleet.holds().await?;
        Ok(LimitList::new(holds.iter().map(limit).collect()))
    }

    async fn history(&self, filter: RunFilter) -> Result<Vec<RunRecord>, ServiceError> {
        self.records(&filter).await
    }

    async fn history_of(&self, id: &str) -> Result<RunRecord, ServiceError> {
        let id = self.runs.resolve(id).await?.run_id;
        let view = self.runs.show(&id).await?;
        let mut record = record(&view.summary);
        record.num_turns = view.result.and_then(|result| result.num_turns);
        Ok(record)
    }

    async fn loops(&self, command: Command) -> Result<AgentList, ServiceError> {
        match command {
            Command::Status => Ok(AgentList::none()),
            _ => Err(no_loops()),
        }
    }

    async fn loop_log(&self, _: &str, _: usize) -> Result<String, ServiceError> {
        Err(no_loops())
    }
}

/// Returns the limit that holds an agent back: it was reached, and resets at the end.
fn limit(hold: &Hold) -> UsageLimit {
    let mut limit = UsageLimit::new(&*hold.provider, 100.0, Timestamp::now());
    limit.window_minutes = match hold.limit.as_deref() {
        Some("five_hour") => Some(5 * 60),
        Some(name) if name.starts_with("seven_day") => Some(7 * 24 * 60),
        _ => None,
    };
    let until = i64::try_from(hold.until).ok();
    limit.resets_at = until.and_then(|until| Timestamp::from_millisecond(until).ok());
    limit
}

fn no_loops() -> ServiceError {
    ServiceError::new(
        ProblemCode::AgentNotFound,
        "a fleet has no agents in loops: they are on one machine each",
    )
}

/// Returns a run of the fleet as the history has those of one machine.
fn record(run: &RunSummary) -> RunRecord {
    let state = match run.state {
        ViewState::Queued => RunState::from_name("queued"),
        ViewState::Unknown => RunState::from_name("unknown"),
        ViewState::Ended => run.status.map_or(RunState::Interrupted, RunState::from),
        _ => RunState::Running,
    };
    let info = &run.info;
    let mut record = RunRecord::new(&*info.run_id, &*info.provider, state, info.accepted_at_ms);
    record.title.clone_from(&info.title);
    record.model.clone_from(&info.model);
    record.session_id.clone_from(&run.session_id);
    record.working_directory.clone_from(&info.directory);
    record.ended_at = run.changed_at_ms.filter(|_| run.state == ViewState::Ended);
    record.duration_ms = run.duration_ms;
    record.usage = run.usage;
    record.cost_usd = run.cost_usd;
    record.cost_source = run.cost_source;
    record.error.clone_from(&run.error);
    record.workspace.clone_from(&run.workspace);
    record.attempts = if run.state == ViewState::Ended {
        run.attempts.unwrap_or(1)
    } else {
        0
    };
    record.host = run.machine.clone().unwrap_or_default();
    record.heartbeat_at = run.changed_at_ms.unwrap_or(info.accepted_at_ms);
    record
}

#[cfg(test)]
mod tests {
    use teamster_api::RunInfo;

    use super::*;

    #[test]
    fn a_record_has_the_title_and_directory_by_which_it_is_found() {
        let mut info = RunInfo::new("r", "claude");
        info.title = Some("Fix the login".to_owned());
        info.directory = Some("/w/site/api".into());
        let record = record(&RunSummary::new(info, ViewState::Running));
        assert_eq!(record.title.as_deref(), Some("Fix the login"));
        let filter = RunFilter::default()
            .text("LOGIN")
            .working_directory("/w/site".into());
        assert!(filter.selects(&record));
        assert!(!filter.text("logout").selects(&record));
    }
}
