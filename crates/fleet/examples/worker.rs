//! A worker of a fleet: `worker URL NAME [DIRECTORY]…`. It carries out runs that name these directories, or none.
//! SIGTERM lets it end with the runs that it has.
#![expect(clippy::print_stderr, reason = "an example shows what it does")]

use std::error::Error;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use teamster_fleet::{Fleet, FleetOptions, Worker, WorkerConfig, WorkerPolicy};
use teamster_host::{Host, Role};
use teamster_providers::Providers;
use tokio::signal::unix::{SignalKind, signal};

fn main() -> Result<(), Box<dyn Error>> {
    // First: the runner of a run is this program too.
    let Role::Program(host) = teamster_host::init(Host::new(Providers::builtin()))? else {
        return Ok(());
    };
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [url, name, directories @ ..] = &*args else {
        return Err("expected the server's URL and the worker's name".into());
    };
    let mut config = WorkerConfig::new(name);
    // For tests: a policy of the worker.
    if let Some(policy) = std::env::var_os("WORKER_POLICY") {
        config.policy = WorkerPolicy::read(policy.as_ref())?;
    } else {
        config.policy.slots = 4;
    }
    // For tests: the time after which runs are interrupted.
    if let Ok(seconds) = std::env::var("WORKER_DRAIN_SECONDS") {
        config.drain_timeout = Some(Duration::from_secs(seconds.parse()?));
    }
    // For tests: the address of its figures.
    if let Ok(address) = std::env::var("WORKER_METRICS") {
        config.metrics = Some(address.parse()?);
    }
    let directories = directories.iter().map(Into::into);
    config.policy.directories.extend(directories);
    tokio::runtime::Runtime::new()?.block_on(async {
        let fleet = Fleet::connect(FleetOptions::new(url, "worker")).await?;
        let worker = Worker::new(&fleet, &host, config)?;
        let worker = worker.on_notice(|text| eprintln!("{text}"));
        // For tests: the worker is killed before an effect whose text has this.
        let dies = std::env::var("WORKER_DIES_BEFORE").ok();
        let worker = worker.before_effect(move |effect| {
            let is_there = |step: &String| format!("{effect:?}").contains(&**step);
            if dies.as_ref().is_some_and(is_there) {
                let _ = kill(Pid::this(), Signal::SIGKILL);
            }
        });
        let mut terminate = signal(SignalKind::terminate())?;
        eprintln!("worker {name} takes runs");
        worker
            .run(async move {
                terminate.recv().await;
            })
            .await?;
        Ok(())
    })
}
