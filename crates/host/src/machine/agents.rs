//! Reports of the installed agents.

use std::path::PathBuf;

use teamster_api::{ProblemCode, ProviderReport, ServiceError};
use teamster_core::{CliInfo, ErrorDetail};
use teamster_providers::doctor::{self, AgentReport, DoctorOptions, examine_all};

use crate::environment::{STORE_VARIABLE, program_variable};
use crate::{Host, error_chain};

/// Examines all agents: whether they are installed, their versions and logins.
pub async fn examine_agents(host: &Host) -> Vec<AgentReport> {
    let mut reports = examine_all(host.providers(), &options(host)).await;
    let is_missing = |report: &&mut AgentReport| report.path.is_none() && !report.in_process;
    for report in reports.iter_mut().filter(is_missing) {
        let provider = host.providers().get(report.id);
        if let Some(error) = provider.and_then(|it| find_program(host, it.info()).err()) {
            report.problem = Some(error);
        }
    }
    reports
}

/// Returns the reports of all agents with their capabilities.
pub(super) async fn reports(host: &Host) -> Result<Vec<ProviderReport>, ServiceError> {
    let failed = |error: serde_json::Error| {
        ServiceError::new(ProblemCode::Internal, error_chain(&error.into()))
    };
    let mut reports = Vec::new();
    for report in examine_agents(host).await {
        let Some(provider) = host.providers().get(report.id) else {
            continue;
        };
        let facts = serde_json::to_value(report).map_err(failed)?;
        reports.push(ProviderReport {
            facts: serde_json::from_value(facts).map_err(failed)?,
            capabilities: provider.capabilities().clone(),
        });
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

/// Returns the path of an agent's program as a run would find it.
///
/// # Errors
///
/// Fails with the reason, which does not list the searched folders.
pub fn find_program(host: &Host, info: &CliInfo) -> Result<PathBuf, String> {
    doctor::find(info, &options(host)).map_err(|error| {
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
