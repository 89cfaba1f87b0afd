//! Runs and sessions that this program has started, and what can be done with them.

use teamster_api::{Answer, Launch, Launched, PendingRequest, RunLogEntry, Spec};
use teamster_core::{AgentError, AgentEvent, RunResult};
use teamster_runner::client::{self, Follow, StartedTurn};
use teamster_runner::{DetachedRun, Finished, RunFolder, RunsError};

use crate::{Answers, Host, Notice, RunOptions, SessionOptions, Warning, state};

impl Host {
    /// Starts a run or session with this id, and returns once it is accepted. It has a folder with its log, and any process
    /// of the user can follow it and answer its agent.
    ///
    /// With a [program](Self::program), it is carried out in a process of its own and outlives this one. Without, it is a
    /// task of this process and ends with it. Needs a Tokio runtime.
    ///
    /// # Errors
    ///
    /// Fails if nothing was started: the description cannot be carried out here, the id is in use, or the system refuses.
    pub async fn start(
        &self,
        id: impl Into<String>,
        spec: impl Into<Spec>,
    ) -> Result<RunHandle, AgentError> {
        let id = id.into();
        let warnings = if self.runner_program().is_some() {
            self.start_process(&Launch::new(&*id, spec)).await?
        } else {
            self.start_task(&id, spec.into()).await?
        };
        let folder = state::runs()?.get(&id).map_err(|error| refused(&error))?;
        let folder = folder.ok_or_else(|| refused(&RunsError::NotFound { id }))?;
        Ok(RunHandle { folder, warnings })
    }

    /// Returns the run or session with this id, or with an id that begins so.
    ///
    /// # Errors
    ///
    /// Fails if there is none, or more than one.
    pub fn find(&self, id: &str) -> Result<RunHandle, AgentError> {
        let folder = state::runs()?.find(id).map_err(|error| refused(&error))?;
        let warnings = Vec::new();
        Ok(RunHandle { folder, warnings })
    }

    async fn start_process(&self, launch: &Launch) -> Result<Vec<Warning>, AgentError> {
        match self.launch(launch).await? {
            Launched::Accepted { warnings, .. } => {
                Ok(warnings.into_iter().map(Warning::new).collect())
            }
            Launched::Refused { error, .. } => Err(error),
            _ => Err(AgentError::invalid_params("the runner has another version")),
        }
    }

    async fn start_task(&self, id: &str, spec: Spec) -> Result<Vec<Warning>, AgentError> {
        let runs = state::runs()?;
        let host = self.clone();
        match spec {
            Spec::Run(spec) => {
                let options = RunOptions::new(id).detached();
                let mut prepared = self.prepare_run(*spec, options).await?;
                let run = prepared.accept(&runs)?;
                let warnings = std::mem::take(&mut prepared.ground.warnings);
                tokio::spawn(async move {
                    // Until the run has taken its session over.
                    let _reserved = prepared.reserved.take();
                    let before_done = prepared.ground.before_done();
                    let work = DetachedRun::new(
                        run,
                        &prepared.orchestrator,
                        prepared.request,
                        prepared.requests,
                        prepared.request_events,
                    );
                    let finished = work.before_done(before_done).work().await;
                    report(&host, &finished, prepared.history.close().await);
                    if let Some(recording) = prepared.recording {
                        recording.complete(prepared.ground.agent).await;
                    }
                    crate::write_output(&host, prepared.output, Some(&finished.result));
                });
                Ok(warnings)
            }
            Spec::Session(spec) => {
                let mut options = SessionOptions::new(id, Answers::clients(true));
                options.is_detached = true;
                let mut prepared = self.prepare_session(*spec, options).await?;
                let run = prepared.accept(&runs)?;
                let warnings = std::mem::take(&mut prepared.ground.warnings);
                let history = prepared.history.clone();
                let session = prepared.detached(run, None);
                tokio::spawn(async move {
                    let finished = session.work().await;
                    report(&host, &finished, history.close().await);
                });
                Ok(warnings)
            }
        }
    }
}

/// Reports an incomplete log and the warnings of an ended history.
pub(crate) fn report(host: &Host, finished: &Finished, warnings: Vec<Warning>) {
    if let Err(error) = &finished.log {
        let error = format!("the log of this run is not complete: {error}");
        host.notice(Notice::Error(error));
    }
    for warning in warnings {
        host.notice(Notice::Warning(warning.text));
    }
}

fn refused(error: &RunsError) -> AgentError {
    AgentError::invalid_params(error.to_string())
}

/// A run or session with a folder of its own, of this process or another one. Dropping it changes nothing.
#[derive(Debug, Clone)]
pub struct RunHandle {
    folder: RunFolder,
    warnings: Vec<Warning>,
}

impl RunHandle {
    /// Returns the id.
    pub fn id(&self) -> &str {
        self.folder.id()
    }

    /// Returns the folder.
    pub fn folder(&self) -> &RunFolder {
        &self.folder
    }

    /// Returns the warnings of its start, such as of parameters without effect.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// Follows the log after the entry with this number; 0 is the beginning.
    ///
    /// # Errors
    ///
    /// Fails if the log cannot be opened.
    pub fn follow(&self, after: u64) -> Result<Follow, RunsError> {
        Follow::new(self.folder.clone(), after)
    }

    /// Returns the pending requests of the agent. Returns none after the end.
    ///
    /// # Errors
    ///
    /// Fails if the runner does not answer.
    pub async fn requests(&self) -> Result<Vec<PendingRequest>, RunsError> {
        client::requests(&self.folder).await
    }

    /// Answers a request of the agent. The first answer counts.
    ///
    /// # Errors
    ///
    /// Refused with a code if there is no such request any more, or if the answer does not fit.
    pub async fn answer(&self, request_id: &str, answer: Answer) -> Result<(), RunsError> {
        client::answer(&self.folder, request_id, answer).await
    }

    /// Sends a prompt to a session, which begins a turn.
    ///
    /// # Errors
    ///
    /// Refused while a turn is in progress, and by a run that is no session.
    pub async fn say(&self, prompt: impl Into<String>) -> Result<StartedTurn, RunsError> {
        client::send(&self.folder, prompt, None).await
    }

    /// Stops the run or session, so that its agent can clean up.
    ///
    /// # Errors
    ///
    /// Fails if it has ended, or if its runner does not answer.
    pub async fn cancel(&self) -> Result<(), RunsError> {
        client::cancel(&self.folder, false).await
    }

    /// Waits for the end and returns the result.
    ///
    /// # Errors
    ///
    /// Fails if the log cannot be read, or has no end.
    pub async fn result(&self) -> Result<RunResult, RunsError> {
        let end = Follow::end(self.folder.clone()).await?;
        let entry = end.and_then(|line| line.entry().ok());
        match entry {
            Some(RunLogEntry::Agent(entry)) => match entry.event {
                AgentEvent::Done(done) => Ok(*done.result),
                _ => Err(self.without_end()),
            },
            _ => Err(self.without_end()),
        }
    }

    fn without_end(&self) -> RunsError {
        RunsError::Ended {
            id: self.id().to_owned(),
        }
    }
}
