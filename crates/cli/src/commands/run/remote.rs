//! `teamster run --remote` and `--fleet`: starts a run on another machine and shows it.

use anyhow::{Context, anyhow};
use teamster::AbortHandle;
use teamster_api::{ProblemCode, RunHandle, RunLogEntry, RunSpec, ServiceError, ViewState};
use teamster_core::Stopping;
use teamster_host::{Output, write_output};

use super::{final_text, resume};
use crate::branch::{bring_back, not_back};
use crate::detached::{Entries, report_queue};
use crate::drive::{self, Feed};
use crate::exit_code::refused;
use crate::remote::{Machine, prepare_run};
use crate::runtime::tokio_runtime;
use crate::signals::Signals;
use crate::spec::Local;
use crate::start;

/// Starts the run on the server, shows it unless it is detached, and returns the exit code.
pub(crate) fn main(mut spec: RunSpec, local: &Local, machine: &Machine) -> anyhow::Result<u8> {
    let file = prepare_run(&mut spec, local, machine.flag()).map_err(refused)?;
    let output = file.as_deref().map(Output::open).transpose();
    let output = output.map_err(refused)?;
    if local.detach {
        return start::detached(machine, spec, local);
    }
    let runtime = tokio_runtime()?;
    let run = start::start(&runtime, machine, spec.clone().into(), local)?;
    show(&spec, local, &run, output, &runtime)
}

/// Shows a run, and returns the exit code.
fn show(
    spec: &RunSpec,
    local: &Local,
    run: &RunHandle,
    output: Option<Output>,
    runtime: &tokio::runtime::Runtime,
) -> anyhow::Result<u8> {
    let info = crate::global::providers()
        .get(&spec.provider)
        .context("this provider is not built in")?
        .info();
    // It shortens paths only, so the run is shown without it, too.
    let shown = runtime.block_on(run.outline());
    let is_queued = (shown.as_ref()).is_ok_and(|view| view.summary.state == ViewState::Queued);
    let mut view = drive::View::new(info, local.output);
    view.directory = shown.map_or_else(
        |_| spec.working_directory.clone(),
        |view| view.summary.info.directory.clone(),
    );
    view.resume = resume(spec).filter(|_| spec.trusted.container.is_none());
    view.permission = Some(spec.permission);
    view.allowed_tools.clone_from(&spec.allowed_tools);
    let mut sink = drive::sink(local.output, view, final_text(spec, info));
    let shown = runtime.block_on(async {
        if is_queued && !local.output.quiet {
            tokio::spawn(report_queue(run.clone(), true));
        }
        let feed = RemoteLog::new(run.clone());
        let mut signals =
            Signals::stop(feed.abort_handle()).context("cannot listen for signals")?;
        anyhow::Ok(drive::show(feed, &mut *sink, &mut signals).await)
    })?;
    // First: the branch may not come back.
    let written = write_output(crate::global::host(), output, shown.result.as_deref());
    if let Some(directory) = local.upload.as_deref().filter(|_| shown.result.is_some())
        && let Err(error) = runtime.block_on(bring_back(run, directory))
    {
        crate::report::fail(&not_back(error, run.id()));
        return Ok(shown.code_if(false));
    }
    Ok(shown.code_if(written))
}

/// The log of a remote run.
struct RemoteLog {
    entries: Entries,
    abort: AbortHandle,
}

impl RemoteLog {
    fn new(run: RunHandle) -> Self {
        let abort = AbortHandle::default();
        let entries = Entries::new(&run, 0, false);
        tokio::spawn(stop(run, abort.clone()));
        Self { entries, abort }
    }
}

/// Forwards abort and kill requests to the run.
async fn stop(run: RunHandle, abort: AbortHandle) {
    let report = |stopped: Result<(), ServiceError>| {
        if let Err(error) = stopped
            && error.code != Some(ProblemCode::RunEnded)
        {
            crate::report::fail(&anyhow!("the run was not stopped: {error}"));
        }
    };
    abort.aborted().await;
    report(run.cancel(Stopping::Graceful).await);
    abort.killed().await;
    report(run.cancel(Stopping::Kill).await);
}

impl Feed for RemoteLog {
    async fn next(&mut self) -> Option<RunLogEntry> {
        loop {
            let line = match self.entries.next().await {
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
