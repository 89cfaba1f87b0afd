//! Starts a run that outlives this program, follows its log, allows what its agent requests, and prints the answer.
//! Ctrl-C stops the run.
//!
//! `detached_run.rs` does so on this machine, and `remote_run.rs` on the one of a server, whose URL is its argument.
//! One line differs: the service.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "an example shows what it does"
)]

use std::sync::Arc;

use teamster_api::{Answer, RunHandle, RunService, RunSpec};
use teamster_core::Stopping;
use teamster_host::{Host, Role};
use teamster_providers::Providers;
use tokio::signal::unix::{SignalKind, signal};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // First: the runner of a run on this machine is this program too.
    let Role::Program(host) = teamster_host::init(Host::new(Providers::builtin()))? else {
        return Ok(());
    };
    let agent = host.agent("claude")?.id;
    let runs = teamster_client::Client::new(&std::env::args().nth(1).unwrap_or_default(), None)?;
    tokio::runtime::Runtime::new()?.block_on(ask(Arc::new(runs), agent))
}

async fn ask(runs: Arc<dyn RunService>, agent: &str) -> Result<(), Box<dyn std::error::Error>> {
    let id = format!("example-{}", std::process::id());
    let run = RunHandle::start(runs, id, RunSpec::new(agent, "Which files are here?")).await?;
    for warning in &run.accepted().warnings {
        eprintln!("warning: {warning}");
    }
    let mut log = run.follow(0);
    // Before the loop, so that none is missed.
    let mut interrupts = signal(SignalKind::interrupt())?;
    loop {
        tokio::select! {
            line = log.next() => {
                let Some(line) = line else { break };
                println!("{}", serde_json::to_string(&line?.entry()?)?);
                for request in run.requests().await? {
                    run.answer(request.request_id, Answer::Allow).await?;
                }
            }
            _ = interrupts.recv() => run.cancel(Stopping::Graceful).await?,
        }
    }
    println!("{}", run.result().await?.text);
    Ok(())
}
