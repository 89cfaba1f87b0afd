//! `teamster acp`: an agent for an editor, by the Agent Client Protocol on stdin and stdout.
//!
//! The protocol is `teamster_acp_server`. A thread of the editor is a live session as `teamster chat --detach` has
//! it, whose runner is this process: its log is what the editor is shown.

mod catalog;
mod connection;
mod open;
mod past;
mod thread;

use std::sync::Arc;

use anyhow::Context;

use crate::args::AcpArgs;
use crate::guard::Guard;
use crate::run::history::{History, Kept};
use crate::{detached, exit_code, orphans, store, tokio_runtime};

/// What all threads of the editor share.
struct Shared {
    args: AcpArgs,
    runs: teamster_runner::Runs,
    history: History,
    kept: Option<Kept>,
}

/// Serves the editor until it leaves; the exit code.
pub(crate) fn main(args: AcpArgs) -> anyhow::Result<u8> {
    let prepared = catalog::check(&args).and_then(|()| {
        let history = History::new(&args.store, args.session_key.as_deref(), None, true)?;
        Ok((history, detached::runs()?))
    });
    let (history, runs) = match prepared {
        Ok(prepared) => prepared,
        Err(error) => {
            crate::fail(&error);
            return Ok(exit_code::USAGE);
        }
    };
    let guard = Guard::start(None);
    orphans::adopt();
    let runtime = tokio_runtime().context("cannot start the runtime")?;
    let served = runtime.block_on(async {
        let kept = history.of_session().await;
        let models = catalog::known_models(kept.as_ref()).await;
        let catalog = catalog::new(&args, &models);
        let shared = Arc::new(Shared {
            args,
            runs,
            history,
            kept,
        });
        let served = connection::serve(catalog, shared.clone()).await;
        if let Some(kept) = &shared.kept {
            shared.history.complain(&kept.recorder.take_errors());
            store::close(&kept.store).await;
        }
        served
    });
    // A thread that waits for stdin does not hold up the end.
    runtime.shutdown_background();
    orphans::end(guard.as_ref().map(Guard::pid));
    served
}
