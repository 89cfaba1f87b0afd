//! The catalog of a machine's agents.

use std::collections::HashSet;

use teamster_api::history::{RunFilter, RunRecord};
use teamster_api::{MachineService, ProviderReport, ServiceError, SessionSpec};
use teamster_core::{AgentError, PermissionMode};

use super::{AgentEntry, Catalog, Choice, effort};

/// Effort levels that all agents with such a setting support.
const EFFORTS: [&str; 3] = ["low", "medium", "high"];
/// Maximum number of runs searched for model names.
const MAX_RUNS: u32 = 500;

impl Catalog {
    /// Creates the catalog of a machine, or of those of a fleet: the agent of `session`, or without one all agents that can
    /// be used in sessions, ready ones first. Models are those of earlier runs; settings are those of `session`.
    ///
    /// # Errors
    ///
    /// Fails if the machine cannot be reached, or does not have the agent.
    pub async fn of_machine(
        machine: &dyn MachineService,
        session: &SessionSpec,
    ) -> Result<Self, ServiceError> {
        let mut agents = machine.agents().await?;
        agents.sort_by_key(|report| !is_ready(report));
        // Several machines of a fleet may have the same agent.
        let mut known = HashSet::new();
        agents.retain(|report| known.insert(report.facts.id.clone()));
        // An error only leaves the lists of models empty.
        let runs = machine.history(RunFilter::default().limit(MAX_RUNS)).await;
        let models = known_models(runs.unwrap_or_default());
        let entry = |report: &ProviderReport| entry(report, session, &models);
        let name = &*session.provider;
        if name.is_empty() {
            let with_sessions = agents.iter().filter(|report| report.sessions);
            return Ok(Self::choice(with_sessions.map(entry).collect()));
        }
        match agents.iter().find(|report| report.facts.id == name) {
            Some(report) => Ok(Self::one(entry(report))),
            // One that is named by its command, of which the machine has no report.
            None if name.contains(':') => {
                let mut entry = AgentEntry::new(name, name);
                entry.commands = session.trusted.slash_commands;
                Ok(Self::one(entry))
            }
            None => {
                let known: Vec<_> = agents.iter().map(|report| &*report.facts.id).collect();
                let problem = format!("no agent \"{name}\"; available: {}", known.join(", "));
                Err(AgentError::refused("provider", problem).into())
            }
        }
    }

    /// Announces no folders.
    pub(crate) fn take_no_folders(&mut self) {
        for agent in &mut self.agents {
            agent.add_dirs = false;
        }
    }
}

/// Returns pairs of agent and model, the last used first.
fn known_models(runs: Vec<RunRecord>) -> Vec<(String, String)> {
    let mut known = Vec::new();
    for run in runs {
        if let Some(model) = run.model {
            let pair = (run.provider, model);
            if !known.contains(&pair) {
                known.push(pair);
            }
        }
    }
    known
}

/// Returns whether the agent is installed and not known to be logged out.
fn is_ready(report: &ProviderReport) -> bool {
    report.facts.usable && report.facts.login.state != "no"
}

fn entry(
    report: &ProviderReport,
    session: &SessionSpec,
    models: &[(String, String)],
) -> AgentEntry {
    let (facts, can) = (&report.facts, &report.capabilities);
    let mut entry = AgentEntry::new(&*facts.id, &*facts.name);
    let own = models.iter().filter(|(agent, _)| *agent == facts.id);
    entry.models = own.map(|(_, model)| Choice::new(model.clone())).collect();
    if can.effort {
        entry.efforts = EFFORTS.map(effort).to_vec();
    }
    let order = [
        PermissionMode::Default,
        PermissionMode::AcceptEdits,
        PermissionMode::Plan,
        PermissionMode::ReadOnly,
        PermissionMode::Bypass,
    ];
    let modes = order.into_iter().filter(|mode| can.has_session_mode(*mode));
    entry.modes = modes.collect();
    if facts.id == session.provider {
        entry.settings.model.clone_from(&session.model);
    }
    entry.settings.effort.clone_from(&session.effort);
    if entry.modes.contains(&session.permission) {
        entry.settings.mode = session.permission;
    }
    let transports = can.mcp.transports.iter();
    entry.transports = transports.map(|it| (*it).to_owned()).collect();
    entry.commands = can.session_commands && session.trusted.slash_commands;
    entry.images = can.images || report.session_images;
    entry.add_dirs = can.add_dirs;
    entry.login.clone_from(&report.facts.how_to_log_in);
    entry
}
