//! Starts a run on a server, shows its text, and denies its requests.
//!
//! ```sh
//! TEAMSTER_TOKEN=$(cat token) cargo run -p teamster-client --example start -- http://127.0.0.1:7420 claude "Say hello"
//! ```
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "an example shows what it does"
)]

use std::error::Error;
use std::time::SystemTime;

use teamster_api::{Answer, RunLogEntry, RunSpec};
use teamster_client::{Client, ConnectionChange};
use teamster_core::{AgentEvent, Decision};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let (Some(url), Some(agent), Some(prompt)) = (args.next(), args.next(), args.next()) else {
        return Err("expected URL AGENT PROMPT".into());
    };
    let token = std::env::var("TEAMSTER_TOKEN").ok();
    let client = Client::new(&url, token.as_deref())?.on_connection_change(|change| match change {
        ConnectionChange::Lost { reason } => eprintln!("{reason}; retrying"),
        ConnectionChange::Restored => eprintln!("connected"),
        _ => {}
    });
    if client.is_unencrypted() {
        eprintln!("others can read the token on its way to {url}");
    }
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
    let key = format!("example {}", now.as_nanos());
    let started = client.start(&RunSpec::new(agent, prompt), &key).await?;
    for warning in &started.warnings {
        eprintln!("warning: {warning}");
    }
    let mut log = client.follow(&started.view.summary.info.run_id, 0);
    while let Some(line) = log.next().await? {
        let RunLogEntry::Agent(entry) = line.entry()? else {
            continue;
        };
        match entry.event {
            AgentEvent::Text(text) => print!("{}", text.text),
            AgentEvent::Permission(request) if request.decision == Decision::Requested => {
                let id = request.request_id.unwrap_or_default();
                let deny = Answer::Deny { reason: None };
                // It may be answered elsewhere meanwhile.
                if let Err(error) = client.answer(&id, &deny).await {
                    eprintln!("{id}: {error}");
                }
            }
            AgentEvent::Done(done) => println!("\n{:?}", done.result.status),
            _ => {}
        }
    }
    Ok(())
}
