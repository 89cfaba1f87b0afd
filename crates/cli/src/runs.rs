//! `teamster runs`: the history of runs.

mod forget;
mod list;
mod live;
mod show;

use std::path::{Path, PathBuf};

use anyhow::Context;
use jiff::Timestamp;
use teamster::store::{RunRecord, RunState, Store};

use crate::args::RunsCommand;
use crate::{exit_code, store, tokio_runtime, words, zone};

/// Shows what is asked for; the exit code.
pub(crate) fn main(command: &RunsCommand) -> anyhow::Result<u8> {
    if let RunsCommand::List(args) = command
        && args.live
    {
        return live::main(args);
    }
    tokio_runtime()
        .context("cannot start the runtime")?
        .block_on(async {
            if let RunsCommand::Forget(args) = command {
                // Logs are there without a store, too.
                let store = match store::place(&args.store) {
                    Some(_) => store::open(&args.store).await?,
                    None => None,
                };
                let code = forget::main(args, store.as_ref()).await;
                if let Some(store) = &store {
                    store::close(store).await;
                }
                return code;
            }
            let args = match command {
                RunsCommand::List(args) => &args.store,
                RunsCommand::Show(args) => &args.store,
                RunsCommand::Forget(_) => return Ok(exit_code::SUCCESS),
            };
            let Some(store) = store::open(args).await? else {
                return Ok(match command {
                    RunsCommand::Show(_) => exit_code::AGENT_ERROR,
                    _ => exit_code::SUCCESS,
                });
            };
            let code = match command {
                RunsCommand::List(args) => list::main(args, &store).await,
                RunsCommand::Show(args) => show::main(args, &store).await,
                RunsCommand::Forget(_) => Ok(exit_code::SUCCESS),
            };
            store::close(&store).await;
            code
        })
}

/// The run of this id, or of the one that begins so.
async fn find(store: &Store, id: &str) -> anyhow::Result<RunRecord> {
    store.run(id).await?.with_context(|| {
        format!(
            "there is no run `{}` in {}: `teamster runs list` shows those that are there",
            words::one_line(id),
            store.place()
        )
    })
}

/// A directory as runs write it down.
fn real(directory: &Path) -> PathBuf {
    let real = directory.canonicalize();
    real.or_else(|_| std::path::absolute(directory))
        .unwrap_or_else(|_| directory.to_owned())
}

/// A time in the zone of this machine.
pub(crate) fn local(ms: u64, format: &str) -> String {
    i64::try_from(ms)
        .ok()
        .and_then(|ms| Timestamp::from_millisecond(ms).ok())
        .map(|at| at.to_zoned(zone::local()).strftime(format).to_string())
        .unwrap_or_default()
}

/// The state in the words of a run's end; the history and its JSON have names of their own.
pub(crate) fn word(state: RunState) -> String {
    match state {
        RunState::Success => "completed".to_owned(),
        RunState::Error => "failed".to_owned(),
        state => words::one_line(&state.to_string()),
    }
}

fn style(state: RunState) -> anstyle::Style {
    let color = match state {
        RunState::Success => anstyle::AnsiColor::Green,
        RunState::Error | RunState::Interrupted => anstyle::AnsiColor::Red,
        RunState::Aborted => anstyle::AnsiColor::Yellow,
        _ => anstyle::AnsiColor::Cyan,
    };
    anstyle::Style::new().fg_color(Some(color.into()))
}

/// How long it took, or has taken so far, in milliseconds.
fn time(run: &RunRecord, now_ms: u64) -> Option<u64> {
    match run.status {
        RunState::Running => Some(now_ms.saturating_sub(run.started_at)),
        _ => run.duration_ms,
    }
}
