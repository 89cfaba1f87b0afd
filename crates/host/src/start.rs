//! Start of runs and sessions that have folders: in processes of their own, or as tasks of this one.

use std::sync::Arc;

use teamster_api::{Accepted, Launch, Launched, RunHandle, ServiceError, Spec};
use teamster_core::AgentError;
use teamster_core::time::{epoch_ms, millis};
use teamster_runner::{DetachedRun, Finished, Pruned, Retention, Runs};

use crate::service::prune_results;
use crate::{
    Answers, Host, LocalRuns, Notice, RunOptions, SessionRunOptions, Warning, error_chain, state,
};

impl Host {
    /// Starts a run or session with this id, which the caller makes, and returns once it is accepted. It has a folder with
    /// its log, and any process of the user can follow it and answer its agent. Needs a Tokio runtime.
    ///
    /// With a [program](Self::program), it is carried out in a process of its own and outlives this one. Without, it is a
    /// task of this process and ends with it: the runtime MUST live on for some seconds after the result, in which the task
    /// writes `output_file` and the history, and removes old logs. [`LocalRuns`] finds and lists runs.
    ///
    /// # Errors
    ///
    /// Fails as [`RunService::start`](teamster_api::RunService::start) does.
    pub async fn start(
        &self,
        id: impl Into<String>,
        spec: impl Into<Spec>,
    ) -> Result<RunHandle, ServiceError> {
        RunHandle::start(Arc::new(LocalRuns::new(self)?), id, spec).await
    }

    /// Starts a run or session, and returns once it is accepted: in a process of its own if there is a program, else as
    /// a task of this process.
    pub(crate) async fn carry_out(&self, id: &str, spec: Spec) -> Result<Accepted, AgentError> {
        if self.runner_program().is_some() {
            self.start_process(&Launch::new(id, spec)).await
        } else {
            self.start_task(id, spec).await
        }
    }

    async fn start_process(&self, launch: &Launch) -> Result<Accepted, AgentError> {
        match self.launch(launch).await? {
            Launched::Accepted {
                warnings,
                important,
                ..
            } => Ok(Accepted::with_important(important, warnings)),
            Launched::Refused { error, .. } => Err(error),
            _ => Err(AgentError::invalid_params("the runner has another version")),
        }
    }

    async fn start_task(&self, id: &str, spec: Spec) -> Result<Accepted, AgentError> {
        let runs = state::runs()?;
        let retention = state::retention()?;
        let host = self.clone();
        match spec {
            Spec::Run(spec) => {
                let options = RunOptions::new(id).detached();
                let mut prepared = self.prepare_run(*spec, options).await?;
                let run = prepared.accept(&runs)?;
                let (important, others) = prepared.common.take_warnings();
                tokio::spawn(async move {
                    // Until the run has taken its session over.
                    let _reserved = prepared.reserved.take();
                    let closing = prepared.closing(Some(run.folder.path()));
                    prepared.request.closing = closing;
                    let work = DetachedRun::new(
                        run,
                        &prepared.orchestrator,
                        prepared.request,
                        prepared.channel,
                    );
                    let finished = work.work().await;
                    // First: what follows may take a while.
                    crate::write_output(&host, prepared.output, Some(&finished.result));
                    report(&host, &finished, prepared.history.close().await);
                    if let Some(recording) = prepared.recording {
                        recording.complete(prepared.common.agent).await;
                    }
                    prune_apart(host, runs, retention).await;
                });
                Ok(Accepted::with_important(important, others))
            }
            Spec::Session(spec) => {
                let mut options = SessionRunOptions::new(id, Answers::RequiredClients);
                options.is_detached = true;
                let mut prepared = self.prepare_session(*spec, options).await?;
                let run = prepared.accept(&runs)?;
                let (important, others) = prepared.common.take_warnings();
                let history = prepared.history.clone();
                let session = prepared.detached(run, None);
                tokio::spawn(async move {
                    let finished = session.work().await;
                    report(&host, &finished, history.close().await);
                    prune_apart(host, runs, retention).await;
                });
                Ok(Accepted::with_important(important, others))
            }
        }
    }
}

/// Reports an incomplete log and the warnings of an ended history.
pub(crate) fn report(host: &Host, finished: &Finished, warnings: Vec<Warning>) {
    report_log(host, finished);
    for warning in warnings {
        host.notice(Notice::Warning(warning.text));
    }
}

/// Reports an incomplete log.
pub(crate) fn report_log(host: &Host, finished: &Finished) {
    if let Err(error) = &finished.log {
        let error = format!("the log of this run is not complete: {error}");
        host.notice(Notice::Error(error));
    }
}

/// Removes the logs of ended runs beyond the retention, and what runs of that age have left in the folders of this machine.
pub(crate) fn prune(host: &Host, runs: &Runs, retention: &Retention) {
    let pruned = runs.prune(retention).unwrap_or_else(|error| {
        let error = anyhow::Error::from(error).context("old logs could not be removed");
        host.notice(Notice::Error(error_chain(&error)));
        Pruned::default()
    });
    let before = retention
        .age
        .map(|age| epoch_ms().saturating_sub(millis(age)));
    prune_results(runs, &pruned.outdated, before);
}

async fn prune_apart(host: Host, runs: Runs, retention: Retention) {
    // It fails only if the runtime ends: the next run prunes.
    let _ = tokio::task::spawn_blocking(move || prune(&host, &runs, &retention)).await;
}
