//! `teamster fleet`: sets a fleet up, and looks after it.

pub(crate) mod args;
mod check;
mod status;

use teamster_api::RunService;
use teamster_fleet::{Fleet, FleetLimits, FleetRuns};

use crate::fleet::{connect, settings::Settings, wait};
use crate::report::note;
use crate::{exit_code, words};
use args::{FleetCommand, FleetInitArgs, FleetUseArgs};

/// Runs the subcommand and returns the exit code.
pub(crate) fn main(command: FleetCommand) -> anyhow::Result<u8> {
    match command {
        FleetCommand::Use(args) => name(args),
        FleetCommand::Init(args) => init(&args),
        FleetCommand::Check(args) => check::main(&args),
        FleetCommand::Status(args) => status::main(&args),
        FleetCommand::Drain(args) => drain(&args.name),
        FleetCommand::GiveUp(args) => give_up(&args.id),
        FleetCommand::Rerun(args) => rerun(&args.id),
    }
}

/// Connects to the fleet that the user has named.
fn fleet() -> anyhow::Result<Fleet> {
    connect(&Settings::read(None).map_err(exit_code::misuse)?)
}

/// Keeps how the fleet is reached.
fn name(args: FleetUseArgs) -> anyhow::Result<u8> {
    let FleetUseArgs {
        url,
        creds,
        ca,
        owner,
        inbox,
    } = args;
    let mut settings = Settings::of_argument(&url, owner).map_err(exit_code::misuse)?;
    // It is used from other directories, too.
    let creds = creds.map(std::path::absolute).transpose()?;
    settings.credentials = creds.or(settings.credentials);
    let ca = ca.map(std::path::absolute).transpose()?;
    settings.ca = ca.or(settings.ca);
    settings.inbox = inbox.or(settings.inbox);
    let fleet = connect(&settings)?;
    let file = settings.keep()?;
    note(&format!(
        "{} is your fleet, and {} the owner of your runs: kept in {}",
        words::one_line(&settings.address()),
        fleet.owner(),
        words::one_line(&file.display().to_string()),
    ));
    Ok(exit_code::SUCCESS)
}

/// Makes the streams.
fn init(args: &FleetInitArgs) -> anyhow::Result<u8> {
    let FleetInitArgs {
        replicas,
        logs,
        files,
        queue,
    } = *args;
    let mut limits = FleetLimits::default();
    limits.replicas = replicas.map(usize::from);
    limits.log_bytes = logs;
    limits.file_bytes = files;
    limits.queue = queue;
    let fleet = fleet()?;
    wait(fleet.init(&limits))?;
    note("the fleet is ready: start `teamster worker` on each machine that is to carry runs out");
    Ok(exit_code::SUCCESS)
}

/// Gives a run up.
fn give_up(id: &str) -> anyhow::Result<u8> {
    let runs = FleetRuns::new(&fleet()?);
    wait(async {
        let run = runs.resolve(id).await?.run_id;
        runs.give_up(&run).await
    })?;
    Ok(exit_code::SUCCESS)
}

/// Submits a run again, and prints the id of the new one.
fn rerun(id: &str) -> anyhow::Result<u8> {
    let runs = FleetRuns::new(&fleet()?);
    let rerun = wait(async {
        let run = runs.resolve(id).await?.run_id;
        runs.rerun(&run).await
    })?;
    crate::report::warn(&rerun.accepted.warnings);
    exit_code::of_lines([rerun.run_id])
}

/// Lets a worker end with the runs that it has.
fn drain(worker: &str) -> anyhow::Result<u8> {
    let fleet = fleet()?;
    wait(fleet.drain(worker))?;
    note(&format!("worker {} drains", words::one_line(worker)));
    Ok(exit_code::SUCCESS)
}
