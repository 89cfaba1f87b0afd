//! The file with the times until which schedules were handled.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use teamster_core::sync::lock;
use teamster_process::FileMode;

use crate::folder::write_json_for;

/// What was done of a schedule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Handled {
    /// The times of the schedule: others count from when they are first seen.
    #[serde(default)]
    pub(super) when: String,
    /// All times until this one were handled.
    pub(super) at: Timestamp,
    /// The last run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) run: Option<String>,
}

/// The file, and its content.
pub(super) struct Times {
    file: PathBuf,
    of: Mutex<BTreeMap<String, Handled>>,
}

impl Times {
    /// Reads the file. Returns a problem of one that cannot be used: then all schedules count from now on, and nothing was missed.
    pub(super) fn read(file: &Path) -> (Self, Option<String>) {
        let read = match fs::read(file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(BTreeMap::new()),
            read => read.and_then(|text| serde_json::from_slice(&text).map_err(io::Error::from)),
        };
        let (of, problem) = match read {
            Ok(of) => (of, None),
            Err(error) => {
                let file = file.display();
                let problem = format!("cannot read {file}: {error}; schedules count from now on");
                (BTreeMap::new(), Some(problem))
            }
        };
        let times = Self {
            file: file.to_owned(),
            of: Mutex::new(of),
        };
        (times, problem)
    }

    /// Forgets all schedules but these.
    pub(super) fn keep<'a>(&self, schedules: impl Iterator<Item = &'a str>) {
        let known: BTreeSet<&str> = schedules.collect();
        lock(&self.of).retain(|id, _| known.contains(id.as_str()));
    }

    pub(super) fn of(&self, schedule: &str) -> Option<Handled> {
        lock(&self.of).get(schedule).cloned()
    }

    /// Changes the entry of a schedule, and saves the file.
    pub(super) fn set(&self, schedule: &str, handled: Handled) -> io::Result<()> {
        let mut of = lock(&self.of);
        of.insert(schedule.to_owned(), handled);
        write_json_for(FileMode::Private, &self.file, &*of)
    }
}
