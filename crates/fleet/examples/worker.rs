//! A worker of a fleet: `worker URL NAME [DIRECTORY]…`. It carries out runs that name these directories, or none.
//! SIGTERM lets it end with the runs that it has.
#![expect(clippy::print_stderr, reason = "an example shows what it does")]

use std::error::Error;
use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use teamster_fleet::{Fleet, FleetOptions, Worker, WorkerConfig, WorkerPolicy};
use teamster_host::{Host, Role};
use teamster_providers::Providers;
use teamster_testkit::stand_in::Chance;
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
        let fleet = Fleet::connect(FleetOptions::new(url, name)).await?;
        let worker = Worker::new(&fleet, &host, config)?;
        let mut worker = worker.on_notice(|text| eprintln!("{text}"));
        // For tests: the pause between two looks for runs that need a repair.
        if let Ok(ms) = std::env::var("WORKER_REPAIRS_EVERY_MS") {
            worker = worker.repairs_every(Duration::from_millis(ms.parse()?));
        }
        let dies = Dies::from_env();
        let worker = worker.before_effect(move |effect| dies.before(&format!("{effect:?}")));
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

/// For tests: when the worker is killed.
struct Dies {
    /// Before an effect whose text has this.
    before: Option<String>,
    /// Before any effect, with this probability; the effect is written to the file. A file with the extension `over`
    /// beside it ends that.
    by_chance: Option<(Mutex<Chance>, f64, PathBuf)>,
}

impl Dies {
    fn from_env() -> Self {
        let by_chance = std::env::var("WORKER_DIES_BY_CHANCE").ok();
        let by_chance = by_chance.and_then(|text| {
            let mut parts = text.splitn(3, ' ');
            let seed = parts.next()?.parse().ok()?;
            let probability = parts.next()?.parse().ok()?;
            let chance = Mutex::new(Chance::of(seed, 0, 0));
            Some((chance, probability, parts.next()?.into()))
        });
        Self {
            before: std::env::var("WORKER_DIES_BEFORE").ok(),
            by_chance,
        }
    }

    fn before(&self, effect: &str) {
        let mut dies = self
            .before
            .as_ref()
            .is_some_and(|step| effect.contains(&**step));
        if let Some((chance, probability, file)) = &self.by_chance {
            let happens = chance
                .lock()
                .is_ok_and(|mut chance| chance.happens(*probability));
            dies |= happens && !file.with_extension("over").exists();
            if dies && let Ok(mut file) = File::options().append(true).create(true).open(file) {
                let name = effect.split_once("step: ").map_or(effect, |(_, step)| step);
                let name = name.split(|byte: char| !byte.is_alphanumeric()).next();
                let _ = writeln!(file, "{}", name.unwrap_or_default());
            }
        }
        if dies {
            let _ = kill(Pid::this(), Signal::SIGKILL);
        }
    }
}
