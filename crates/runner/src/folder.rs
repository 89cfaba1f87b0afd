//! Folders of runs.

use std::fs::{self, DirBuilder, File, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use teamster_api::{
    KeptSpec, LiveState, LiveStatus, LogLine, RunInfo, is_new_run_id, is_owned_run_id, is_run_id,
};
use teamster_process::{make_private_folder, sweep_leftovers};

use crate::files::{self, lock_exclusively, open_lock, sync_folder, write_synced};
use crate::log::FILE;
use crate::server::Listener;
use crate::step::{Step, before};
use crate::{LogLimits, RunLogReader, RunLogWriter, RunsError, kept_spec, recover};

/// File that a live runner locks.
pub(crate) const LOCK: &str = "lock";
/// File that a reader locks while it completes the log of a killed runner.
const RECOVERY: &str = "recovery.lock";
/// Name of the description in a run's folder.
pub(crate) const INFO: &str = "run.json";
/// Prefix of the names of folders that are drafts or being removed.
pub(crate) const HIDDEN: &str = ".";
/// Time that a reader waits for another one that completes the log.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);
/// Interval of the attempts to lock.
const LOCK_PAUSE: Duration = Duration::from_millis(2);

/// Runs of a user on this machine.
#[derive(Debug, Clone)]
pub struct Runs {
    root: PathBuf,
}

/// State of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RunState {
    /// The runner is live.
    Live,
    /// The log is complete.
    Ended,
}

impl Runs {
    /// Uses the runs in this folder, which is created with the first run.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Returns the folder of all runs.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Accepts a run, and keeps its spec if there is one.
    pub(crate) fn accept_with(
        &self,
        info: &RunInfo,
        spec: Option<&KeptSpec>,
        limits: LogLimits,
    ) -> Result<AcceptedRun, RunsError> {
        if !(is_new_run_id(&info.run_id) || is_owned_run_id(&info.run_id)) {
            let id = info.run_id.clone();
            return Err(RunsError::InvalidId { id });
        }
        make_private_folder(&self.root).map_err(RunsError::io("make", &self.root))?;
        // Created under another name until it is complete, so readers never see a run without its lock.
        let path = self.root.join(&info.run_id);
        if path.exists() {
            return Err(RunsError::Exists {
                id: info.run_id.clone(),
            });
        }
        before(Step::MakeDraft);
        let draft = self.make_draft(&info.run_id)?;
        let made = (|| {
            before(Step::CreateLock);
            let mut lock = lock_exclusively(&draft, LOCK)?.ok_or_else(|| RunsError::Locked {
                id: info.run_id.clone(),
            })?;
            (lock.name_holder()).map_err(RunsError::io("write", draft.join(LOCK)))?;
            before(Step::CreateSocket);
            let listener = Listener::bind(&draft)?;
            let file = draft.join(INFO);
            write_synced(&file, &serde_json::to_vec(info).map_err(io::Error::from))
                .map_err(RunsError::io("write", &file))?;
            if let Some(spec) = spec {
                kept_spec::write(&draft, spec)?;
            }
            before(Step::CreateLog);
            // It is empty, so it is its name in the folder that must outlive a crash of the machine.
            let log = RunLogWriter::open(&draft, limits)
                .map_err(RunsError::io("make", draft.join(FILE)))?;
            sync_folder(Step::SyncDraft, &draft)?;
            before(Step::RenameDraft);
            // Fails if another process created the run first: its folder is not empty.
            fs::rename(&draft, &path).map_err(|error| match error.kind() {
                ErrorKind::DirectoryNotEmpty | ErrorKind::AlreadyExists => RunsError::Exists {
                    id: info.run_id.clone(),
                },
                _ => RunsError::io("make", &path)(error),
            })?;
            sync_folder(Step::SyncRuns, &self.root)?;
            Ok(AcceptedRun {
                folder: RunFolder {
                    path: path.clone(),
                    info: info.clone(),
                },
                log: log.moved_to(&path),
                listener,
                lock,
            })
        })();
        if made.is_err() {
            // Without the draft the run never existed. A draft that cannot be removed does no harm.
            let _ = fs::remove_dir_all(&draft);
        }
        made
    }

