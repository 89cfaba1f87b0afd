//! `.orchestrator/last-error.json`: why a loop could not run, as data for its supervisor.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::folder::{read_json, write_json};

/// The content of the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Refusal {
    /// The loop's process.
    pid: u32,
    message: String,
}

/// Records why the loop of this process cannot run in this directory. The folder of the agent is not made
/// for that.
pub fn record_refusal(working_dir: &Path, message: &str) -> io::Result<()> {
    let refusal = Refusal {
        pid: std::process::id(),
        message: message.to_owned(),
    };
    write_json(&file(working_dir), &refusal)
}

/// Why the loop of this process could not run.
pub(crate) fn refusal(working_dir: &Path, pid: u32) -> Option<String> {
    let refusal: Refusal = read_json(&file(working_dir))?;
    (refusal.pid == pid).then_some(refusal.message)
}

fn file(working_dir: &Path) -> PathBuf {
    working_dir
        .join(crate::ORCHESTRATOR)
        .join("last-error.json")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_that_of_its_process() {
        let dir = tempfile::tempdir().unwrap();
        assert!(record_refusal(dir.path(), "no").is_err());
        std::fs::create_dir(dir.path().join(crate::ORCHESTRATOR)).unwrap();
        let own = std::process::id();
        assert_eq!(refusal(dir.path(), own), None);
        record_refusal(dir.path(), "MIN_SLEEP: no").unwrap();
        assert_eq!(refusal(dir.path(), own).as_deref(), Some("MIN_SLEEP: no"));
        assert_eq!(refusal(dir.path(), own + 1), None);
    }
}
