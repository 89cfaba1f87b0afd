//! Files that runs take along.

use hyper::Method;
use serde::{Deserialize, Serialize};
use teamster_api::FileManifest;

use crate::Client;
use crate::call::Call;
use crate::error::ClientError;

#[derive(Serialize, Deserialize)]
struct Commits {
    commits: Vec<String>,
}

#[derive(Deserialize)]
struct MissingParts {
    missing: Vec<u32>,
}

impl Client {
    /// Returns which of these commits the server's machine has, each with its whole history, in the repository with this
    /// first commit.
    pub async fn known_commits(
        &self,
        root: &str,
        offered: Vec<String>,
    ) -> Result<Vec<String>, ClientError> {
        let offered = Commits { commits: offered };
        let call = Call::post(&["repositories", root, "known"], &offered)?;
        let known: Commits = self.http.json(&call).await?;
        Ok(known.commits)
    }

    /// Declares a file that the run with this id will take along, before the run is started. Returns the numbers of the
    /// parts that are missing; none once the file is complete.
    pub async fn offer(&self, id: &str, manifest: &FileManifest) -> Result<Vec<u32>, ClientError> {
        let segments = ["uploads", id, &manifest.name];
        let call = Call::new(Method::PUT, &segments)?.with_body(manifest)?;
        let (missing, _): (MissingParts, _) = self.http.once(&call).await?;
        Ok(missing.missing)
    }

    /// Keeps a part of a file that was [offered](Self::offer), from 0.
    pub async fn write_part(
        &self,
        id: &str,
        name: &str,
        number: u32,
        content: Vec<u8>,
    ) -> Result<(), ClientError> {
        let number = number.to_string();
        let call = Call::new(Method::PUT, &["uploads", id, name, "parts", &number])?;
        self.http.put(&call.with_bytes(content)).await
    }

    /// Removes the files that were [offered](Self::offer) for the run with this id, which will not be started.
    ///
    /// # Errors
    ///
    /// Fails if the run was started, or if the server cannot be reached.
    pub async fn withdraw(&self, id: &str) -> Result<(), ClientError> {
        let call = Call::new(Method::DELETE, &["uploads", id])?;
        self.http.bytes(&call).await.map(drop)
    }
}