    /// Makes a folder of its own for this attempt to accept the run: a draft that another process has, or left when
    /// it was killed, is no run and takes no id.
    fn make_draft(&self, run_id: &str) -> Result<PathBuf, RunsError> {
        let mut number: u32 = 0;
        loop {
            let draft = self.hidden("new", run_id, number);
            match DirBuilder::new().mode(0o700).create(&draft) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => number += 1,
                made => {
                    return made
                        .map(|()| draft.clone())
                        .map_err(RunsError::io("make", draft));
                }
            }
        }
    }

    /// Returns the path of a folder that no reader takes for a run. Its name belongs to this process.
    fn hidden(&self, kind: &str, run_id: &str, number: u32) -> PathBuf {
        let process = std::process::id();
        let name = format!("{HIDDEN}{kind}-{run_id}.{process}.{number}");
        self.root.join(name)
    }

    /// Returns the run with this id, or the only one with this prefix.
    ///
    /// # Errors
    ///
    /// Fails if no run or several runs match.
    pub fn find(&self, id: &str) -> Result<RunFolder, RunsError> {
        let missing = || RunsError::NotFound { id: id.to_owned() };
        if !is_run_id(id) {
            return Err(missing());
        }
        if let Some(run) = self.open(id)? {
            return Ok(run);
        }
        let mut matches = self.ids()?;
        matches.retain(|found| found.starts_with(id));
        match &*matches {
            [] => Err(missing()),
            [only] => self.open(only)?.ok_or_else(missing),
            _ => {
                matches.truncate(5);
                Err(RunsError::Ambiguous {
                    prefix: id.to_owned(),
                    matches,
                })
            }
        }
    }

    /// Returns all runs, newest first. Folders that are no runs are left out.
    ///
    /// # Errors
    ///
    /// Fails if the folder cannot be listed.
    pub fn list(&self) -> Result<Vec<RunFolder>, RunsError> {
        let mut runs = Vec::new();
        for id in self.ids()? {
            // The run may have just been removed, or be of a later version.
            runs.extend(self.open(&id).ok().flatten());
        }
        runs.sort_by(|a, b| {
            let key = |run: &RunFolder| (run.info.accepted_at_ms, run.info.run_id.clone());
            key(b).cmp(&key(a))
        });
        Ok(runs)
    }

    /// Returns the run with exactly this id, or `None`.
    pub fn get(&self, id: &str) -> Result<Option<RunFolder>, RunsError> {
        if is_run_id(id) {
            self.open(id)
        } else {
            Ok(None)
        }
    }

    /// Returns the ids of all runs, sorted.
    pub fn ids(&self) -> Result<Vec<String>, RunsError> {
        let entries = match fs::read_dir(&self.root) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(RunsError::io("list", &self.root))?,
        };
        let mut ids = Vec::new();
        for entry in entries {
            let entry = entry.map_err(RunsError::io("list", &self.root))?;
            if let Ok(name) = entry.file_name().into_string()
                && !name.starts_with(HIDDEN)
            {
                ids.push(name);
            }
        }
        ids.sort();
        Ok(ids)
    }

    fn open(&self, id: &str) -> Result<Option<RunFolder>, RunsError> {
        let path = self.root.join(id);
        // A link leads to a folder that is not this user's log.
        if !fs::symlink_metadata(&path).is_ok_and(|about| about.is_dir()) {
            return Ok(None);
        }
        let file = path.join(INFO);
        let text = match files::read(&file) {
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
            {
                return Ok(None);
            }
            text => text.map_err(RunsError::io("read", &file))?,
        };
        let info = serde_json::from_slice(&text)
            .map_err(|error| RunsError::io("read", &file)(error.into()))?;
        Ok(Some(RunFolder { path, info }))
    }
}

/// Run whose runner is this process, until this is dropped.
#[derive(Debug)]
#[non_exhaustive]
pub struct AcceptedRun {
    /// Folder of the run.
    pub folder: RunFolder,
    /// Writer of its log.
    pub log: RunLogWriter,
    /// Socket for clients.
    pub listener: Listener,
    /// Lock of a live runner. MUST be dropped last.
    pub lock: RunLock,
}

/// Lock of a run's folder.
///
/// It is unlocked explicitly, not by closing the file: a child process that another thread is starting may
/// still have the file open.
#[derive(Debug)]
pub struct RunLock(pub(crate) File);

impl RunLock {
    pub(crate) fn file(&mut self) -> &mut File {
        &mut self.0
    }
}

impl Drop for RunLock {
    fn drop(&mut self) {
        // If this fails, closing the file unlocks it.
        let _ = self.0.unlock();
    }
}

/// Folder of a run.
#[derive(Debug, Clone)]
pub struct RunFolder {
    path: PathBuf,
    info: RunInfo,
}

impl RunFolder {
    /// Returns the description of the run.
    pub fn info(&self) -> &RunInfo {
        &self.info
    }

