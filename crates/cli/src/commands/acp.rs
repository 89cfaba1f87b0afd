//! `teamster acp`, which serves an agent to an editor by the Agent Client Protocol on stdin and stdout.
//!
//! `teamster_acp_server` implements the protocol. A thread of the editor is a session as in `teamster chat --detach`,
//! but its runner is this process. The editor is shown the session's log.

pub(crate) mod args;
mod catalog;
mod connection;
mod editor_input;
mod open;
mod past;
mod spec;
mod thread;

use std::sync::Arc;

use anyhow::Context;

use teamster_host::{Guard, KeptHistory, state};

use crate::exit_code;
use crate::hints::usage;
use crate::runtime::tokio_runtime;
use args::AcpArgs;
use spec::Served;

/// State shared by all threads of the editor.
struct Shared {
    served: Served,
    runs: teamster_runner::Runs,
    history: Arc<KeptHistory>,
}

/// Serves the editor until it disconnects, and returns the exit code.
pub(crate) fn main(args: AcpArgs) -> anyhow::Result<u8> {
    let runtime = tokio_runtime().context("cannot start the runtime")?;
    let prepared = spec::of_acp(args).and_then(|served| {
        catalog::check(&served)?;
        let key = served.session_key.as_deref();
        let history = runtime.block_on(crate::global::host().history(served.store(), key))?;
        Ok((served, history, state::runs()?))
    });
    let (served, history, runs) = match prepared {
        Ok(prepared) => prepared,
        Err(error) => {
            crate::report::fail(&usage(error));
            return Ok(exit_code::USAGE);
        }
    };
    // The editor may show what is printed: only what is important.
    crate::report::warn_of(&history.take_warnings(), true);
    let guard = Guard::start(crate::global::host(), None);
    teamster_host::adopt_orphans();
    let served = runtime.block_on(async {
        let models = catalog::known_models(history.store()).await;
        let catalog = catalog::new(&served, &models);
        let shared = Arc::new(Shared {
            served,
            runs,
            history: Arc::new(history),
        });
        let served = connection::serve(catalog, shared.clone()).await;
        crate::report::warn_of(&shared.history.close().await, true);
        served
    });
    // A thread may still be blocked on stdin: do not wait for it.
    runtime.shutdown_background();
    teamster_host::end_orphans(guard.as_ref().map(Guard::pid));
    served
}
