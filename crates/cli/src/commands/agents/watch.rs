//! `teamster agents watch`.

use std::io::{self, Write};
use std::path::Path;

use teamster::agent_loop::supervisor::Client;
use teamster_api::agents::{Change, Update};
use teamster_core::time::epoch_ms;

use super::Supervisor;
use super::args::AgentsWatchArgs;
use super::status::state;
use crate::zone::local_time;
use crate::{exit_code, words};

/// Prints the state of each agent, then changes until the supervisor ends.
pub(super) async fn main(
    args: &AgentsWatchArgs,
    file: &Path,
    supervisor: &Supervisor,
) -> anyhow::Result<u8> {
    supervisor.answering().await?;
    let (status, mut updates) = Client::connect(file).await?.subscribe().await?;
    for agent in status.agents {
        let status = Box::new(agent);
        let code = print(args, &Update::new(Change::Agent { status }))?;
        if code != exit_code::SUCCESS {
            return Ok(code);
        }
    }
    while let Some(update) = updates.next().await? {
        let code = print(args, &update)?;
        if code != exit_code::SUCCESS {
            return Ok(code);
        }
    }
    Ok(exit_code::SUCCESS)
}

fn print(args: &AgentsWatchArgs, update: &Update) -> anyhow::Result<u8> {
    let now = epoch_ms();
    let time = local_time(now, "%H:%M:%S");
    let line = if args.json {
        serde_json::to_string(update)?
    } else {
        let what = match &update.change {
            Change::Event { happened, .. } => happened.to_string(),
            Change::Agent { status } => format!("{}: {}", status.id, state(status, true, now)),
            Change::Gone { id } => format!("{id}: gone"),
            _ => return Ok(exit_code::SUCCESS),
        };
        words::one_line(&format!("{time} {what}"))
    };
    exit_code::of_printed(writeln!(io::stdout(), "{line}"))
}
