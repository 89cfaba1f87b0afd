//! `teamster worker`: carries out runs of a fleet on this machine.

pub(crate) mod args;

use std::time::Duration;

use anyhow::Context;
use nix::unistd::gethostname;
use teamster_fleet::{Fleet, Worker, WorkerConfig, WorkerPolicy};
use tokio::sync::oneshot;

use crate::fleet::settings::{Settings, token};
use crate::report::note;
use crate::runtime::server_runtime;
use crate::signals::Source;
use crate::{exit_code, words};
use args::WorkerArgs;

/// The owner by which a worker that has none of its own connects. It submits nothing.
const OWNER: &str = "worker";

/// Carries out runs until a signal and returns the exit code.
pub(crate) fn main(args: WorkerArgs) -> anyhow::Result<u8> {
    let (settings, config) = of_args(args).map_err(exit_code::refused)?;
    let runtime = server_runtime()?;
    let code = runtime.block_on(async {
        let mut signals = Source::new().context("cannot listen for signals")?;
        crate::global::use_fleet();
        let mut options = settings.options();
        // As permissions of workers have it.
        (options.inbox).get_or_insert_with(|| format!("_INBOX_{}", config.name));
        let fleet = Fleet::connect(options).await.map_err(exit_code::of_service)?;
        let head = format!(
            "worker {} of {}: {} of {}",
            config.name,
            settings.address(),
            words::plural(config.policy.slots as u64, "slot"),
            pools(&config.policy.pools),
        );
        let worker = Worker::new(&fleet, crate::global::host(), config).map_err(exit_code::of_service)?;
        let worker = worker.on_notice(|text| note(&words::one_line(&text)));
        #[cfg(feature = "otlp")]
        let worker = match crate::telemetry::figures() {
            Some(figures) => worker.figures(figures),
            None => worker,
        };
        note(&format!("{head}; Ctrl-C drains it"));
        let (drain, drained) = oneshot::channel::<()>();
        let mut running = std::pin::pin!(worker.run(async move {
            // It is dropped only after it was sent.
            let _ = drained.await;
        }));
        tokio::select! {
            ended = &mut running => {
                ended?;
                return anyhow::Ok(exit_code::SUCCESS);
            }
            () = signals.next() => {}
        }
        note(
            "draining: no more runs are taken; a second signal ends the worker, and its runs continue",
        );
        let _ = drain.send(());
        tokio::select! {
            ended = running => {
                ended?;
                note("drained");
                Ok(exit_code::SUCCESS)
            }
            () = signals.next() => Ok(exit_code::ABORTED),
        }
    });
    // Neither a disk nor a server that hangs delays the end.
    runtime.shutdown_background();
    code
}

/// Returns how the fleet is reached, and what the worker offers.
fn of_args(args: WorkerArgs) -> anyhow::Result<(Settings, WorkerConfig)> {
    let WorkerArgs {
        url,
        pool,
        slots,
        name,
        drain_timeout,
        policy,
        creds,
        ca,
        metrics,
    } = args;
    let mut settings = match url {
        Some(url) => Settings::of_argument(&url, Some(OWNER.to_owned()))?,
        None => Settings::read(Some(OWNER))?,
    };
    settings.credentials = creds.or(settings.credentials);
    settings.ca = ca.or(settings.ca);
    let name = match name {
        Some(name) => name,
        None => host_name().context("this machine has no name: name the worker with --name")?,
    };
    let mut config = WorkerConfig::new(name);
    config.metrics = metrics;
    if let Some(file) = policy {
        config.policy = WorkerPolicy::read(&file).context("--policy")?;
    }
    if !pool.is_empty() {
        config.policy.pools = pool;
    }
    config.drain_timeout = drain_timeout.filter(|limit| *limit != Duration::MAX);
    config.policy.slots = slots.map_or(config.policy.slots, usize::from);
    Ok((settings, config))
}

/// Returns the name of this machine as a worker can have it.
fn host_name() -> Option<String> {
    let name = gethostname().ok()?;
    // Without the domain.
    let name = name.to_string_lossy();
    let name = token(name.split('.').next().unwrap_or_default());
    Some(name).filter(|name| !name.is_empty())
}

fn pools(pools: &[String]) -> String {
    match pools {
        [pool] => format!("pool {pool}"),
        pools => format!("pools {}", pools.join(", ")),
    }
}
