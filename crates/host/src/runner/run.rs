//! The work of the runner of a detached run.

use teamster_core::{AgentError, CliInfo, RunResult};
use teamster_runner::{DetachedRun, Runs};

use super::{detach, stop_by_signals};
use crate::Host;
use crate::output::{self, Output};
use crate::prepare::PreparedRun;
use crate::recording::Recording;
use crate::signals::Source;
use crate::start::report;

/// The end of a runner's work.
pub(super) struct Ended {
    pub(super) result: RunResult,
    pub(super) after: Option<After>,
}

/// What is written once no process of a run is left.
pub(super) struct After {
    agent: &'static CliInfo,
    recording: Option<Recording>,
    output: Option<Output>,
}

impl After {
    pub(super) async fn complete(self, host: &Host, result: &RunResult) {
        if let Some(recording) = self.recording {
            recording.complete(self.agent).await;
        }
        output::write(host, self.output, Some(result));
    }
}

/// Performs the run.
pub(super) async fn work(
    host: &Host,
    mut prepared: PreparedRun,
    runs: &Runs,
    signals: Source,
) -> Result<Ended, AgentError> {
    let run = prepared.accept(runs)?;
    detach(&run, &mut prepared.ground)?;
    let before_done = prepared.ground.before_done();
    let PreparedRun {
        ground,
        orchestrator,
        request,
        history,
        output,
        recording,
        requests,
        request_events,
        reserved: _reserved,
        ..
    } = prepared;
    let run = DetachedRun::new(run, &orchestrator, request, requests, request_events)
        .before_done(before_done);
    let abort = run.abort_handle();
    stop_by_signals(signals, move |kill| {
        if kill {
            abort.kill();
        } else {
            abort.abort();
        }
    });
    let finished = run.work().await;
    report(host, &finished, history.close().await);
    Ok(Ended {
        result: finished.result,
        after: Some(After {
            agent: ground.agent,
            recording,
            output,
        }),
    })
}
