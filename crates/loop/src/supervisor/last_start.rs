//! `.orchestrator/last-start.json`: start time and process id of an agent's loop.
//!
//! Dashboards read it. It also covers loops that another supervisor started.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use teamster_process::ProcessIdentity;

use crate::folder::{read_json, write_json};

/// Maximum difference between the time in the file and the start of the process, in milliseconds. The file is
/// written after the start, and the boot time is known to a second.
pub(super) const TOLERANCE_MS: u64 = 10_000;

/// Content of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LastStart {
    /// Start time, in milliseconds since the Unix epoch.
    pub(crate) epoch_ms: u64,
    pub(crate) pid: u32,
}

impl LastStart {
    pub(crate) fn write(self, working_dir: &Path) -> io::Result<()> {
        write_json(&file(working_dir), &self)
    }

    fn read(working_dir: &Path) -> Option<Self> {
        read_json(&file(working_dir))
    }

    /// Writes the file unless it names this process or another one that runs.
    pub(crate) fn mend(self, working_dir: &Path) -> io::Result<()> {
        match Self::read(working_dir) {
            Some(found) if found.pid == self.pid => Ok(()),
            Some(found)
                if ProcessIdentity::of(found.pid).is_some_and(ProcessIdentity::is_running) =>
            {
                Ok(())
            }
            _ => self.write(working_dir),
        }
    }

    /// Returns the process and start time in this directory's file. `None` unless the process runs, started at
    /// that time, and is in that directory.
    pub(crate) fn running(working_dir: &Path) -> Option<(ProcessIdentity, u64)> {
        let start = Self::read(working_dir)?;
        let process = ProcessIdentity::of(start.pid)?;
        let began = process.started_at_ms()?;
        let there = process.directory()? == fs::canonicalize(working_dir).ok()?;
        (there && began.abs_diff(start.epoch_ms) <= TOLERANCE_MS)
            .then_some((process, start.epoch_ms))
    }
}

fn file(working_dir: &Path) -> PathBuf {
    working_dir
        .join(crate::ORCHESTRATOR)
        .join("last-start.json")
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::process::Command;
    use std::time::{SystemTime, UNIX_EPOCH};

    use super::*;

    #[test]
    fn only_the_process_that_is_meant_is_found() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join(crate::ORCHESTRATOR)).unwrap();
        let mut child = Command::new("sleep")
            .arg("60")
            .current_dir(dir.path())
            .spawn()
            .unwrap();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let start = LastStart {
            epoch_ms: now.as_millis().try_into().unwrap(),
            pid: child.id(),
        };
        assert_eq!(LastStart::running(dir.path()), None);
        start.write(dir.path()).unwrap();
        let text = fs::read_to_string(file(dir.path())).unwrap();
        assert!(text.starts_with("{\n  \"epoch_ms\": "), "{text}");
        let found = LastStart::running(dir.path());
        let identity = ProcessIdentity::of(child.id()).unwrap();
        assert_eq!(found, Some((identity, start.epoch_ms)));

        // The id was reused by another process.
        let earlier = LastStart {
            epoch_ms: start.epoch_ms - 3_600_000,
            ..start
        };
        earlier.write(dir.path()).unwrap();
        assert_eq!(LastStart::running(dir.path()), None);
        // The process is in another directory.
        let other = LastStart {
            pid: std::process::id(),
            ..start
        };
        other.write(dir.path()).unwrap();
        assert_eq!(LastStart::running(dir.path()), None);

        start.write(dir.path()).unwrap();
        other.mend(dir.path()).unwrap();
        assert!(LastStart::running(dir.path()).is_some());
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(LastStart::running(dir.path()), None);
        other.mend(dir.path()).unwrap();
        assert_eq!(LastStart::read(dir.path()), Some(other));
    }
}
