//! The CLIs under test, and their one-time setup.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use teamster_mock_model::Cli;

/// Variable with the folder of Copilot's unpacked program.
pub(crate) const COPILOT_PACKAGES: &str = "COPILOT_PKG_CACHE_HOME";

/// Locations of the CLIs and of their working data on this machine.
#[derive(Debug, Clone)]
pub(crate) struct Bench {
    /// The folder with the CLIs' programs.
    pub(crate) programs: PathBuf,
    /// Folder for the homes of runs.
    pub(crate) boxes: PathBuf,
    /// Folder for recordings of raw output, if requested.
    pub(crate) record: Option<PathBuf>,
}

impl Bench {
    /// Returns the folder of Copilot's unpacked program, which all runs share.
    pub(crate) fn copilot_packages(&self) -> PathBuf {
        self.boxes.join("copilot-packages")
    }

    /// Returns the search path for agents that are named by a command: installed ones first.
    pub(crate) fn search_path(&self) -> anyhow::Result<String> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::iter::once(self.programs.clone()).chain(std::env::split_paths(&path));
        let path = std::env::join_paths(folders)?;
        Ok(path.to_string_lossy().into_owned())
    }

    /// Performs the one-time setup of a CLI before its first run.
    ///
    /// Copilot unpacks its program (235 MB) if it is missing, and reports it if that takes long.
    pub(crate) fn prepare(&self, cli: Cli) {
        if cli == Cli::Copilot {
            // If this fails, the runs do it themselves or report the error.
            let _ = self.starts(cli.id());
        }
    }

    /// Checks that a program can print its version.
    pub(crate) fn starts(&self, program: &str) -> anyhow::Result<()> {
        let output = Command::new(self.programs.join(program))
            .arg("--version")
            .env("PATH", self.search_path()?)
            .env("HOME", &self.boxes)
            .env(COPILOT_PACKAGES, self.copilot_packages())
            .stdin(Stdio::null())
            .output()
            .with_context(|| format!("{program} cannot be started"))?;
        if !output.status.success() {
            let printed = [output.stderr, output.stdout].concat();
            let text = String::from_utf8_lossy(&printed);
            bail!(
                "{program} cannot be started ({}): {}",
                output.status,
                text.trim()
            );
        }
        Ok(())
    }
}
