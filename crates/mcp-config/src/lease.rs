//! Changes of a configuration file for the time of a run.
//!
//! Many runs, in many processes, may hold a lease on the same file. The file has the entries of all of them, and an
//! entry is removed with the last run that needs it. The last lease restores the file. If its process is killed, the
//! next lease on the file, another holder, or [`restore`] does so.
//!
//! # Files
//!
//! The folder `D/.teamster-lease-file`, accessible to this user only, lies beside the file `D/file` (with all symbolic
//! links resolved). If folders have to be created, it lies beside the topmost of these. It contains:
//!
//! - `lock`: held briefly, while anything here or in the file changes;
//! - `original`: a hard link to the original file. Renaming it back restores the file itself: its bytes, owner, mode,
//!   time, attributes and other links. On a file system without hard links it is a copy, with owner, mode and time;
//! - `journal.json`: the file without our entries, the written content, our entries, the created folders, and the
//!   holders. Its paths are relative, so a project can be moved;
//! - `holder-…`: one file for each lease, which its process keeps locked. The lock ends with the process, however that
//!   ends. No process id is stored, so none can be confused with a reused one;
//! - `.gitignore`: hides all of this from git.
//!
//! # Order of operations
//!
//! Begin: `original`, holder, journal; then folders and file. The journal describes the whole change and is synced to
//! the disk before the change begins. New content is written beside the file and then renamed, so the file always has
//! either the old or the new content. If the file has changed since it was read, the operation starts over.
//!
//! End: file; then the created folders, if they are empty; then `journal.json`, whose removal completes the undo; then
//! the rest, with `lock` last. The process may be killed after any step, and each step can be repeated:
//!
//! | found | state of the last holder | next step |
//! |---|---|---|
//! | a folder without a journal | killed before the journal was written, or after it was removed | removes the folder |
//! | the file is the original, or is missing as before | between the journal and the change, or between the undo and the end | completes the end |
//! | the file has content that we wrote | a lease was held, or its end had begun | restores the original |
//! | the file has other content | edited by another program during the lease | removes only our entries |
//! | the file is missing | removed by another program, or by a lease that had created it | leaves it so and completes the end |
//! | the file cannot be parsed | being edited | reports it and changes nothing |
//! | a live holder | others use the file | removes the entries of dead holders |
//! | a journal that cannot be read or has another version | unknown | reports it and changes nothing |
//!
//! After an edit by another program, the file is restored from its current content without our entries, not from
//! `original`. An entry of ours that another program has changed belongs to that program.
//!
//! A waiter may find `lock` gone: the previous holder removed the folder, so it retries. After locking,
//! re-check the chosen location: another lease may have created its parent, and that lease's journal is
//! one level up.
//!
//! # Limits
//!
//! An editor that saves in the microseconds between our last check of the file and the rename loses its change.
//! During a lease the file is not the original one: attributes other than owner and mode are those of a new file, and
//! other hard links lead to the original. If a folder was created for one file and a lease on another file in it lasts
//! longer, the folder stays.

use std::path::{Path, PathBuf};

use teamster_core::provider::ConfigEdit;
use teamster_core::{AgentError, ErrorCode, ErrorKind};

use disk::Disk;
use folder::Stop;
use protocol::Held;

mod content;
#[cfg(not(feature = "test-hooks"))]
#[expect(unreachable_pub, reason = "with the feature, its items are public")]
mod disk;
#[cfg(feature = "test-hooks")]
pub mod disk;
mod folder;
mod journal;
mod paths;
mod protocol;

/// An error of a lease. The file is not damaged, and the message includes the next step.
#[derive(Debug, thiserror::Error)]
#[error("{file}: {what}", file = file.display())]
#[non_exhaustive]
pub struct LeaseError {
    /// The file.
    pub file: PathBuf,
    /// The problem, with the next step.
    pub what: String,
}

impl LeaseError {
    /// Creates an error about this file.
    pub fn new(file: impl Into<PathBuf>, what: impl Into<String>) -> Self {
        Self {
            file: file.into(),
            what: what.into(),
        }
    }

    fn of(file: &Path, stop: Stop) -> Self {
        match stop {
            Stop::Failed(what) => Self::new(file, what),
            Stop::Again => Self::new(file, "it keeps changing; try again later"),
        }
    }
}

impl From<LeaseError> for AgentError {
    fn from(error: LeaseError) -> Self {
        Self::new(ErrorCode::ConfigLease, ErrorKind::Mcp, error.to_string())
    }
}

/// Result of releasing a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Released {
    /// Others still use the file; the last of them restores it.
    Shared,
    /// The file has its original content again, or is removed if it did not exist.
    Restored,
    /// Another program edited the file meanwhile, so only our entries were removed.
    Cleaned,
    /// There was nothing to undo.
    Nothing,
}