    /// Returns the run's id.
    pub fn id(&self) -> &str {
        &self.info.run_id
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the log after the entry with this number; 0 is the beginning.
    pub fn log(&self, after: u64) -> Result<RunLogReader, RunsError> {
        RunLogReader::open(&self.path, after)
    }

    /// Returns the newest entry of the log, or `None`.
    pub fn last_line(&self) -> Result<Option<LogLine>, RunsError> {
        recover::last_line(&self.path)
    }

    /// Returns the state of the run. If its runner was killed, first completes the log.
    ///
    /// Blocks, for several seconds if processes of a killed run are still ending. Async code MUST use
    /// [`client::settle`](crate::client::settle) instead.
    ///
    /// Only the runner locks the run's lock exclusively, so a refused shared lock means that it is live.
    /// Readers that complete the log exclude each other with `recovery.lock`.
    pub fn settle(&self) -> Result<RunState, RunsError> {
        let file = self.open_lock()?;
        match file.try_lock_shared() {
            // The runner is cleaning up after the end of its log.
            Err(TryLockError::WouldBlock) if self.has_end()? => return Ok(RunState::Ended),
            Err(TryLockError::WouldBlock) => return Ok(RunState::Live),
            Err(TryLockError::Error(error)) => return Err(self.cannot_lock(error)),
            Ok(()) => {}
        }
        let _ended = RunLock(file);
        let until = Instant::now() + LOCK_TIMEOUT;
        while !self.has_end()? {
            if let Some(_recovering) = lock_exclusively(&self.path, RECOVERY)? {
                // Another reader may have completed the log.
                if !self.has_end()? {
                    // If the guard was killed with the runner, processes of the agent may be left.
                    if let Some(directory) = &self.info.directory {
                        self.wait_for_exit();
                        sweep_leftovers(directory);
                    }
                    recover::append_end(&self.path)?;
                }
            } else if Instant::now() >= until {
                return Err(RunsError::Locked {
                    id: self.info.run_id.clone(),
                });
            } else {
                thread::sleep(LOCK_PAUSE);
            }
        }
        Ok(RunState::Ended)
    }

    /// Returns whether the run's runner is there, also in another container: it holds the run's lock.
    pub fn has_runner(&self) -> bool {
        let Ok(file) = self.open_lock() else {
            return false;
        };
        let locked = file.try_lock_shared();
        let _lock = RunLock(file);
        matches!(locked, Err(TryLockError::WouldBlock))
    }

    /// Removes the run and its log if it has ended. Returns whether it was removed. Works on a full disk.
    pub fn remove(self) -> Result<bool, RunsError> {
        let Some(_lock) = lock_exclusively(&self.path, LOCK)? else {
            // The runner is live, or a reader holds a shared lock.
            return Ok(false);
        };
        // Renamed first, so that readers never find a half-removed run.
        before(Step::RenameRemoved);
        let old = self.hide()?;
        before(Step::RemoveFolder);
        fs::remove_dir_all(&old).map_err(RunsError::io("remove", &old))?;
        Ok(true)
    }

    /// Gives the folder a name that no reader takes for a run, and that no removal that was cut off has left.
    fn hide(&self) -> Result<PathBuf, RunsError> {
        let root = self.path.parent().unwrap_or(Path::new(""));
        let runs = Runs::at(root);
        let mut number: u32 = 0;
        loop {
            let old = runs.hidden("old", &self.info.run_id, number);
            match fs::rename(&self.path, &old) {
                Err(error)
                    if matches!(
                        error.kind(),
                        ErrorKind::DirectoryNotEmpty | ErrorKind::AlreadyExists
                    ) && number < u32::MAX =>
                {
                    number += 1;
                }
                hidden => {
                    return hidden
                        .map(|()| old)
                        .map_err(RunsError::io("remove", &self.path));
                }
            }
        }
    }

    /// Removes the socket. The runner calls this before it releases the lock.
    pub fn close_socket(&self) {
        before(Step::RemoveSocket);
        // A remaining socket refuses connections.
        let _ = fs::remove_file(self.path.join(crate::server::SOCKET));
    }

    /// Returns the size of the log, in bytes.
    pub fn log_bytes(&self) -> u64 {
        fs::symlink_metadata(self.path.join(FILE)).map_or(0, |about| about.len())
    }

    /// Returns the time of the last write to the log, in milliseconds since the Unix epoch.
    pub fn changed_at_ms(&self) -> Option<u64> {
        let about = fs::symlink_metadata(self.path.join(FILE)).ok()?;
        let changed = about.modified().ok()?;
        Some(teamster_core::time::epoch_ms_of(changed))
    }

    /// Returns the status of this run if its runner, the process `pid`, does not answer.
    pub fn status_without_answer(&self, pid: Option<u32>) -> LiveStatus {
        let since = self.changed_at_ms().unwrap_or(self.info.accepted_at_ms);
        let mut status = LiveStatus::new(LiveState::NotAnswering, since);
        status.pid = pid;
        status
    }

    pub(crate) fn has_end(&self) -> Result<bool, RunsError> {
        Ok(self.last_line()?.is_some_and(|line| line.is_end()))
    }

    fn open_lock(&self) -> Result<File, RunsError> {
        open_lock(&self.path.join(LOCK)).map_err(RunsError::io("open", self.path.join(LOCK)))
    }

    fn cannot_lock(&self, error: io::Error) -> RunsError {
        RunsError::io("lock", self.path.join(LOCK))(error)
    }
}
