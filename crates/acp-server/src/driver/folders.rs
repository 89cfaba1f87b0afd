//! Folders of the editor that go along to the machine of the service.

use std::path::Path;

use teamster_api::{RunHandle, ServiceError, Workspace};

/// Takes folders of the editor to the machine of the service, and brings back what was changed.
///
/// [`EditorServer`](crate::EditorServer) knows no repositories: the program around it gives it this.
#[async_trait::async_trait]
pub trait FolderTransfer: Send + Sync {
    /// Checks that a folder can go along. Sends nothing.
    ///
    /// # Errors
    ///
    /// Fails with the reason and the next step.
    async fn check(&self, folder: &Path) -> Result<(), ServiceError>;

    /// Sends a folder for the session with this id, which is opened next. Dropping the future stops that; another call
    /// continues it.
    ///
    /// # Errors
    ///
    /// Fails if the folder cannot go along, or if the service refuses it.
    async fn send(&self, id: &str, folder: &Path) -> Result<SentFolder, ServiceError>;

    /// Withdraws what was sent for a session that will not be opened. What cannot be withdrawn is left.
    async fn give_up(&self, id: &str) -> Result<(), ServiceError>;

    /// Brings back what a session that has ended has left, and reports it to the user of this machine too, whose editor may
    /// be gone. Returns the report; `None` if there is nothing to bring back.
    ///
    /// # Errors
    ///
    /// Fails with the reason and the next step. Nothing is lost: the service still has it.
    async fn bring_back(
        &self,
        session: &RunHandle,
        folder: &Path,
    ) -> Result<Option<String>, ServiceError>;
}

/// A folder that was sent.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SentFolder {
    /// The agent's working directory.
    pub workspace: Workspace,
    /// Warnings, such as of what was left out.
    pub warnings: Vec<String>,
}

impl SentFolder {
    /// Creates the description of a folder that was sent.
    pub fn new(workspace: Workspace, warnings: Vec<String>) -> Self {
        Self {
            workspace,
            warnings,
        }
    }
}
