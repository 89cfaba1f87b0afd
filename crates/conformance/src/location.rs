//! A separate folder for a CLI, and the processes in it.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use anyhow::Context;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::{Pid, getpgid};
use teamster_process::{ProcessIdentity, children};

use crate::bench::Bench;

/// A separate folder for a CLI: home, working directory, temporary files.
pub(crate) struct Location {
    folder: tempfile::TempDir,
}

impl Location {
    pub(crate) fn new(bench: &Bench, agent: impl Display, scenario: &str) -> anyhow::Result<Self> {
        let name = format!("{agent}-{scenario}");
        // A CLI that was ended because it was late may have written while its folder was removed.
        match std::fs::remove_dir_all(bench.boxes.join(&name)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
        let folder = tempfile::Builder::new()
            .prefix(&name)
            .rand_bytes(0)
            .tempdir_in(&bench.boxes)?;
        for name in ["home", "ws", "tmp"] {
            std::fs::create_dir(folder.path().join(name))?;
        }
        Ok(Self { folder })
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    /// Returns the working directory of the agent.
    pub(crate) fn directory(&self) -> PathBuf {
        self.folder.path().join("ws")
    }

    /// Returns the folder for recordings of its output.
    pub(crate) fn recordings(&self) -> PathBuf {
        self.folder.path().join("recordings")
    }

    pub(crate) fn temporary(&self) -> PathBuf {
        self.folder.path().join("tmp")
    }
}

/// Returns the command lines of the processes with this home.
pub(crate) fn processes_of(home: &Path) -> Vec<String> {
    ids_of(home).into_iter().map(command_of).collect()
}

pub(crate) fn command_of(pid: u32) -> String {
    let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&words).replace('\0', " ")
}

/// Returns the child processes with this home: those of the CLI itself.
pub(crate) fn main_processes(home: &Path) -> Vec<ProcessIdentity> {
    let children = children();
    ids_of(home)
        .into_iter()
        .filter(|pid| children.contains(pid))
        .filter_map(ProcessIdentity::of)
        .collect()
}

/// Kills the CLI at any point, like the system when it runs out of memory. It kills the whole process group, because
/// some of these programs only start another.
pub(crate) fn kill(home: &Path) -> anyhow::Result<()> {
    let main = main_processes(home).first().map(|it| it.pid());
    let main = main.context("the CLI's process is not there")?;
    let group = getpgid(Some(Pid::from_raw(main.cast_signed())))?;
    killpg(group, Signal::SIGKILL).context("cannot kill the CLI")
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
