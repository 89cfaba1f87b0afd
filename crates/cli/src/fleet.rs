//! `--fleet`: commands on the runs of a fleet instead of this machine's, through its NATS server.

mod machine;
pub(crate) mod settings;

use std::sync::{Arc, OnceLock};

use anyhow::Context;
use teamster_api::{ServiceError, TraceContext};
use teamster_fleet::{Fleet, FleetRuns};
use teamster_host::threads;
use tokio::runtime::Runtime;

use crate::exit_code;
use crate::remote::Machine;
use machine::FleetMachine;
use settings::Settings;

/// The runtime of the connection, which outlives those of commands.
static RUNTIME: OnceLock<Runtime> = OnceLock::new();

/// Connects to the fleet that the user has named.
pub(crate) fn connect(settings: &Settings) -> anyhow::Result<Fleet> {
    crate::global::use_fleet();
    let connected = runtime()?.block_on(Fleet::connect(settings.options()));
    connected.map_err(exit_code::of_service)
}

fn runtime() -> anyhow::Result<&'static Runtime> {
    if let Some(runtime) = RUNTIME.get() {
        return Ok(runtime);
    }
    let runtime = threads::runtime(1).context("cannot start the runtime")?;
    Ok(RUNTIME.get_or_init(|| runtime))
}

pub(crate) fn machine(settings: &Settings) -> anyhow::Result<Machine> {
    let fleet = connect(settings)?;
    // The runs become a part of what this command is part of.
    let runs = FleetRuns::new(&fleet).trace(TraceContext::from_environment());
    let runs = Arc::new(runs);
    let agents = Arc::new(FleetMachine::new(fleet, runs.clone()));
    Ok(Machine::fleet(runs, agents, settings.address()))
}

/// Waits for a call to the fleet's server.
pub(crate) fn wait<T>(call: impl Future<Output = Result<T, ServiceError>>) -> anyhow::Result<T> {
    Ok(runtime()?.block_on(call)?)
}
