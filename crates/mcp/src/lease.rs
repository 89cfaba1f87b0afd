//! Changes of a configuration file for the time of a run.
//!
//! Many runs, in many processes, may hold a lease on the same file. It has the entries of all of them,
//! and each entry goes with the last who needs it. The last lease restores the file; if one is killed,
//! the next lease on it, another holder, or [`restore`] does it.
//!
//! # Files
//!
//! Beside the file `D/file` (the one behind all symbolic links) lies the folder
//! `D/.teamster-lease-file`, for this user only. If folders have to be made, it lies beside the topmost
//! of these. In it are:
//!
//! - `lock`, which is held while anything here or in the file changes, and never for long;
//! - `original`, a second name of the original file. Renaming it back restores not just the bytes but
//!   the file itself: owner, mode, time, attributes, other names. Where the file system knows no second
//!   names it is a copy, with owner, mode and time;
//! - `journal.json`: the file without our entries, what was written, our entries, the folders that were
//!   created, and the holders. Paths in it are relative: a project can be moved;
//! - `holder-…`, one for each lease, which the holder keeps locked for as long as it lives. A lock goes
//!   with the process, however that ends. No process id is stored, so none can be mistaken;
//! - `.gitignore`, which keeps git from seeing any of this.
//!
//! # Order of operations
//!
//! Begin: `original`, holder, journal; then folders and file. The journal is on the disk, with all
//! that is going to happen, before any of it happens. A text is written beside the file first and then
//! renamed, so that the file is always either the old or the new one; if it is no longer what the change
//! was made from, the change is begun again.
//!
//! End: file; then the folders that we made, if they are empty; then `journal.json` goes, which is the
//! end of the undo; then the rest, `lock` last. Each step may be the last one, and can be repeated:
//!
//! | found | state of the last holder | next step |
//! |---|---|---|
//! | a folder without a journal | a beginning before, or an end after anything that counts | removes it |
//! | the file is the original, or there is none and was none | between the journal and the change, or between the undo and the end | the rest of the end |
//! | the file has a text of ours | a lease was held, or its end had begun | puts the original in its place |
//! | the file has some other text | edited by another program during the lease | removes our entries, and nothing else |
//! | the file is gone | removed by another program, or by a lease that had created it | leaves it so, and the rest of the end |
//! | the file cannot be parsed | being edited | nothing; reports it |
//! | a holder that lives | others use the file | takes out what the dead have left |
//! | a journal that cannot be read or of another version | none of ours | nothing; reports it |
//!
//! From an edit on, the file is no longer restored from `original` but from what it is without our
//! entries. An entry of ours that another program has changed belongs to that program.
//!
//! A waiter may find `lock` gone: the previous holder removed the folder, so it retries. After locking,
//! re-check the chosen location: another lease may have created its parent, and that lease's journal is
//! one level up.
//!
//! # Limits
//!
//! An editor that saves in the moment between our last look at the file and the rename, some
//! microseconds, loses against us. During a lease the file is another one than the original: attributes
//! beside owner and mode are those of a new file, and other names of it lead to the original.
//! If a folder is made for one file and a lease on another file in it lasts longer, the folder stays.

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

/// An error of a lease. No file was damaged; the message has the next step.
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
    /// A file, and what is wrong with it.
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

/// End of a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Released {
    /// Others still use the file; the last of them restores it.
    Shared,
    /// The file is what it was, byte for byte; or is gone again, if it was not there.
    Restored,
    /// Another program edited the file meanwhile: only our entries were removed.
    Cleaned,
    /// There was nothing to undo.
    Nothing,
}

/// A changed configuration file; it is restored when this is released or dropped.
///
/// ```no_run
/// use serde_json::json;
/// use teamster_core::provider::{ConfigEdit, ConfigFormat, ConfigPlace, ConfigTable};
/// use teamster_mcp::lease::{Lease, Released};
///
/// # fn main() -> Result<(), teamster_mcp::lease::LeaseError> {
/// let lease = Lease::acquire(&ConfigEdit {
///     table: ConfigTable {
///         file: ".gemini/settings.json".into(),
///         format: ConfigFormat::Json,
///         key: "mcpServers",
///     },
///     entries: vec![("docs".to_owned(), json!({"command": "docs-mcp"}))],
///     new_file: "",
///     place: ConfigPlace::Lease,
/// })?;
/// // Run the CLI here.
/// assert_eq!(lease.release()?, Released::Restored);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Lease {
    /// The requested path.
    requested: PathBuf,
    /// Nothing after the release.
    held: Option<Held>,
}

impl Lease {
    /// Puts the entries into the file. First undoes what a run that was killed has left there.
    ///
    /// Waits for others who change the file at this moment, for at most 10 s. Blocks on the disk.
    /// If it fails, the file and its folder are what they were.
    pub fn acquire(edit: &ConfigEdit) -> Result<Self, LeaseError> {
        Self::begin(&Disk::default(), edit)
    }

    /// [`acquire`](Self::acquire) on a disk of which a test can fail or delay each step.
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

    /// The file that was changed: the one behind all symbolic links.
    pub fn file(&self) -> &Path {
        self.held
            .as_ref()
            .map_or(&self.requested, |held| &held.file)
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
            let error = LeaseError::of(&self.requested, stop);
            LeaseError {
                what: format!(
                    "{}; after that, `teamster mcp restore {}` takes this run's servers out of it",
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
            // No caller can receive the error. The next lease undoes what is left.
            let _ = held.release();
        }
    }
}

/// Finishes the undo of what killed runs have left in this file. Runs that are alive keep theirs.
pub fn restore(file: &Path) -> Result<Released, LeaseError> {
    undo(&Disk::default(), file)
}

/// [`restore`] on a disk of which a test can fail or delay each step.
#[cfg(feature = "test-hooks")]
pub fn restore_on(disk: &Disk, file: &Path) -> Result<Released, LeaseError> {
    undo(disk, file)
}

fn undo(disk: &Disk, file: &Path) -> Result<Released, LeaseError> {
    protocol::restore(disk, &real_file(file)?).map_err(|stop| LeaseError::of(file, stop))
}

/// Whether there is a lease on the file, of a run that is alive or was killed. Takes no lock, and is as
/// quick as a look for a few files.
pub fn exists(file: &Path) -> bool {
    paths::real_file(file).is_ok_and(|file| !paths::Location::taken(&file).is_empty())
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

impl Pending {
    /// Leases of this many living runs.
    pub fn new(file: impl Into<PathBuf>, running: usize) -> Self {
        Self {
            file: file.into(),
            running,
            servers: Vec::new(),
        }
    }
}

/// The leases on a file, if there are any. Waits for others as [`Lease::acquire`] does, and changes
/// nothing.
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
