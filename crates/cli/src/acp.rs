//! `teamster acp`, which serves an agent to an editor by the Agent Client Protocol on stdin and stdout.
//!
//! `teamster_acp_server` implements the protocol. A thread of the editor is a session as in `teamster chat --detach`,
//! but its runner is this process. The editor is shown the session's log.

mod catalog;
mod connection;
mod editor_input;
mod open;
mod past;
mod thread;

use std::sync::Arc;

use anyhow::Context;

use crate::args::AcpArgs;
use crate::guard::Guard;
use crate::run::history::{History, OpenHistory, Warnings};
use crate::run::usage;
use crate::spec::{self, Served};
use crate::{detached, exit_code, orphans, store, tokio_runtime};

/// State shared by all threads of the editor.
struct Shared {
    served: Served,
    runs: teamster_runner::Runs,
    history: History,
    open_history: Option<OpenHistory>,
}

/// Serves the editor until it disconnects, and returns the exit code.
pub(crate) fn main(args: AcpArgs) -> anyhow::Result<u8> {
    let prepared = spec::of_acp(args).and_then(|served| {
        catalog::check(&served)?;
        let key = served.session_key.as_deref();
        let history = History::new(served.store(), key, None, Warnings::Off)?;
        Ok((served, history, detached::runs()?))
    });
    let (served, history, runs) = match prepared {
        Ok(prepared) => prepared,
        Err(error) => {
            crate::fail(&usage(error));
            return Ok(exit_code::USAGE);
        }
    };
    let guard = Guard::start(None);
    orphans::adopt();
    let runtime = tokio_runtime().context("cannot start the runtime")?;
    let served = runtime.block_on(async {
        let open_history = history.open_for_session().await;
        let models = catalog::known_models(open_history.as_ref()).await;
        let catalog = catalog::new(&served, &models);
        let shared = Arc::new(Shared {
            served,
            runs,
            history,
            open_history,
        });
        let served = connection::serve(catalog, shared.clone()).await;
        if let Some(open_history) = &shared.open_history {
            shared.history.warn(&open_history.recorder.take_errors());
            store::close(&open_history.store).await;
        }
        served
    });
    // A thread may still be blocked on stdin: do not wait for it.
    runtime.shutdown_background();
    orphans::end(guard.as_ref().map(Guard::pid));
    served
}
