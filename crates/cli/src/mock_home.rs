//! Temporary homes of agents that talk to a mock model.

use std::path::PathBuf;

use anyhow::Context;
use tempfile::TempDir;

/// The variable with the server's URL.
pub(crate) const URL_VARIABLE: &str = "TEAMSTER_MOCK_URL";

/// Creates a temporary folder. Returns its guard and its path without symbolic links, because CLIs compare paths.
pub(crate) fn temporary_folder(prefix: &str) -> anyhow::Result<(TempDir, PathBuf)> {
    let made = || {
        let folder = tempfile::Builder::new().prefix(prefix).tempdir()?;
        let path = folder.path().canonicalize()?;
        Ok::<_, std::io::Error>((folder, path))
    };
    made().context("cannot make a temporary folder")
}
