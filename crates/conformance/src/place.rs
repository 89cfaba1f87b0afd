//! A separate folder for a CLI, and the processes in it.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use crate::bench::Bench;

/// A separate folder for a CLI: home, working directory, temporary files.
pub(crate) struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    pub(crate) fn new(bench: &Bench, agent: impl Display, scenario: &str) -> anyhow::Result<Self> {
        let folder = tempfile::Builder::new()
            .prefix(&format!("{agent}-{scenario}"))
            .rand_bytes(0)
            .tempdir_in(&bench.boxes)?;
        for name in ["home", "ws", "tmp"] {
            std::fs::create_dir(folder.path().join(name))?;
        }
        Ok(Self { folder })
    }

    /// Returns the home folder.
    pub(crate) fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    /// Returns the working directory of the agent.
    pub(crate) fn directory(&self) -> PathBuf {
        self.folder.path().join("ws")
    }

    pub(crate) fn temporary(&self) -> PathBuf {
        self.folder.path().join("tmp")
    }
}

/// Returns the command lines of the processes with this home.
pub(crate) fn processes_of(home: &Path) -> Vec<String> {
    ids_of(home).into_iter().map(command_of).collect()
}

/// Returns the command line of a process.
pub(crate) fn command_of(pid: u32) -> String {
    let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&words).replace('\0', " ")
}

/// Returns the processes with this home.
pub(crate) fn ids_of(home: &Path) -> Vec<u32> {
    let mark = format!("HOME={}", home.display());
    let Ok(processes) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    processes
        .flatten()
        .filter(|process| {
            let environment = std::fs::read(process.path().join("environ")).unwrap_or_default();
            environment
                .split(|byte| *byte == 0)
                .any(|variable| variable == mark.as_bytes())
        })
        .filter_map(|process| process.file_name().to_str()?.parse().ok())
        .collect()
}
