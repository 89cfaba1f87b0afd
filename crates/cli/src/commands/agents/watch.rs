//! `teamster agents watch`.

use std::io::{self, Write};
use std::path::Path;

use teamster_api::agents::{Change, Update};
use teamster_core::time::epoch_ms;

use super::args::AgentsWatchArgs;
use super::status::state;
use super::{Failure, connect_here, of_printed};
use crate::zone::local_time;
use crate::{exit_code, words};

/// Prints the state of each agent, then changes until the supervisor ends.
pub(super) async fn main(args: &AgentsWatchArgs, file: &Path) -> Result<u8, Failure> {
    let (status, mut updates) = connect_here(file).await?.subscribe().await?;
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

fn print(args: &AgentsWatchArgs, update: &Update) -> Result<u8, Failure> {
    let now = epoch_ms();
    let time = local_time(now, "%H:%M:%S");
    let line = if args.json {
        serde_json::to_string(update).map_err(|error| Failure::Output(error.into()))?
    } else {
        let what = match &update.change {
            Change::Event { happened, .. } => happened.to_string(),
            Change::Agent { status } => format!("{}: {}", status.id, state(status, true, now)),
            Change::Gone { id } => format!("{id}: gone"),
            _ => return Ok(exit_code::SUCCESS),
        };
        words::one_line(&format!("{time} {what}"))
    };
    of_printed(writeln!(io::stdout(), "{line}"))
}
