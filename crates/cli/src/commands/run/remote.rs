//! `teamster run --remote`: starts a run on a server and shows it.

use std::io::{self, Write};

use anyhow::{Context, anyhow};
use teamster::AbortHandle;
use teamster_api::{RunLogEntry, RunSpec};
use teamster_client::Client;
use teamster_core::time::epoch_ms;
use teamster_host::{Output, write_output};
use teamster_runner::RunsError;

use super::{final_text, resume_arguments};
use crate::drive::{self, Feed};
use crate::exit_code;
use crate::remote::{RemoteFollow, RemoteRun, idempotency_key, is_usage, prepare_run};
use crate::runtime::tokio_runtime;
use crate::signals::Signals;
use crate::spec::Local;

/// Starts the run on the server, shows it unless it is detached, and returns the exit code. The outer error is a usage
/// error.
pub(crate) fn main(
    mut spec: RunSpec,
    local: &Local,
    client: &Client,
) -> anyhow::Result<anyhow::Result<u8>> {
    let file = prepare_run(&mut spec, local)?;
    let output = file.as_deref().map(Output::open).transpose()?;
    let runtime = tokio_runtime().context("cannot start the runtime")?;
    let begun = runtime.block_on(client.start(&spec, &idempotency_key()));
    let view = match begun {
        Err(error) if is_usage(&error) => return Err(error.into()),
        Err(error) => return Ok(Err(error.into())),
        Ok(view) => view,
    };
    let run = RemoteRun {
        client: client.clone(),
        info: view.summary.info.clone(),
    };
    if local.detach {
        let id = &run.info.run_id;
        return Ok(exit_code::of_printed(writeln!(io::stdout(), "{id}")));
    }
    Ok(show(&spec, local, run, output, &runtime))
}

/// Shows a run, and returns the exit code.
fn show(
    spec: &RunSpec,
    local: &Local,
    run: RemoteRun,
    output: Option<Output>,
    runtime: &tokio::runtime::Runtime,
) -> anyhow::Result<u8> {
    let info = crate::global::providers()
        .get(&spec.provider)
        .context("this provider is not built in")?
        .info();
    let view = drive::View {
        agent: info,
        verbose: local.output.verbose,
        quiet: local.output.quiet,
        directory: run.info.directory.clone(),
        resume: Some(resume_arguments(spec)),
        worktree: None,
        permission: Some(spec.permission),
        asks: false,
        mcp: None,
        clock: epoch_ms,
    };
    let mut sink = drive::sink(local.output, view, final_text(spec, info));
    let shown = runtime.block_on(async {
        let feed = RemoteLog::new(run);
        let mut signals =
            Signals::stop(feed.abort_handle()).context("cannot listen for signals")?;
        anyhow::Ok(drive::show(feed, &mut *sink, &mut signals).await)
    })?;
    if write_output(crate::global::host(), output, shown.result.as_deref()) {
        Ok(shown.code)
    } else {
        Ok(shown.code.max(exit_code::AGENT_ERROR))
    }
}

/// The log of a remote run.
struct RemoteLog {
    follow: RemoteFollow,
    abort: AbortHandle,
}

impl RemoteLog {
    fn new(run: RemoteRun) -> Self {
        let abort = AbortHandle::default();
        let follow = run.follow(0);
        tokio::spawn(stop(run, abort.clone()));
        Self { follow, abort }
    }
}

/// Forwards abort and kill requests to the run.
async fn stop(run: RemoteRun, abort: AbortHandle) {
    let report = |stopped: Result<(), RunsError>| {
        if let Err(error) = stopped
            && !matches!(error, RunsError::Ended { .. })
        {
            crate::report::fail(&anyhow!("the run was not stopped: {error}"));
        }
    };
    abort.aborted().await;
    report(run.cancel(false).await);
    abort.killed().await;
    report(run.cancel(true).await);
}

impl Feed for RemoteLog {
    async fn next(&mut self) -> Option<RunLogEntry> {
        loop {
            let line = match self.follow.next().await {
                Ok(line) => line?,
                Err(error) => {
                    crate::report::fail(&error.into());
                    return None;
                }
            };
            // An entry that only a newer version can read is left out.
            if let Ok(entry) = line.entry() {
                return Some(entry);
            }
        }
    }

    fn abort_handle(&self) -> AbortHandle {
        self.abort.clone()
    }
}
