//! How long the logs of ended runs are kept.

use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use teamster_core::time::{epoch_ms, epoch_ms_of, millis};

use crate::folder::{HIDDEN, lock_exclusively};
use crate::{RunFolder, Runs, RunsError};

/// Held by the process that prunes.
const LOCK: &str = ".prune.lock";
/// A log stays at least this long after its last entry, for readers that come late. A draft that is older was
/// left by a killed process.
const GRACE: Duration = Duration::from_hours(1);

/// How long the logs of ended runs are kept, and how much they may take together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Retention {
    /// Logs whose last entry is older are removed. 90 days; unset, age does not matter.
    pub age: Option<Duration>,
    /// The oldest logs are removed until all take at most so many bytes. 8 GiB; unset, their size does not
    /// matter.
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

/// What was removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pruned {
    /// How many logs.
    pub logs: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// An entry of the folder of all runs that may be removed.
struct Found {
    id: String,
    changed_at: u64,
    bytes: u64,
}

impl Runs {
    /// Removes what is not to be kept, and what killed processes have left. A live run is never removed, nor one
    /// that ended within the last hour. Does nothing while another process does the same.
    ///
    /// After an error the other logs are removed all the same; the first error is returned.
    pub fn prune(&self, keep: &Retention) -> Result<Pruned, RunsError> {
        let mut pruned = Pruned::default();
        if !self.root().is_dir() {
            return Ok(pruned);
        }
        let Some(_lock) = lock_exclusively(self.root(), LOCK)? else {
            return Ok(pruned);
        };
        let now = epoch_ms();
        let removable = now.saturating_sub(millis(GRACE));
        let mut failed = self.remove_left_behind(removable).err();
        let oldest = keep.age.map(|age| now.saturating_sub(millis(age)));
        let mut kept: u64 = 0;
        for found in self.logs_by_age()? {
            kept = kept.saturating_add(found.bytes);
            let is_old = oldest.is_some_and(|oldest| found.changed_at < oldest);
            let is_too_much = keep.bytes.is_some_and(|most| kept > most);
            if found.changed_at >= removable || !(is_old || is_too_much) {
                continue;
            }
            let run = self.get(&found.id).transpose();
            match run.map(|run| run.and_then(RunFolder::remove)) {
                Some(Ok(true)) => {
                    pruned.logs += 1;
                    pruned.bytes += found.bytes;
                    kept -= found.bytes;
                }
                Some(Err(error)) => _ = failed.get_or_insert(error),
                // It is live, or gone already.
                Some(Ok(false)) | None => {}
            }
        }
        failed.map_or(Ok(pruned), Err)
    }

    /// All logs, the newest first. Only their files are looked at, not what is in them.
    fn logs_by_age(&self) -> Result<Vec<Found>, RunsError> {
        let mut all = Vec::new();
        for id in self.ids()? {
            let about = fs::metadata(self.root().join(&id).join(crate::log::FILE));
            if let Ok(about) = about
                && let Ok(changed) = about.modified()
            {
                all.push(Found {
                    id,
                    changed_at: epoch_ms_of(changed),
                    bytes: about.len(),
                });
            }
        }
        all.sort_by(|a, b| (b.changed_at, &b.id).cmp(&(a.changed_at, &a.id)));
        Ok(all)
    }

    /// Removes folders that were never whole, or not removed whole, and have not changed since.
    fn remove_left_behind(&self, since: u64) -> Result<(), RunsError> {
        let list = |error| RunsError::io("list", self.root())(error);
        for entry in fs::read_dir(self.root()).map_err(list)? {
            let path = entry.map_err(list)?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if name.starts_with(HIDDEN) && path.is_dir() && is_left_behind(&path, since)? {
                match fs::remove_dir_all(&path) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => {
                        return Err(RunsError::io("remove", &path)(error));
                    }
                    // By the process that has begun it, for example.
                    _ => {}
                }
            }
        }
        Ok(())
    }
}

/// Whether no process works on this draft, and none has since then.
fn is_left_behind(path: &Path, since: u64) -> Result<bool, RunsError> {
    let Ok(changed) = fs::metadata(path).and_then(|about| about.modified()) else {
        return Ok(false);
    };
    Ok(epoch_ms_of(changed) < since && lock_exclusively(path, crate::folder::LOCK)?.is_some())
}
