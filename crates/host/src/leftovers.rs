//! Leftovers of earlier runs on this machine, and parts of its environment that matter to agents.

use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde::Serialize;
use teamster_core::text::one_line;
use teamster_core::{ContainerEngine, ErrorDetail};
use teamster_process::{Leftover, container_engine, find_program, leftovers};
use teamster_providers::doctor::shim_guards;

use crate::changed_files::{ChangedFile, changed_files};
use crate::{Host, environment};

/// Limit for the end of a killed process.
const KILL_LIMIT: Duration = Duration::from_secs(2);

/// The part of a report about agents that only a process on the machine itself sees.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct MachineState {
    /// The value of `PATH`.
    #[serde(rename = "PATH")]
    pub search_path: String,
    /// Variables that a shim set for its own processes and that agents do not inherit.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub shim_guards: Vec<&'static str>,
    /// Processes that earlier runs left behind.
    pub leftovers: Vec<LeftoverReport>,
    /// Configuration files that killed runs left changed.
    pub changed_files: Vec<ChangedFile>,
    /// Container engines whose client is installed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub container_engines: Vec<EngineReport>,
}

/// A container engine whose client is installed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct EngineReport {
    /// The engine.
    pub engine: ContainerEngine,
    /// Its version, if it answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Why it cannot run containers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

impl EngineReport {
    /// Creates a report of an engine with this version, or with a problem.
    pub fn new(engine: ContainerEngine, version: Result<String, String>) -> Self {
        let (version, problem) = match version {
            Ok(version) => (Some(version), None),
            Err(problem) => (None, Some(problem)),
        };
        Self {
            engine,
            version,
            problem,
        }
    }
}

/// Examines the container engines whose client is installed.
pub async fn examine_engines() -> Vec<EngineReport> {
    let mut reports = Vec::new();
    for engine in ContainerEngine::ALL {
        let path = environment::variable("PATH");
        if find_program(engine.program(), path.as_deref()).is_ok() {
            let version = container_engine(engine, None).await;
            let version = version.map_err(|error| match error.detail.as_deref() {
                Some(ErrorDetail::Parameter { problem, .. }) => problem.clone(),
                _ => error.message,
            });
            reports.push(EngineReport::new(engine, version));
        }
    }
    reports
}

/// A process that an earlier run left behind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct LeftoverReport {
    /// Process id.
    pub pid: u32,
    /// The program without its arguments, which may contain a prompt.
    pub program: String,
    /// Id of its run.
    pub run_id: String,
    /// The process was killed.
    pub killed: bool,
    /// Why it could not be killed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

impl LeftoverReport {
    /// Creates a report about a process that was not killed.
    pub fn new(pid: u32, program: impl Into<String>, run_id: impl Into<String>) -> Self {
        Self {
            pid,
            program: program.into(),
            run_id: run_id.into(),
            killed: false,
            problem: None,
        }
    }
}

/// Returns the state of this machine, with the files that runs in this directory can have changed.
pub fn machine_state(host: &Host, directory: Option<&Path>) -> MachineState {
    state_of(host, directory, false)
}

/// Kills the leftovers of runs, and waits for their end. Returns the state of this machine, with the killed processes.
pub fn kill_leftovers(host: &Host, directory: Option<&Path>) -> MachineState {
    state_of(host, directory, true)
}

fn state_of(host: &Host, directory: Option<&Path>, kill: bool) -> MachineState {
    let found = leftovers();
    let reports = found.iter().map(|left| report(left, kill));
    let leftovers_of_runs = reports.collect();
    let deadline = Instant::now() + KILL_LIMIT;
    while kill && Instant::now() < deadline && leftovers().iter().any(|left| found.contains(left)) {
        sleep(Duration::from_millis(10));
    }
    MachineState {
        search_path: environment::text("PATH").unwrap_or_default(),
        shim_guards: shim_guards().into_iter().map(|it| it.0).collect(),
        leftovers: leftovers_of_runs,
        changed_files: directory
            .map(|directory| changed_files(host.providers(), directory))
            .unwrap_or_default(),
        container_engines: Vec::new(),
    }
}

fn report(leftover: &Leftover, kill: bool) -> LeftoverReport {
    let program = leftover.command.split(' ').next().unwrap_or_default();
    let mut report = LeftoverReport::new(leftover.pid, one_line(program), &*leftover.run_id);
    match kill.then(|| leftover.kill()) {
        Some(Ok(())) => report.killed = true,
        Some(Err(error)) => report.problem = Some(error.to_string()),
        None => {}
    }
    report
}
