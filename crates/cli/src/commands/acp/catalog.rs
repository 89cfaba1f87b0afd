//! The agents that an editor can choose, with their models, modes and effort levels.

use teamster::doctor::{self, LoginState};
use teamster::store::Store;
use teamster::{AgentError, CliInfo, ErrorCode, ErrorDetail, ErrorKind, PermissionMode};
use teamster_acp_server::{AgentEntry, Catalog, Choice, Setup};
use teamster_api::history::RunFilter;

use teamster_host::{missing_program, params};

use super::spec::Served;

/// Effort levels that all agents with such a setting support.
const EFFORTS: [&str; 3] = ["low", "medium", "high"];
/// Maximum number of runs searched for model names.
const MAX_RUNS: u32 = 500;

/// Checks that the named agent supports sessions with these options. Every error is a usage error.
pub(super) fn check(served: &Served) -> anyhow::Result<()> {
    let Some(agent) = &served.agent else {
        return Ok(());
    };
    Ok(crate::global::host().check_session(&served.session(agent))?)
}

/// Returns pairs of agent and model from the history, the last used first.
pub(super) async fn known_models(store: Option<&Store>) -> Vec<(String, String)> {
    let Some(store) = store else {
        return Vec::new();
    };
    // An error only leaves the list empty.
    let runs = store.runs(&RunFilter::default().limit(MAX_RUNS)).await;
    let mut known = Vec::new();
    for run in runs.unwrap_or_default() {
        if let Some(model) = run.model {
            let pair = (run.provider, model);
            if !known.contains(&pair) {
                known.push(pair);
            }
        }
    }
    known
}

/// Creates the catalog: the named agent, else all agents that support sessions, ready ones first.
pub(super) fn new(served: &Served, models: &[(String, String)]) -> Catalog {
    let entry = |agent: &str| entry(served, agent, models);
    if let Some(agent) = &served.agent {
        return Catalog::one(entry(agent));
    }
    let all = crate::global::providers().all().into_iter();
    let with_sessions = all.filter(|provider| {
        let id = provider.info().id;
        let config = params::agent_config(&served.session(id).trusted, provider.info());
        crate::global::providers()
            .session_runtime(id, config)
            .is_ok()
    });
    let mut infos: Vec<_> = with_sessions.map(|provider| provider.info()).collect();
    infos.sort_by_key(|info| !is_ready(info));
    Catalog::choice(infos.iter().map(|info| entry(info.id)).collect())
}

/// Returns whether the agent is installed and not known to be logged out.
fn is_ready(info: &CliInfo) -> bool {
    let is_here =
        info.program.is_empty() || teamster_host::find_program(crate::global::host(), info).is_ok();
    is_here && doctor::login_of(info).state != LoginState::No
}

fn entry(served: &Served, agent: &str, models: &[(String, String)]) -> AgentEntry {
    let Some(provider) = crate::global::providers().get(agent) else {
        return AgentEntry::new(agent, agent);
    };
    let info = provider.info();
    let can = provider.capabilities();
    let mut entry = AgentEntry::new(info.id, info.name);
    let own = models.iter().filter(|(provider, _)| provider == info.id);
    entry.models = own.map(|(_, model)| Choice::new(model.clone())).collect();
    if can.effort {
        entry.efforts = EFFORTS.map(Choice::new).to_vec();
    }
    let order = [
        PermissionMode::Default,
        PermissionMode::AcceptEdits,
        PermissionMode::ReadOnly,
        PermissionMode::Bypass,
    ];
    let modes = order
        .into_iter()
        .filter(|mode| can.permission_modes.contains(mode));
    entry.modes = modes.collect();
    let session = served.session(agent);
    if served.agent.is_some() {
        entry.settings.model = session.model;
    }
    entry.settings.effort = session.effort;
    let mode = session.permission;
    if entry.modes.contains(&mode) {
        entry.settings.mode = mode;
    }
    let transports = can.mcp.transports.iter();
    entry.transports = transports.map(|it| (*it).to_owned()).collect();
    entry.images = can.images;
    entry.add_dirs = can.add_dirs;
    info.login.clone_into(&mut entry.login);
    entry
}

/// Checks that a session with this setup can begin, without starting a process.
pub(super) fn ready(served: &Served, setup: &Setup) -> Result<(), AgentError> {
    let agent = setup.agent.as_deref().unwrap_or_default();
    let provider = crate::global::providers().get(agent);
    let Some(info) = provider.as_ref().map(|provider| provider.info()) else {
        return Err(AgentError::invalid_params(format!(
            "there is no agent `{agent}`"
        )));
    };
    if !setup.cwd.is_dir() {
        let problem = format!("the folder {} does not exist", setup.cwd.display());
        return Err(AgentError::refused("working_directory", problem));
    }
    let session = served.session(agent);
    let config = params::runtime_config(&session.trusted, info);
    let params = params::of_session(&session)?;
    if let Some(mut error) = missing_program(info, params.env.get("PATH"), &config) {
        if config.program.is_none() && !info.install.is_empty() {
            error.message = format!("{}; install it with `{}`", error.message, info.install);
            error = error.detail(ErrorDetail::missing_program(info.program, info.install));
        }
        return Err(error);
    }
    // `--env` may provide a login, and `--clean-env` may hide one.
    let is_changed = !session.trusted.env.is_empty() || session.trusted.clean_env;
    if !is_changed && doctor::login_of(info).state == LoginState::No {
        let problem = format!("{} is not logged in: {}", info.name, info.login);
        return Err(AgentError::new(
            ErrorCode::CliError,
            ErrorKind::Auth,
            problem,
        ));
    }
    Ok(())
}