/// A changed configuration file. It is restored on release or drop.
///
/// ```no_run
/// use serde_json::json;
/// use teamster_core::provider::{ConfigEdit, ConfigFormat, ConfigLocation, ConfigTable};
/// use teamster_mcp_config::lease::{Lease, Released};
///
/// # fn main() -> Result<(), teamster_mcp_config::lease::LeaseError> {
/// let lease = Lease::acquire(&ConfigEdit {
///     table: ConfigTable {
///         file: ".gemini/settings.json".into(),
///         format: ConfigFormat::Json,
///         key: "mcpServers",
///     },
///     entries: vec![("docs".to_owned(), json!({"command": "docs-mcp"}))],
///     new_file: "",
///     location: ConfigLocation::Lease,
/// })?;
/// // Run the CLI here.
/// assert_eq!(lease.release()?, Released::Restored);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Lease {
    requested: PathBuf,
    /// `None` after the release.
    held: Option<Held>,
}

impl Lease {
    /// Puts the entries into the file. First undoes changes that a killed run has left there.
    ///
    /// Blocks on the disk. Waits at most 10 s for others that are changing the file.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read, parsed or replaced, if it has a server with the same name, or if another run
    /// uses a conflicting entry. The file and its folder are unchanged then.
    pub fn acquire(edit: &ConfigEdit) -> Result<Self, LeaseError> {
        Self::begin(&Disk::default(), edit)
    }

    /// Acquires a lease as [`acquire`](Self::acquire) does, on a disk whose steps a test can fail or delay.
    #[cfg(feature = "test-hooks")]
    pub fn acquire_on(disk: &Disk, edit: &ConfigEdit) -> Result<Self, LeaseError> {
        Self::begin(disk, edit)
    }

    fn begin(disk: &Disk, edit: &ConfigEdit) -> Result<Self, LeaseError> {
        let requested = &edit.table.file;
        let held = protocol::acquire(disk, &real_file(requested)?, edit)
            .map_err(|stop| LeaseError::of(requested, stop))?;
        Ok(Self {
            requested: requested.clone(),
            held: Some(held),
        })
    }

    /// Returns the changed file, with all symbolic links resolved.
    pub fn file(&self) -> &Path {
        self.held
            .as_ref()
            .map_or(&self.requested, |held| &held.file)
    }

    /// Removes the entries of this lease.
    ///
    /// # Errors
    ///
    /// If this fails, the entries are still in the file. The next lease on it, or [`restore`], removes them.
    pub fn release(mut self) -> Result<Released, LeaseError> {
        let Some(held) = self.held.take() else {
            return Ok(Released::Nothing);
        };
        held.release().map_err(|stop| {
            let error = LeaseError::of(&self.requested, stop);
            LeaseError {
                what: format!(
                    "{}; after that, restore {}: this run's servers are still in it",
                    error.what,
                    self.requested.display()
                ),
                ..error
            }
        })
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some(held) = self.held.take() {
            // No caller can receive the error. The next lease undoes the rest.
            let _ = held.release();
        }
    }
}

/// Undoes the changes that killed runs have left in this file. Entries of live runs are kept.
///
/// # Errors
///
/// Fails if the file or its journal cannot be read or written, or if others keep changing the file for 10 s.
pub fn restore(file: &Path) -> Result<Released, LeaseError> {
    undo(&Disk::default(), file)
}

/// Restores a file as [`restore`] does, on a disk whose steps a test can fail or delay.
#[cfg(feature = "test-hooks")]
pub fn restore_on(disk: &Disk, file: &Path) -> Result<Released, LeaseError> {
    undo(disk, file)
}

fn undo(disk: &Disk, file: &Path) -> Result<Released, LeaseError> {
    protocol::restore(disk, &real_file(file)?).map_err(|stop| LeaseError::of(file, stop))
}

/// Returns whether there is a lease on the file, of a live or killed run. Takes no lock, and only checks for the
/// existence of a few files.
pub fn exists(file: &Path) -> bool {
    paths::real_file(file).is_ok_and(|file| !paths::Location::taken(&file).is_empty())
}

/// The leases on a file, of live or killed runs.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pending {
    /// The file, with all symbolic links resolved.
    pub file: PathBuf,
    /// Number of live runs that use the file. If it is 0, [`restore`] undoes the change.
    pub running: usize,
    /// Names of the runs' servers that may be in the file.
    pub servers: Vec<String>,
}

impl Pending {
    /// Creates the state of a file with this number of live runs, and without servers.
    pub fn new(file: impl Into<PathBuf>, running: usize) -> Self {
        Self {
            file: file.into(),
            running,
            servers: Vec::new(),
        }
    }
}

/// Returns the leases on a file, if there are any. Waits for others as [`Lease::acquire`] does, and changes nothing.
///
/// # Errors
///
/// Fails if the journal cannot be read, or if others keep changing the file for 10 s.
pub fn pending(file: &Path) -> Result<Option<Pending>, LeaseError> {
    let real = real_file(file)?;
    let found =
        protocol::pending(&Disk::default(), &real).map_err(|stop| LeaseError::of(file, stop))?;
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
