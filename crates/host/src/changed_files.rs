//! Configuration files that killed runs have left changed.

use std::path::{Path, PathBuf};

use serde::Serialize;
use teamster_core::ExecuteParams;
use teamster_mcp_config::lease;
use teamster_process::leasable_files;
use teamster_providers::Providers;

use crate::environment;

/// A configuration file that killed runs have left changed.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ChangedFile {
    /// The path by which the CLI finds the file, which may be a symbolic link.
    pub file: PathBuf,
    /// The servers that the file may contain.
    pub servers: Vec<String>,
}

impl ChangedFile {
    /// Creates a changed file that may contain these servers.
    pub fn new(file: impl Into<PathBuf>, servers: Vec<String>) -> Self {
        Self {
            file: file.into(),
            servers,
        }
    }
}

/// Returns the changed files among those that runs in this directory write their servers to.
pub fn changed_files(providers: &Providers, directory: &Path) -> Vec<ChangedFile> {
    let mut changed = Vec::new();
    let mut seen = Vec::new();
    for file in config_files(providers, directory) {
        let Ok(Some(pending)) = lease::pending(&file) else {
            continue;
        };
        if pending.running == 0 && !seen.contains(&pending.file) {
            seen.push(pending.file);
            changed.push(ChangedFile {
                file,
                servers: pending.servers,
            });
        }
    }
    changed
}

/// Restores the files that [`changed_files`] returns, as far as that is possible.
pub(crate) fn restore(providers: &Providers, directory: &Path) {
    for changed in changed_files(providers, directory) {
        // What cannot be restored stays in `changed_files`.
        let _ = lease::restore(&changed.file);
    }
}

/// Returns the files that a run in this directory may change, and the other configuration files of its CLI: which
/// one a run changes depends on which exist.
pub fn config_files(providers: &Providers, directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut add = |file: PathBuf| {
        if !files.contains(&file) {
            files.push(file);
        }
    };
    let mut params = ExecuteParams::new("x");
    params.working_directory = Some(directory.to_owned());
    for provider in providers.all() {
        let usual = provider.info().config_files.iter();
        usual
            .filter_map(|file| file.path(directory, &environment::variable))
            .for_each(&mut add);
        leasable_files(&*provider, &params)
            .into_iter()
            .for_each(&mut add);
    }
    files
}
