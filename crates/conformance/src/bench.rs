//! The CLIs that are played with, and how they are started at all.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use teamster_mock_model::Cli;

/// The variable that holds the folder of Copilot's unpacked program.
pub(crate) const COPILOT_PACKAGES: &str = "COPILOT_PKG_CACHE_HOME";

/// Locations of the CLIs, and their needs on this machine.
#[derive(Debug, Clone)]
pub(crate) struct Bench {
    /// The folder with the CLIs' programs.
    pub(crate) programs: PathBuf,
    /// Where boxes are made.
    pub(crate) boxes: PathBuf,
    /// Where raw output is recorded, if it is.
    pub(crate) record: Option<PathBuf>,
}

impl Bench {
    /// Where Copilot's program is, unpacked: for all runs.
    pub(crate) fn copilot_packages(&self) -> PathBuf {
        self.boxes.join("copilot-packages")
    }

    /// Where agents are searched that are named by a command: first among those that were installed.
    pub(crate) fn search_path(&self) -> anyhow::Result<String> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::iter::once(self.programs.clone()).chain(std::env::split_paths(&path));
        let path = std::env::join_paths(folders)?;
        Ok(path.to_string_lossy().into_owned())
    }

    /// Does the one-time setup of a CLI before its first run.
    ///
    /// Copilot unpacks its program (235 MB) where it does not find it, and reports it if that takes long.
    pub(crate) fn prepare(&self, cli: Cli) {
        if cli == Cli::Copilot {
            // If this fails, the runs do it themselves, or say why they cannot.
            let _ = self.starts(cli);
        }
    }

    /// Fails where a CLI does not even say its version.
    pub(crate) fn starts(&self, cli: Cli) -> anyhow::Result<()> {
        let output = Command::new(self.programs.join(cli.id()))
            .arg("--version")
            .env("PATH", self.search_path()?)
            .env("HOME", &self.boxes)
            .env(COPILOT_PACKAGES, self.copilot_packages())
            .stdin(Stdio::null())
            .output()
            .with_context(|| format!("{cli} cannot be started"))?;
        if !output.status.success() {
            let printed = [output.stderr, output.stdout].concat();
            let text = String::from_utf8_lossy(&printed);
            bail!(
                "{cli} cannot be started ({}): {}",
                output.status,
                text.trim()
            );
        }
        Ok(())
    }
}
