//! The files of this machine's server.

use std::path::PathBuf;

use anyhow::Context;
use teamster_host::state;

/// The folder of the server's files in the state directory.
const FOLDER: &str = "teamster/server";

/// The file of the owner's token in the server's folder.
pub(crate) const TOKEN: &str = "token";

/// Returns the folder of the server's files.
pub(crate) fn folder() -> anyhow::Result<PathBuf> {
    state::file(FOLDER)
        .context("no directory for the tokens: set XDG_STATE_HOME or HOME to an absolute path")
}
