//! Starts a run that outlives this program, follows its log, allows what its agent requests, and prints the answer.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "an example shows what it does"
)]

use std::sync::Arc;

use teamster_api::{Answer, RunHandle, RunService, RunSpec};
use teamster_host::{Host, LocalRuns, Role};
use teamster_providers::Providers;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // First: the runner of the run is this program too.
    let Role::Program(host) = teamster_host::init(Host::new(Providers::builtin()))? else {
        return Ok(());
    };
    tokio::runtime::Runtime::new()?.block_on(ask(Arc::new(LocalRuns::new(&host)?)))
}

async fn ask(runs: Arc<dyn RunService>) -> Result<(), Box<dyn std::error::Error>> {
    let id = format!("example-{}", std::process::id());
    let run = RunHandle::start(runs, id, RunSpec::new("claude", "Which files are here?")).await?;
    for warning in &run.accepted().warnings {
        eprintln!("warning: {warning}");
    }
    let mut log = run.follow(0);
    while let Some(line) = log.next().await {
        println!("{}", serde_json::to_string(&line?.entry()?)?);
        for request in run.requests().await? {
            run.answer(request.request_id, Answer::Allow).await?;
        }
    }
    println!("{}", run.result().await?.text);
    Ok(())
}
