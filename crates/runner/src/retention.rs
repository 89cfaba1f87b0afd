//! Retention of the logs of ended runs.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use teamster_api::is_run_id;
use teamster_core::time::{epoch_ms, epoch_ms_of, millis};
use teamster_process::make_private_folder;

use crate::files::{lock_exclusively, open_lock};
use crate::folder::HIDDEN;
use crate::{RunFolder, Runs, RunsError};

/// File that a pruning process locks.
const LOCK: &str = ".prune.lock";
/// Prefix of the names of files that keep a run's log from being pruned.
const KEPT: &str = ".keep-";
/// Time that a log is kept at least after its last entry, for late readers. An older draft was left by a killed
/// process.
const READER_GRACE: Duration = Duration::from_hours(1);

/// Limits of the age and total size of the logs of ended runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Retention {
    /// Age of the last entry after which a log is removed. Default: 90 days. `None`: no limit.
    pub age: Option<Duration>,
    /// Maximum size of all logs, in bytes. The oldest are removed first. Default: 8 GiB. `None`: no limit.
    pub bytes: Option<u64>,
}

impl Default for Retention {
    fn default() -> Self {
        Self {
            age: Some(Duration::from_hours(90 * 24)),
            bytes: Some(8 << 30),
        }
    }
}

/// Result of [`Runs::prune`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pruned {
    /// Ids of the runs whose logs were removed because of their age. Of the others only the logs were too much.
    pub outdated: Vec<String>,
    /// Number of removed logs.
    pub logs: u64,
    /// Size of the removed logs, in bytes.
    pub bytes: u64,
}

/// Log that may be removed.
struct LogFile {
    id: String,
    changed_at_ms: u64,
    bytes: u64,
}

impl Runs {
    /// Keeps the log of the run with this id from being [pruned](Self::prune), also before the run is accepted, until
    /// [`release`](Self::release). After this returns, a crash of the machine changes nothing about it.
    ///
    /// # Errors
    ///
    /// Fails if the id is none of a run, or the folder of all runs cannot be written.
    pub fn keep(&self, id: &str) -> Result<(), RunsError> {
        let path = self.kept(id)?;
        make_private_folder(self.root()).map_err(RunsError::io("make", self.root()))?;
        open_lock(&path).map_err(RunsError::io("make", &path))?;
        let folder = fs::File::open(self.root()).and_then(|folder| folder.sync_all());
        folder.map_err(RunsError::io("sync", self.root()))
    }

    /// Lets the log of a run be pruned again.
    ///
    /// # Errors
    ///
    /// Fails if the id is none of a run, or the folder of all runs cannot be written.
    pub fn release(&self, id: &str) -> Result<(), RunsError> {
        let path = self.kept(id)?;
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(RunsError::io("remove", &path)(error))
            }
            _ => Ok(()),
        }
    }

    fn kept(&self, id: &str) -> Result<PathBuf, RunsError> {
        if is_run_id(id) {
            return Ok(self.root().join(format!("{KEPT}{id}")));
        }
        Err(RunsError::InvalidId { id: id.to_owned() })
    }

    /// Removes logs beyond the retention, and drafts of killed processes. Live runs, runs that ended within the last
    /// hour and those that are [kept](Self::keep) are never removed. Does nothing while another process prunes.
    ///
    /// # Errors
    ///
    /// Returns the first error, after the other logs were removed.
    pub fn prune(&self, keep: &Retention) -> Result<Pruned, RunsError> {
        let mut pruned = Pruned::default();
        if !self.root().is_dir() {
            return Ok(pruned);
        }
        let Some(_lock) = lock_exclusively(self.root(), LOCK)? else {
            return Ok(pruned);
        };
        let now = epoch_ms();
        let removable = now.saturating_sub(millis(READER_GRACE));
        let mut failed = self.remove_stale_drafts(removable).err();
        let oldest = keep.age.map(|age| now.saturating_sub(millis(age)));
        let mut kept: u64 = 0;
        for found in self.logs_by_age()? {
            kept = kept.saturating_add(found.bytes);
            let is_old = oldest.is_some_and(|oldest| found.changed_at_ms < oldest);
            let is_too_much = keep.bytes.is_some_and(|most| kept > most);
            if found.changed_at_ms >= removable
                || !(is_old || is_too_much)
                || self.kept(&found.id).is_ok_and(|path| path.exists())
            {
                continue;
            }
            let run = self.get(&found.id).transpose();
            match run.map(|run| run.and_then(RunFolder::remove)) {
                Some(Ok(true)) => {
                    pruned.logs += 1;
                    pruned.bytes += found.bytes;
                    kept -= found.bytes;
                    if is_old {
                        pruned.outdated.push(found.id);
                    }
                }
                Some(Err(error)) => _ = failed.get_or_insert(error),
                // The run is live, or was removed already.
                Some(Ok(false)) | None => {}
            }
        }
        failed.map_or(Ok(pruned), Err)
    }

    /// Returns all logs, newest first, without reading their content.
    fn logs_by_age(&self) -> Result<Vec<LogFile>, RunsError> {
        let mut all = Vec::new();
        for id in self.ids()? {
            let about = fs::symlink_metadata(self.root().join(&id).join(crate::log::FILE));
            if let Ok(about) = about
                && let Ok(changed) = about.modified()
            {
                all.push(LogFile {
                    id,
                    changed_at_ms: epoch_ms_of(changed),
                    bytes: about.len(),
                });
            }
        }
        all.sort_by(|a, b| (b.changed_at_ms, &b.id).cmp(&(a.changed_at_ms, &a.id)));
        Ok(all)
    }

    /// Removes incomplete folders that have not changed since this time, in milliseconds since the Unix epoch.
    fn remove_stale_drafts(&self, since: u64) -> Result<(), RunsError> {
        let list = |error| RunsError::io("list", self.root())(error);
        for entry in fs::read_dir(self.root()).map_err(list)? {
            let path = entry.map_err(list)?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if name.starts_with(HIDDEN) && is_folder(&path) && is_stale_draft(&path, since)? {
                match fs::remove_dir_all(&path) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => {
                        return Err(RunsError::io("remove", &path)(error));
                    }
                    // Another process has removed the folder.
                    _ => {}
                }
            }
        }
        Ok(())
    }
}

/// Returns whether this is a folder, and not a link to one.
fn is_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|about| about.is_dir())
}

/// Returns whether no process holds this draft, and it has not changed since this time.
fn is_stale_draft(path: &Path, since: u64) -> Result<bool, RunsError> {
    let Ok(changed) = fs::metadata(path).and_then(|about| about.modified()) else {
        return Ok(false);
    };
    Ok(epoch_ms_of(changed) < since && lock_exclusively(path, crate::folder::LOCK)?.is_some())
}
