//! `teamster runs`: the history of runs, and what they bring back.

mod again;
mod apply;
pub(crate) mod args;
mod diff;
mod fetch;
mod files;
mod forget;
mod found;
mod history;
mod list;
mod live;
mod open;
mod show;

use std::path::{Path, PathBuf};

use crate::exit_code;
use crate::remote::Machine;
use crate::runtime::tokio_runtime;
use args::RunsCommand;
use history::History;
use teamster_api::history::{RunRecord, RunState};

/// Runs the subcommand and returns the exit code.
pub(crate) fn main(command: &RunsCommand, machine: &Machine) -> anyhow::Result<u8> {
    if let RunsCommand::List(args) = command
        && args.live
    {
        return live::main(args, machine);
    }
    tokio_runtime()?.block_on(async {
        match command {
            RunsCommand::Diff(args) => diff::main(args, machine).await,
            RunsCommand::Again(args) => again::main(args, machine).await,
            RunsCommand::Apply(args) => apply::main(args, machine).await,
            RunsCommand::Fetch(args) => fetch::main(args, machine).await,
            RunsCommand::Files(args) => files::main(args, machine).await,
            RunsCommand::Open(args) => open::main(args, machine).await,
            RunsCommand::List(args) => {
                let history = History::open(machine, &args.store).await?;
                (history.used_by(async |history| list::main(args, history).await)).await
            }
            RunsCommand::Show(args) => {
                let history = History::open(machine, &args.store).await?;
                (history.used_by(async |history| show::main(args, history).await)).await
            }
            RunsCommand::Rename(args) => {
                // An attached run is in the history only, and a log exists without one.
                let history = History::open_if_any(machine, &args.run.store).await?;
                let (id, title) = (&args.run.id, args.title.clone());
                (history.used_by(async |history| history.rename(id, title).await)).await?;
                Ok(exit_code::SUCCESS)
            }
            RunsCommand::Forget(args) => {
                // Logs exist without a store, too.
                let history = History::open_if_any(machine, &args.store).await?;
                (history.used_by(async |history| forget::main(args, history).await)).await
            }
        }
    })
}

/// Returns the canonical path, as the history stores it. A path of another machine is unchanged.
fn canonical(directory: &Path, is_here: bool) -> PathBuf {
    if !is_here {
        return directory.to_owned();
    }
    let real = directory.canonicalize();
    real.or_else(|_| std::path::absolute(directory))
        .unwrap_or_else(|_| directory.to_owned())
}

fn style(state: RunState) -> anstyle::Style {
    let color = match state {
        RunState::Success => anstyle::AnsiColor::Green,
        RunState::Error | RunState::Interrupted => anstyle::AnsiColor::Red,
        RunState::Aborted => anstyle::AnsiColor::Yellow,
        _ => anstyle::AnsiColor::Cyan,
    };
    color.on_default()
}

/// Returns the duration of a run, so far if it is running, in milliseconds.
fn duration_ms(run: &RunRecord, now_ms: u64) -> Option<u64> {
    match run.status {
        RunState::Running => Some(now_ms.saturating_sub(run.started_at)),
        _ => run.duration_ms,
    }
}
