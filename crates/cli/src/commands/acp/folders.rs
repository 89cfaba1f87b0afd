//! `--repo`: the editor's folder as a repository that is submitted to another machine.

use std::path::{Path, PathBuf};

use teamster_acp_server::{FolderTransfer, SentFolder};
use teamster_api::{ProblemCode, RunHandle, ServiceError, Workspace};
use teamster_core::AgentError;
use teamster_workspace::{Source, submit};
use tokio::task::spawn_blocking;

use crate::branch::{bring_back, not_back};
use crate::remote::Machine;
use crate::report;

/// The repositories of the editor's folders.
pub(super) struct Repositories {
    machine: Machine,
    /// The directory of `--repo`, which is one in the editor's folder unless it is absolute.
    directory: PathBuf,
}

impl Repositories {
    pub(super) fn new(machine: &Machine, directory: &Path) -> Self {
        Self {
            machine: machine.clone(),
            directory: directory.to_owned(),
        }
    }

    fn of(&self, folder: &Path) -> PathBuf {
        // Without `.`, for messages.
        folder.join(&self.directory).components().collect()
    }
}

#[async_trait::async_trait]
impl FolderTransfer for Repositories {
    async fn check(&self, folder: &Path) -> Result<(), ServiceError> {
        let directory = self.of(folder);
        let found = spawn_blocking(move || Source::find(&directory).map(drop)).await;
        found
                .unwrap_or_else(|error| Err(error.into()))
                .map_err(|error| {
                    let problem = format!(
                        "--repo: {error:#}; open a folder of a git repository, or omit --repo for a folder of the \
                         other machine"
                    );
                    AgentError::refused("workspace", problem).into()
                })
    }

    async fn send(&self, id: &str, folder: &Path) -> Result<SentFolder, ServiceError> {
        let directory = self.of(folder);
        let mut sent = submit(&self.machine.runs(), id, &directory, &|_| {}).await?;
        if let Workspace::Upload {
            submitted_from,
            stays,
            ..
        } = &mut sent.workspace
        {
            *submitted_from = folder.to_str().map(str::to_owned);
            *stays = true;
        }
        Ok(SentFolder::new(sent.workspace, sent.warnings))
    }

    async fn give_up(&self, id: &str) -> Result<(), ServiceError> {
        self.machine.runs().withdraw(id).await
    }

    async fn bring_back(
        &self,
        session: &RunHandle,
        folder: &Path,
    ) -> Result<Option<String>, ServiceError> {
        bring_back(session, &self.of(folder))
            .await
            .map_err(|error| {
                let error = not_back(error, session.id());
                let message = format!("{error:#}");
                report::fail(&error);
                ServiceError::new(ProblemCode::Internal, message)
            })
    }
}
