//! Starts a run that outlives this program, follows its log, allows what its agent asks for, and prints the answer.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use teamster_api::{Answer, RunSpec};
use teamster_host::{Host, Role};
use teamster_providers::Providers;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // First: the runner of the run is this program too.
    let Role::Program(host) = teamster_host::init(Host::new(Providers::builtin()))? else {
        return Ok(());
    };
    tokio::runtime::Runtime::new()?.block_on(ask(&host, "Which files are here?"))
}

async fn ask(host: &Host, prompt: &str) -> Result<(), Box<dyn std::error::Error>> {
    let id = format!("example-{}", std::process::id());
    let run = host.start(id, RunSpec::new("claude", prompt)).await?;
    let mut log = run.follow(0)?;
    while let Some(line) = log.next().await? {
        println!("{}", serde_json::to_string(&line.entry()?)?);
        for request in run.requests().await? {
            run.answer(&request.request_id, Answer::Allow).await?;
        }
    }
    println!("{}", run.result().await?.text);
    Ok(())
}
