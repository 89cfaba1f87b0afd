//! Changes of a configuration file for the time of a run.

use std::path::{Path, PathBuf};

use teamster_core::{AgentError, ConfigEdit, ErrorCode, ErrorKind};

use disk::Disk;
use folder::Stop;
use protocol::Held;

mod content;
#[doc(hidden)]
pub mod disk;
mod folder;
mod journal;
mod paths;
mod protocol;

/// Why a file could not be leased or restored. Nothing was damaged: what is left to do is said.
#[derive(Debug, thiserror::Error)]
#[error("{file}: {what}", file = file.display())]
pub struct LeaseError {
    /// The file.
    pub file: PathBuf,
    /// What is wrong, with the next step.
    pub what: String,
}

impl LeaseError {
    fn new(file: &Path, stop: Stop) -> Self {
        let what = match stop {
            Stop::Failed(what) => what,
            Stop::Again => "it keeps changing; try again later".to_owned(),
        };
        Self {
            file: file.to_owned(),
            what,
        }
    }
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
pub struct Lease {
    /// The path that was asked for.
    asked: PathBuf,
    /// Nothing after the release.
    held: Option<Held>,
}

impl Lease {
    /// Puts the entries into the file. First undoes what a run that was killed has left there.
    ///
    /// Waits for others who change the file at this moment, for at most 10 s. Blocks on the disk.
    /// If it fails, the file and its folder are what they were.
    pub fn acquire(edit: &ConfigEdit) -> Result<Self, LeaseError> {
        Self::acquire_on(&Disk::default(), edit)
    }

    #[doc(hidden)]
    pub fn acquire_on(disk: &Disk, edit: &ConfigEdit) -> Result<Self, LeaseError> {
        let asked = &edit.table.file;
        let held = protocol::acquire(disk, &real_file(asked)?, edit)
            .map_err(|stop| LeaseError::new(asked, stop))?;
        Ok(Self {
            asked: asked.clone(),
            held: Some(held),
        })
    }

    /// The file that was changed: the one behind all symbolic links.
    pub fn file(&self) -> &Path {
        self.held.as_ref().map_or(&self.asked, |held| &held.file)
    }

    /// Takes the entries out again.
    ///
    /// If it fails, the entries are still in the file. The next lease on it takes them out, or
    /// [`restore`] does.
    pub fn release(mut self) -> Result<Released, LeaseError> {
        let Some(held) = self.held.take() else {
            return Ok(Released::Nothing);
        };
        held.release().map_err(|stop| {
            let error = LeaseError::new(&self.asked, stop);
            LeaseError {
                what: format!(
                    "{}; after that, `teamster mcp restore {}` takes this run's servers out of it",
                    error.what,
                    self.asked.display()
                ),
                ..error
            }
        })
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some(held) = self.held.take() {
            // Nobody is there to be told. What is left is undone by the next lease.
            let _ = held.release();
        }
    }
}

/// Finishes the undo of what killed runs have left in this file. Runs that are alive keep theirs.
pub fn restore(file: &Path) -> Result<Released, LeaseError> {
    restore_on(&Disk::default(), file)
}

#[doc(hidden)]
pub fn restore_on(disk: &Disk, file: &Path) -> Result<Released, LeaseError> {
    protocol::restore(disk, &real_file(file)?).map_err(|stop| LeaseError::new(file, stop))
}

/// Leases on a file, of runs that are alive or were killed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pending {
    /// The file: the one behind all symbolic links.
    pub file: PathBuf,
    /// How many runs that are alive use it. If none, [`restore`] undoes the change.
    pub running: usize,
    /// The servers of runs that may be in it.
    pub servers: Vec<String>,
}

/// The leases on a file, if there are any.
pub fn pending(file: &Path) -> Result<Option<Pending>, LeaseError> {
    let real = real_file(file)?;
    let found =
        protocol::pending(&Disk::default(), &real).map_err(|stop| LeaseError::new(file, stop))?;
    Ok(found.map(|(running, servers)| Pending {
        file: real,
        running,
        servers,
    }))
}

fn real_file(file: &Path) -> Result<PathBuf, LeaseError> {
    paths::real_file(file).map_err(|error| LeaseError {
        file: file.to_owned(),
        what: format!("{error}"),
    })
}
