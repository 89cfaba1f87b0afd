//! A run whose result a command is about.

use std::path::PathBuf;

use anyhow::anyhow;
use teamster_api::{ProblemCode, RunHandle, ServiceError, ViewState};
use teamster_core::WorkspaceResult;
use teamster_host::workspace_of;
use tempfile::NamedTempFile;

use super::args::RunIdArgs;
use super::history::History;
use crate::remote::Machine;
use crate::{branch, words};
use teamster_api::history::RunState;

/// A run that was found by its id.
pub(super) struct Found {
    pub(super) run: RunHandle,
    /// Working directory of the agent.
    pub(super) directory: Option<PathBuf>,
    /// Result of its workspace; `None` if it had none of its own, and before its end.
    pub(super) workspace: Option<WorkspaceResult>,
    pub(super) has_ended: bool,
}

impl Found {
    /// Finds a run by its id or a unique prefix of it: a detached run or a session, else one of the history.
    pub(super) async fn find(machine: &Machine, args: &RunIdArgs) -> anyhow::Result<Self> {
        let service = machine.runs();
        match RunHandle::find(service.clone(), &args.id).await {
            Ok(run) => {
                let summary = run.outline().await?.summary;
                Ok(Self {
                    run,
                    directory: summary.info.directory.clone(),
                    workspace: summary.workspace.clone(),
                    has_ended: summary.state == ViewState::Ended,
                })
            }
            Err(error) if error.code == Some(ProblemCode::RunNotFound) => {
                let history = History::open_if_any(machine, &args.store).await?;
                let found = history.used_by(async |history| history.find(&args.id).await);
                let found = match found.await {
                    // A run that is in no history, by its whole id.
                    Err(error) => {
                        let workspace = machine.is_here().then(|| workspace_of(&args.id));
                        return Ok(Self {
                            run: RunHandle::new(service, &*args.id),
                            directory: None,
                            workspace: Some(workspace.flatten().ok_or(error)?),
                            has_ended: true,
                        });
                    }
                    Ok(found) => found,
                };
                Ok(Self {
                    run: RunHandle::new(service, &*found.run_id),
                    directory: found.working_directory,
                    workspace: found.workspace,
                    has_ended: found.status != RunState::Running,
                })
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Reads a file of the run into a temporary one, at its beginning; `None` if the run has no such file.
    pub(super) async fn read(&self, name: &str) -> anyhow::Result<Option<NamedTempFile>> {
        match branch::read(&self.run, name).await? {
            Ok(file) => Ok(file),
            // Nothing is kept of an attached run that has changed nothing.
            Err(error)
                if error.code == Some(ProblemCode::RunNotFound)
                    && self.workspace.is_some()
                    && !self.has_changed() =>
            {
                Ok(None)
            }
            Err(error) => Err(self.explained(error)),
        }
    }

    /// Returns the error of a request about the run, with the next step.
    pub(super) fn explained(&self, error: ServiceError) -> anyhow::Error {
        let id = words::one_line(self.run.id());
        let teamster = crate::global::typed();
        match error.code {
            Some(ProblemCode::RunLive) => anyhow!(
                "run {id} has not ended: `{teamster} wait {id}` waits for its end, and `{teamster} runs diff {id}` shows its \
                 changes so far"
            ),
            Some(ProblemCode::NoWorkspace | ProblemCode::RunNotFound)
                if self.workspace.is_none() =>
            {
                anyhow!(
                    "run {id} has no worktree, so its changes are unknown: start runs with --worktree"
                )
            }
            Some(ProblemCode::NoWorkspace | ProblemCode::RunNotFound) if self.has_changed() => {
                let branch = self.workspace.as_ref().and_then(|it| it.branch.as_deref());
                let branch = branch.map_or_else(String::new, |branch| {
                    let branch = words::one_line(branch);
                    format!("; its commits may still be on the branch {branch} of its repository")
                });
                anyhow!(
                    "the changes of run {id} are not kept any more: they were discarded, or removed with the run by \
                     `{teamster} runs forget` or at the age at which logs are removed{branch}"
                )
            }
            _ => error.into(),
        }
    }

    /// Returns whether the run is known to have left changes.
    fn has_changed(&self) -> bool {
        self.workspace.as_ref().is_some_and(|it| {
            it.wip.is_some()
                || it.commits.is_some_and(|count| count > 0)
                || it.files_changed.is_some_and(|count| count > 0)
        })
    }

    /// Checks that the run had a workspace of its own.
    pub(super) fn check_workspace(&self) -> anyhow::Result<()> {
        if self.has_ended && self.workspace.is_none() {
            return Err(self.explained(ServiceError::new(ProblemCode::NoWorkspace, "")));
        }
        Ok(())
    }
}
