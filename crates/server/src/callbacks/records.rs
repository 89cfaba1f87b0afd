//! What was delivered of each run with callbacks, in a file that outlives the server.

use std::collections::HashMap;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use teamster_process::{FileMode, make_private_folder, replace_file};

use super::message::{END, TURN};

/// The subfolder in the server's folder.
const FOLDER: &str = "callbacks";
/// The time that a registered callback waits for its run to appear.
const START_LIMIT: Duration = Duration::from_hours(1);

/// The callback state of a run, as stored in its file.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) targets: Vec<Target>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Target {
    /// The address of a callback, or a browser ([`BROWSER`](crate::web_push::BROWSER)).
    pub(super) url: String,
    /// The keys of messages that were delivered or given up.
    pub(super) settled: Vec<String>,
}

impl Record {
    /// Adds a target, and returns whether it is new.
    pub(super) fn add(&mut self, url: &str) -> bool {
        let is_new = self.targets.iter().all(|target| target.url != url);
        if is_new {
            self.targets.push(Target {
                url: url.to_owned(),
                settled: Vec::new(),
            });
        }
        is_new
    }

    pub(super) fn settle(&mut self, url: &str, key: &str) {
        let target = self.targets.iter_mut().find(|target| target.url == url);
        if let Some(target) = target {
            if key.starts_with(TURN) {
                // Only the newest turn of a session is due.
                target.settled.retain(|it| !it.starts_with(TURN));
            }
            target.settled.push(key.to_owned());
        }
    }

    pub(super) fn is_complete(&self) -> bool {
        let sent = |target: &Target| target.settled.iter().any(|key| key == END);
        self.targets.iter().all(sent)
    }
}

/// The files of all records.
#[derive(Debug)]
pub(super) struct Files {
    folder: PathBuf,
}

impl Files {
    /// The records in the server's folder.
    pub(super) fn of(server: &Path) -> Self {
        Self {
            folder: server.join(FOLDER),
        }
    }

    /// Locks the records for one server. `None` while another one has them.
    pub(super) fn lock(&self) -> io::Result<Option<File>> {
        let path = self.folder.with_extension("lock");
        if let Some(folder) = path.parent() {
            make_private_folder(folder)?;
        }
        let mut options = File::options();
        options.create(true).truncate(false).write(true);
        let file = options.open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    fn file(&self, run_id: &str) -> PathBuf {
        self.folder.join(format!("{run_id}.json"))
    }

    pub(super) fn save(&self, run_id: &str, record: &Record) -> io::Result<()> {
        let written = make_private_folder(&self.folder).and_then(|()| {
            let json = serde_json::to_vec(record)?;
            replace_file(&self.file(run_id), &json, FileMode::Private)
        });
        written.map_err(|error| {
            io::Error::other(format!(
                "cannot store the callback in {}: {error}",
                self.folder.display()
            ))
        })
    }

    /// Reads the pending deliveries of earlier servers.
    pub(super) fn load(&self) -> HashMap<String, Record> {
        let mut records = HashMap::new();
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let name = entry.file_name().into_string().unwrap_or_default();
            if let Some(run_id) = name.strip_suffix(".json")
                && let Some(record) = fs::read(entry.path())
                    .ok()
                    .and_then(|json| serde_json::from_slice(&json).ok())
            {
                records.insert(run_id.to_owned(), record);
            }
        }
        records
    }

    /// Returns whether the run of this record would be there by now.
    pub(super) fn is_old(&self, run_id: &str) -> bool {
        let written = fs::metadata(self.file(run_id)).and_then(|about| about.modified());
        let age = written
            .ok()
            .and_then(|at| SystemTime::now().duration_since(at).ok());
        age.is_none_or(|age| age > START_LIMIT)
    }

    pub(super) fn remove(&self, run_id: &str) {
        // The next server processes a file that could not be removed.
        let _ = fs::remove_file(self.file(run_id));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_of_one_server_until_it_ends() {
        let folder = tempfile::tempdir().unwrap();
        let files = Files::of(folder.path());
        let first = files.lock().unwrap();
        assert!(first.is_some());
        assert!(Files::of(folder.path()).lock().unwrap().is_none());
        // The lock is no record.
        assert_eq!(files.load().len(), 0);
        drop(first);
        assert!(Files::of(folder.path()).lock().unwrap().is_some());
    }

    #[test]
    fn record_keeps_only_the_newest_turn_of_a_session() {
        let mut record = Record::default();
        record.add("web-push:a");
        for key in ["s/1", "turn 1", "turn 2"] {
            record.settle("web-push:a", key);
        }
        assert_eq!(record.targets[0].settled, ["s/1", "turn 2"]);
    }
}
