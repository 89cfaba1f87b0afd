//! Reports of the installed agents.

use std::path::PathBuf;

use teamster_api::{ProblemCode, ProviderFacts, ProviderReport, ServiceError};
use teamster_core::{AgentError, CliInfo, ErrorCode, ErrorDetail, ErrorKind};
use teamster_process::RuntimeConfig;
use teamster_providers::doctor::{self, AgentReport, DoctorOptions, LoginState, examine_all};

use crate::environment::{STORE_VARIABLE, program_variable};
use crate::{Host, error_chain};

/// Examines all agents: whether they are installed, their versions and logins. CLIs whose npm package shows their version
/// are not started.
///
/// # Errors
///
/// Fails if a report cannot be converted, which is a fault of this program.
pub async fn examine_agents(host: &Host) -> Result<Vec<ProviderFacts>, ServiceError> {
    examine(host, &options(host).start_all(false), None).await
}

/// Examines all agents as [`examine_agents`] does, and also starts CLIs whose npm package shows their version.
///
/// # Errors
///
/// As [`examine_agents`].
pub async fn start_agents(host: &Host) -> Result<Vec<ProviderFacts>, ServiceError> {
    examine(host, &options(host).start_all(true), None).await
}

/// Examines all agents, or those with these ids alone.
async fn examine(
    host: &Host,
    options: &DoctorOptions,
    ids: Option<&[String]>,
) -> Result<Vec<ProviderFacts>, ServiceError> {
    let mut reports = match ids {
        None => examine_all(host.providers(), options).await,
        Some(ids) => {
            let mut reports = Vec::new();
            for provider in host.providers().all() {
                if ids.iter().any(|id| id == provider.info().id) {
                    reports.push(doctor::examine(&*provider, options).await);
                }
            }
            reports
        }
    };
    let is_missing = |report: &&mut AgentReport| report.path.is_none() && !report.in_process;
    for report in reports.iter_mut().filter(is_missing) {
        let provider = host.providers().get(report.id);
        if let Some(error) = provider.and_then(|it| find_program(host, it.info()).err()) {
            report.problem = Some(error);
        }
    }
    facts(&reports)
}

/// Returns reports as a service has them.
fn facts(reports: &[AgentReport]) -> Result<Vec<ProviderFacts>, ServiceError> {
    let facts = serde_json::to_value(reports).and_then(serde_json::from_value);
    facts.map_err(|error| ServiceError::new(ProblemCode::Internal, error_chain(&error.into())))
}

/// Selection of the agents to examine, and options for that.
#[derive(Debug)]
pub(super) enum Examined {
    /// All or those with these ids, which are started to find their versions.
    WithVersions(Option<Vec<String>>),
    /// All or the named one, without starting them.
    WithoutVersions(Option<String>),
}

/// Finds the programs and logins of agents. Starts no process.
fn find_agents(host: &Host, agent: Option<&str>) -> Vec<AgentReport> {
    let providers = match agent {
        Some(agent) => host.providers().get(agent).into_iter().collect(),
        None => host.providers().all(),
    };
    let infos = providers.iter().map(|provider| provider.info());
    let report = |info: &'static CliInfo| {
        let mut report = AgentReport::new(info, doctor::login_of(info));
        if report.in_process {
            report.usable = report.login.state != LoginState::No;
            return report;
        }
        match find_program(host, info) {
            Ok(path) => (report.usable, report.path) = (true, Some(path)),
            Err(problem) => report.problem = Some(problem),
        }
        report
    };
    infos.map(report).collect()
}

/// Returns the reports of agents with their capabilities.
pub(super) async fn reports(
    host: &Host,
    examined: &Examined,
) -> Result<Vec<ProviderReport>, ServiceError> {
    let mut reports = Vec::new();
    let examined = match examined {
        Examined::WithVersions(ids) => examine(host, &options(host), ids.as_deref()).await?,
        Examined::WithoutVersions(agent) => facts(&find_agents(host, agent.as_deref()))?,
    };
    for facts in examined {
        let Some(provider) = host.providers().get(&facts.id) else {
            continue;
        };
        let sessions = (host.providers()).session_runtime(&facts.id, RuntimeConfig::default());
        let capabilities = provider.capabilities().clone();
        let mut report = ProviderReport::new(facts, capabilities);
        report.sessions = sessions.is_ok();
        report.session_images = sessions.is_ok_and(|it| it.session_capabilities().images);
        reports.push(report);
    }
    Ok(reports)
}

/// Returns the programs set by variables, and the variables hidden from the CLIs.
fn options(host: &Host) -> DoctorOptions {
    let mut options = DoctorOptions::default();
    options.env_remove = vec![STORE_VARIABLE.to_owned()];
    for provider in host.providers().all() {
        let info = provider.info();
        let program = program_variable(info);
        options
            .programs
            .extend(program.map(|path| (info.id.to_owned(), path)));
    }
    options
}

/// Removes the login of an agent by its CLI's own command.
///
/// # Errors
///
/// Fails with the reason if there is no such agent or command, or if that fails.
pub async fn log_out(host: &Host, agent: &str) -> Result<(), AgentError> {
    host.agent(agent)?;
    let logged_out = match host.providers().get(agent) {
        Some(provider) => doctor::log_out(&*provider, &options(host)).await,
        None => Ok(()),
    };
    logged_out.map_err(|why| AgentError::new(ErrorCode::CliError, ErrorKind::Internal, why))
}

/// Returns the path of an agent's program as a run would find it.
///
/// # Errors
///
/// Fails with the reason, which does not list the searched folders.
pub fn find_program(host: &Host, info: &CliInfo) -> Result<PathBuf, String> {
    doctor::find_program_of(info, &options(host)).map_err(|error| {
        let missing = matches!(
            error.detail.as_deref(),
            Some(ErrorDetail::MissingProgram { .. })
        );
        match program_variable(info) {
            Some(_) => format!("{}: {}", info.program_variable(), error.message),
            None if missing => format!("the program `{}` was not found on PATH", info.program),
            None => error.message,
        }
    })
}
