//! Temporary homes of agents that talk to a mock model, and these agents.

use std::path::PathBuf;

use anyhow::Context;
use teamster::CliInfo;
use teamster_mock_model::Cli;
use tempfile::TempDir;

/// Creates a temporary folder. Returns its guard and its path without symbolic links, because CLIs compare paths.
pub(crate) fn temporary_folder(prefix: &str) -> anyhow::Result<(TempDir, PathBuf)> {
    let made = || {
        let folder = tempfile::Builder::new().prefix(prefix).tempdir()?;
        let path = folder.path().canonicalize()?;
        Ok::<_, std::io::Error>((folder, path))
    };
    made().context("cannot make a temporary folder")
}

/// Returns the provider's information about a CLI.
pub(crate) fn info(cli: Cli) -> Option<&'static CliInfo> {
    crate::global::providers()
        .get(cli.id())
        .map(|provider| provider.info())
}

/// Returns `true` if the CLI's program is installed.
pub(crate) fn installed(cli: Cli) -> bool {
    info(cli).is_some_and(|info| teamster_host::find_program(crate::global::host(), info).is_ok())
}
