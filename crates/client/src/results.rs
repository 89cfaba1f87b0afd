//! Results of runs: changes of their workspaces, and files.

use serde::Serialize;
use serde_json::json;
use teamster_api::{
    AppliedChanges, DiffQuery, DiscardedChanges, FileList, FileManifest, WorkspaceDiff,
};

use crate::Client;
use crate::call::{Call, Media};
use crate::error::ClientError;

/// The query of a diff over HTTP.
#[derive(Serialize)]
struct Selection<'a> {
    path: &'a [String],
    stat: bool,
}

/// Request for a part of a file.
#[derive(Default, Serialize)]
struct Wanted {
    part: Option<u32>,
    manifest: bool,
}

impl Client {
    /// Returns the changes of the workspace of a run or session: so far while it is live, then those that it has left.
    ///
    /// # Errors
    ///
    /// Fails if the run has no workspace of its own, or if the server cannot be reached.
    pub async fn diff(&self, id: &str, query: &DiffQuery) -> Result<WorkspaceDiff, ClientError> {
        let selection = Selection {
            path: &query.paths,
            stat: query.stat,
        };
        let call = Call::get(&["runs", id, "diff"])?.with_query(&selection)?;
        self.http.json(&call).await
    }

    /// Applies the changes that an ended run or session has left to the files of its repository, on the server's machine:
    /// all of them, or nothing.
    ///
    /// # Errors
    ///
    /// Fails with the code `CHANGES_CONFLICT` if they do not fit, if the run has left nothing there, or if the server cannot
    /// be reached.
    pub async fn apply(&self, id: &str) -> Result<AppliedChanges, ClientError> {
        let call = Call::post(&["runs", id, "apply"], &json!({}))?;
        self.http.json(&call).await
    }

    /// Discards the changes that an ended run or session has left, with its worktree and its branch, for good.
    ///
    /// # Errors
    ///
    /// Fails with the code `CHANGES_CONFLICT` if the worktree was changed since the end of the run, if the run has left
    /// nothing, or if the server cannot be reached.
    pub async fn discard(&self, id: &str) -> Result<DiscardedChanges, ClientError> {
        let call = Call::post(&["runs", id, "discard"], &json!({}))?;
        self.http.json(&call).await
    }

    /// Returns the files that an ended run or session brings back.
    ///
    /// # Errors
    ///
    /// Fails if it has not ended, or if the server cannot be reached.
    pub async fn files(&self, id: &str) -> Result<FileList, ClientError> {
        self.http.json(&Call::get(&["runs", id, "files"])?).await
    }

    /// Returns the size and the hashes of a file, by its name in the [list](Self::files).
    ///
    /// # Errors
    ///
    /// Fails if the run has no such file, or if the server cannot be reached for too long.
    pub async fn manifest(&self, id: &str, name: &str) -> Result<FileManifest, ClientError> {
        let wanted = Wanted {
            manifest: true,
            ..Wanted::default()
        };
        let call = file(id, name)?.with_query(&wanted)?;
        let body = self.http.patiently_read(&call).await?;
        self.http.read(&body)
    }

    /// Returns a part of a file, from 0, which [`FileManifest::check_part`] checks.
    ///
    /// # Errors
    ///
    /// Fails if the run has no such file or part, or if the server cannot be reached for too long.
    pub async fn read_part(
        &self,
        id: &str,
        name: &str,
        number: u32,
    ) -> Result<Vec<u8>, ClientError> {
        let wanted = Wanted {
            part: Some(number),
            ..Wanted::default()
        };
        let call = file(id, name)?
            .with_query(&wanted)?
            .with_media(Media::Bytes);
        Ok(self.http.patiently_read(&call).await?.into())
    }
}

/// Returns the request for a file, whose name has slashes.
fn file(id: &str, name: &str) -> Result<Call, ClientError> {
    let mut segments = vec!["runs", id, "files"];
    segments.extend(name.split('/'));
    Call::get(&segments)
}
