//! What was delivered of each run with callbacks, in a file that outlives the server.

use std::collections::HashMap;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use teamster_core::sync::lock;
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

    /// Adds what another server has of the same run.
    fn merge(&mut self, other: Self) {
        for target in other.targets {
            self.add(&target.url);
            for key in &target.settled {
                self.settle(&target.url, key);
            }
        }
    }

    pub(super) fn is_complete(&self) -> bool {
        let sent = |target: &Target| target.settled.iter().any(|key| key == END);
        self.targets.iter().all(sent)
    }
}

/// The files of the records of a server, in a folder of its own: of several servers with the same state folder, each
/// delivers what it has accepted. What is left of one that has ended is taken over.
#[derive(Debug)]
pub(super) struct Files {
    /// It has the folders of the servers, by numbers, and the locks.
    folder: PathBuf,
    own: Mutex<Option<Own>>,
}

#[derive(Debug)]
struct Own {
    folder: PathBuf,
    /// Held while this server has the folder.
    _lock: File,
}

impl Files {
    /// The records in the server's folder.
    pub(super) fn of(server: &Path) -> Self {
        Self {
            folder: server.join(FOLDER),
            own: Mutex::default(),
        }
    }

    /// Locks something for this server. `None` while another one has it.
    pub(super) fn try_lock(&self, name: &str) -> io::Result<Option<File>> {
        make_private_folder(&self.folder)?;
        let mut options = File::options();
        options.create(true).truncate(false).write(true);
        let file = options.open(self.folder.join(format!("{name}.lock")))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Leaves the records to another server.
    pub(super) fn leave(&self) {
        *lock(&self.own) = None;
    }

    /// Returns the folder of this server: the first that no other one has, or has left something in.
    fn own(&self) -> io::Result<PathBuf> {
        let mut own = lock(&self.own);
        if let Some(own) = &*own {
            return Ok(own.folder.clone());
        }
        let mut number = 0_u32;
        loop {
            let folder = self.folder.join(number.to_string());
            if let Some(locked) = self.try_lock(&number.to_string())?
                && read(&folder).is_empty()
            {
                make_private_folder(&folder)?;
                *own = Some(Own {
                    folder: folder.clone(),
                    _lock: locked,
                });
                return Ok(folder);
            }
            number += 1;
        }
    }

    /// Returns the folder of this server, if it has one.
    fn known(&self) -> Option<PathBuf> {
        lock(&self.own).as_ref().map(|own| own.folder.clone())
    }

    fn file(&self, run_id: &str) -> io::Result<PathBuf> {
        Ok(self.own()?.join(format!("{run_id}.json")))
    }

    pub(super) fn save(&self, run_id: &str, record: &Record) -> io::Result<()> {
        let written = self.file(run_id).and_then(|file| {
            let json = serde_json::to_vec(record)?;
            replace_file(&file, &json, FileMode::Private)
        });
        written.map_err(|error| {
            io::Error::other(format!(
                "cannot store the callback in {}: {error}",
                self.folder.display()
            ))
        })
    }

    /// Moves the records of servers that have ended to those of this one.
    pub(super) fn take_over(&self, records: &mut HashMap<String, Record>) -> io::Result<()> {
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let folder = entry.path();
            if !folder.is_dir()
                || self.known().as_ref() == Some(&folder)
                || read(&folder).is_empty()
            {
                continue;
            }
            let name = entry.file_name().into_string().unwrap_or_default();
            // Held until they are moved. None while that server runs.
            let Some(_locked) = self.try_lock(&name)? else {
                continue;
            };
            for (run_id, left) in read(&folder) {
                let mut record = self.read_own(&run_id).unwrap_or_default();
                record.merge(left);
                self.save(&run_id, &record)?;
                records.insert(run_id.clone(), record);
                fs::remove_file(folder.join(format!("{run_id}.json")))?;
            }
        }
        Ok(())
    }

    fn read_own(&self, run_id: &str) -> Option<Record> {
        let json = fs::read(self.file(run_id).ok()?).ok()?;
        serde_json::from_slice(&json).ok()
    }

    /// Returns whether the run of this record would be there by now.
    pub(super) fn is_old(&self, run_id: &str) -> bool {
        let about = self.file(run_id).and_then(fs::metadata);
        let written = about.and_then(|about| about.modified());
        let age = written
            .ok()
            .and_then(|at| SystemTime::now().duration_since(at).ok());
        age.is_none_or(|age| age > START_LIMIT)
    }

    pub(super) fn remove(&self, run_id: &str) {
        // The next server processes a file that could not be removed.
        let _ = self.file(run_id).and_then(fs::remove_file);
    }
}

/// Reads the records in the folder of a server.
fn read(folder: &Path) -> HashMap<String, Record> {
    let mut records = HashMap::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_of_a_server_are_taken_over_once_it_ends() {
        let folder = tempfile::tempdir().unwrap();
        let [first, second] = [(); 2].map(|()| Files::of(folder.path()));
        let of = |url: &str, settled: &[&str]| {
            let mut record = Record::default();
            record.add(url);
            for key in settled {
                record.settle(url, key);
            }
            record
        };
        first.save("r", &of("http://a", &["r/1"])).unwrap();
        first.save("other", &of("http://a", &[])).unwrap();
        second.save("r", &of("http://b", &[])).unwrap();
        let mut taken = HashMap::new();
        first.take_over(&mut taken).unwrap();
        second.take_over(&mut taken).unwrap();
        assert_eq!(taken, HashMap::new());
        assert_eq!(second.read_own("r"), Some(of("http://b", &[])));

        first.leave();
        second.take_over(&mut taken).unwrap();
        let both = [of("http://b", &[]), of("http://a", &["r/1"])];
        let both = both.map(|it| it.targets).concat();
        assert_eq!(taken["r"].targets, both);
        assert_eq!(taken["other"], of("http://a", &[]));
        assert_eq!(second.read_own("r").as_ref(), taken.get("r"));
        let mut again = HashMap::new();
        second.take_over(&mut again).unwrap();
        Files::of(folder.path()).take_over(&mut again).unwrap();
        assert_eq!(again, HashMap::new());
    }

    #[test]
    fn target_is_of_one_server_until_it_ends() {
        let folder = tempfile::tempdir().unwrap();
        let [first, second] = [(); 2].map(|()| Files::of(folder.path()));
        let held = first.try_lock("target").unwrap();
        assert!(held.is_some());
        assert!(second.try_lock("target").unwrap().is_none());
        drop(held);
        assert!(second.try_lock("target").unwrap().is_some());
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
