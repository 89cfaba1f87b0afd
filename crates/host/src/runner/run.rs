//! The work of the runner of a detached run.

use teamster_core::{AgentError, CliInfo, RunResult, Stopping};
use teamster_runner::{DetachedRun, Runs};

use super::{detach, stop_by_signals};
use crate::prepare::PreparedRun;
use crate::recording::Recording;
use crate::signals::Source;
use crate::start::report;
use crate::{Host, output};

/// The end of a runner's work.
pub(super) struct Ended {
    pub(super) result: RunResult,
    /// The recording of this agent, which is completed once no process of the run is left.
    pub(super) recorded: Option<(Recording, &'static CliInfo)>,
}

pub(super) async fn work(
    host: &Host,
    mut prepared: PreparedRun,
    runs: &Runs,
    signals: Source,
) -> Result<Ended, AgentError> {
    let run = prepared.accept(runs)?;
    detach(&run, &mut prepared.common)?;
    prepared.request.closing = prepared.closing(Some(run.folder.path()));
    let PreparedRun {
        common,
        orchestrator,
        request,
        history,
        output,
        recording,
        channel,
        reserved: _reserved,
        ..
    } = prepared;
    let run = DetachedRun::new(run, &orchestrator, request, channel);
    let abort = run.abort_handle();
    stop_by_signals(signals, move |kill| abort.stop(Stopping::kill_if(kill)));
    let finished = run.work().await;
    // First: what follows may take a while.
    output::write(host, output, Some(&finished.result));
    report(host, &finished, history.close().await);
    Ok(Ended {
        result: finished.result,
        recorded: recording.map(|it| (it, common.agent)),
    })
}
