//! `.orchestrator/last-error.json`: the reason that a loop could not run, for its supervisor.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use teamster_core::AgentError;

use crate::folder::{read_json, write_json};

/// Content of the file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Refusal {
    /// Process id of the loop.
    pid: u32,
    #[serde(flatten)]
    error: AgentError,
}

/// Records why this process cannot run a loop in this directory.
///
/// # Errors
///
/// Fails if the file cannot be written. `.orchestrator` is not created.
pub fn record_refusal(working_dir: &Path, error: &AgentError) -> io::Result<()> {
    let refusal = Refusal {
        pid: std::process::id(),
        error: error.clone(),
    };
    write_json(&file(working_dir), &refusal)
}

/// Returns why the loop with this process id could not run.
pub(crate) fn refusal(working_dir: &Path, pid: u32) -> Option<String> {
    let refusal: Refusal = read_json(&file(working_dir))?;
    (refusal.pid == pid).then_some(refusal.error.message)
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
        let no = || AgentError::refused("MIN_SLEEP", "no");
        let dir = tempfile::tempdir().unwrap();
        assert!(record_refusal(dir.path(), &no()).is_err());
        std::fs::create_dir(dir.path().join(crate::ORCHESTRATOR)).unwrap();
        let own = std::process::id();
        assert_eq!(refusal(dir.path(), own), None);
        record_refusal(dir.path(), &no()).unwrap();
        let json: serde_json::Value = read_json(&file(dir.path())).unwrap();
        assert_eq!(json["code"], "INVALID_PARAMS");
        assert_eq!(json["detail"]["name"], "MIN_SLEEP");
        assert_eq!(refusal(dir.path(), own).as_deref(), Some("MIN_SLEEP: no"));
        assert_eq!(refusal(dir.path(), own + 1), None);
    }
}
