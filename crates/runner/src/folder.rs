//! The folders of runs.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use teamster_core::time::epoch_ms;

use crate::log::FILE;
use crate::server::Listener;
use crate::step::{Step, before};
use crate::{LogLimits, LogLine, RunLogReader, RunLogWriter, RunsError, recover};

/// The lock of a live runner.
pub(crate) const LOCK: &str = "lock";
/// The lock of the reader that appends the end after a killed runner.
const RECOVERY: &str = "recovery.lock";
/// The name of the description in a run's folder.
const INFO: &str = "run.json";
/// How the name of a folder begins that is not a run (yet).
pub(crate) const HIDDEN: &str = ".";
/// How long a reader waits for another one that appends the end.
const LOCK_PATIENCE: Duration = Duration::from_secs(5);
/// How often it looks meanwhile.
const LOCK_PAUSE: Duration = Duration::from_millis(2);

/// All runs of a user on this machine.
#[derive(Debug, Clone)]
pub struct Runs {
    root: PathBuf,
}

/// What a run is. Written when it is accepted, and never changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RunInfo {
    /// The run's id.
    pub run_id: String,
    /// One prompt, or a conversation.
    pub kind: RunKind,
    /// The provider that is tried first.
    pub provider: String,
    /// The requested model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Where the agent works.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<PathBuf>,
    /// The branch of the git worktree that was made for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The run in whose log this session's conversation begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continues: Option<String>,
    /// When it was accepted, in milliseconds since the Unix epoch.
    pub accepted_at: u64,
}

impl RunInfo {
    /// A run that is accepted now.
    pub fn new(run_id: impl Into<String>, provider: impl Into<String>) -> Self {
        Self {
            run_id: run_id.into(),
            kind: RunKind::Run,
            provider: provider.into(),
            model: None,
            directory: None,
            branch: None,
            continues: None,
            accepted_at: epoch_ms(),
        }
    }
}

/// One prompt, or a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RunKind {
    /// One prompt, from start to `done`.
    Run,
    /// A live session: turns until it is closed.
    Session,
    /// A tick of an agent that works in a loop.
    Tick,
    /// What only a newer version knows.
    #[serde(other)]
    Other,
}

/// Where a run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RunState {
    /// Its runner lives.
    Live,
    /// Its log has its end.
    Ended,
}

impl Runs {
    /// The runs in this folder, which is made with the first of them.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Accepts a run: makes its folder, with this process as its runner. Once this returns, the run is there
    /// for every reader, also after a crash of this process or of the machine.
    pub fn accept(&self, info: &RunInfo, limits: LogLimits) -> Result<NewRun, RunsError> {
        check_id(&info.run_id)?;
        make_private(&self.root).map_err(RunsError::io("make", &self.root))?;
        // Under another name until it is whole: readers never see a run without its lock.
        let draft = self.root.join(format!("{HIDDEN}new-{}", info.run_id));
        let path = self.root.join(&info.run_id);
        if path.exists() {
            return Err(RunsError::Exists {
                id: info.run_id.clone(),
            });
        }
        before(Step::MakeDraft);
        DirBuilder::new()
            .mode(0o700)
            .create(&draft)
            .map_err(|error| match error.kind() {
                ErrorKind::AlreadyExists => RunsError::Exists {
                    id: info.run_id.clone(),
                },
                _ => RunsError::io("make", &draft)(error),
            })?;
        let made = (|| {
            before(Step::CreateLock);
            let lock = lock_exclusively(&draft, LOCK)?.ok_or_else(|| RunsError::Locked {
                id: info.run_id.clone(),
            })?;
            before(Step::CreateSocket);
            let listener = Listener::bind(&draft)?;
            before(Step::WriteInfo);
            let file = draft.join(INFO);
            write_synced(&file, &serde_json::to_vec(info).map_err(io::Error::from))
                .map_err(RunsError::io("write", &file))?;
            before(Step::CreateLog);
            let log = RunLogWriter::open(&draft, limits)
                .and_then(|log| log.sync().map(|()| log))
                .map_err(RunsError::io("make", draft.join(FILE)))?;
            before(Step::SyncDraft);
            sync_folder(&draft)?;
            before(Step::RenameDraft);
            // Fails if the other run was faster: its folder is not empty.
            fs::rename(&draft, &path).map_err(|error| match error.kind() {
                ErrorKind::DirectoryNotEmpty | ErrorKind::AlreadyExists => RunsError::Exists {
                    id: info.run_id.clone(),
                },
                _ => RunsError::io("make", &path)(error),
            })?;
            before(Step::SyncRuns);
            sync_folder(&self.root)?;
            Ok(NewRun {
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
            // Without it the run was never there. What cannot be removed is not in the way.
            let _ = fs::remove_dir_all(&draft);
        }
        made
    }

    /// The run of this id, or the only one that begins so.
    pub fn find(&self, id: &str) -> Result<RunFolder, RunsError> {
        let missing = || RunsError::NotFound { id: id.to_owned() };
        if check_id(id).is_err() {
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

    /// All runs that have a log, the newest first. A folder that is none of a run is left out.
    pub fn list(&self) -> Result<Vec<RunFolder>, RunsError> {
        let mut runs = Vec::new();
        for id in self.ids()? {
            // It may be removed just now, or be of a newer version.
            runs.extend(self.open(&id).ok().flatten());
        }
        runs.sort_by(|a, b| {
            let key = |run: &RunFolder| (run.info.accepted_at, run.info.run_id.clone());
            key(b).cmp(&key(a))
        });
        Ok(runs)
    }

    /// The run of exactly this id; `None` if there is none.
    pub fn get(&self, id: &str) -> Result<Option<RunFolder>, RunsError> {
        match check_id(id) {
            Ok(()) => self.open(id),
            Err(_) => Ok(None),
        }
    }

    /// The names of the folders of all runs, in their order.
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
        let file = path.join(INFO);
        let text = match fs::read(&file) {
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

/// A run of which this process is the runner, for as long as this lives.
#[derive(Debug)]
#[non_exhaustive]
pub struct NewRun {
    /// Where it is.
    pub folder: RunFolder,
    /// Its log.
    pub log: RunLogWriter,
    /// Where clients come in.
    pub listener: Listener,
    /// The lock of a live runner. To be dropped last.
    pub lock: RunLock,
}

/// The lock of a run's folder.
///
/// It is given up by name, not by closing the file: a program that is being started in another thread has the
/// file open as well, for a moment.
#[derive(Debug)]
pub struct RunLock(File);

impl Drop for RunLock {
    fn drop(&mut self) {
        // If this fails, closing the file does it.
        let _ = self.0.unlock();
    }
}

/// The folder of a run.
#[derive(Debug, Clone)]
pub struct RunFolder {
    path: PathBuf,
    info: RunInfo,
}

impl RunFolder {
    /// What the run is.
    pub fn info(&self) -> &RunInfo {
        &self.info
    }

    /// The run's id.
    pub fn id(&self) -> &str {
        &self.info.run_id
    }

    /// The path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The log, behind the entry of this number; 0 is the beginning.
    pub fn log(&self, after: u64) -> Result<RunLogReader, RunsError> {
        RunLogReader::open(&self.path, after)
    }

    /// The newest entry of the log; `None` if there is none.
    pub fn last_line(&self) -> Result<Option<LogLine>, RunsError> {
        recover::last_line(&self.path)
    }

    /// Where the run stands. If its runner was killed, the log gets its end first.
    ///
    /// Only the runner locks the run's lock exclusively, so a shared lock that is refused means that it lives.
    /// Readers that append an end exclude each other by a lock of their own.
    pub fn settle(&self) -> Result<RunState, RunsError> {
        let file = self.open_lock()?;
        match file.try_lock_shared() {
            // A runner still cleans up after the end of its log.
            Err(TryLockError::WouldBlock) if self.has_end()? => return Ok(RunState::Ended),
            Err(TryLockError::WouldBlock) => return Ok(RunState::Live),
            Err(TryLockError::Error(error)) => return Err(self.cannot_lock(error)),
            Ok(()) => {}
        }
        let _ended = RunLock(file);
        let until = Instant::now() + LOCK_PATIENCE;
        while !self.has_end()? {
            if let Some(_recovering) = lock_exclusively(&self.path, RECOVERY)? {
                // Another reader may have been faster.
                if !self.has_end()? {
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

    /// Removes the run and its log, if it has ended; whether it is gone. Takes no space, so that it works on a
    /// full disk.
    pub fn remove(self) -> Result<bool, RunsError> {
        let Some(_lock) = lock_exclusively(&self.path, LOCK)? else {
            // Its runner lives, or a reader looks at it now.
            return Ok(false);
        };
        // Under another name first: no reader finds half of it.
        let name = format!("{HIDDEN}old-{}", self.info.run_id);
        let old = self.path.with_file_name(name);
        before(Step::RenameRemoved);
        fs::rename(&self.path, &old).map_err(RunsError::io("remove", &self.path))?;
        before(Step::RemoveFolder);
        fs::remove_dir_all(&old).map_err(RunsError::io("remove", &old))?;
        Ok(true)
    }

    /// Removes the socket: nothing listens there any more. For the runner, before it gives up the lock.
    pub fn close_socket(&self) {
        before(Step::RemoveSocket);
        // One that stays refuses connections, which is as good.
        let _ = fs::remove_file(self.path.join(crate::server::SOCKET));
    }

    /// How many bytes its log has.
    pub fn log_bytes(&self) -> u64 {
        fs::metadata(self.path.join(FILE)).map_or(0, |about| about.len())
    }

    /// When something was last written to its log, in milliseconds since the Unix epoch.
    pub fn changed_at(&self) -> Option<u64> {
        let changed = fs::metadata(self.path.join(FILE)).ok()?.modified().ok()?;
        Some(teamster_core::time::epoch_ms_of(changed))
    }

    fn has_end(&self) -> Result<bool, RunsError> {
        Ok(self.last_line()?.is_some_and(|line| line.is_end()))
    }

    fn open_lock(&self) -> Result<File, RunsError> {
        open_lock(&self.path.join(LOCK)).map_err(RunsError::io("open", self.path.join(LOCK)))
    }

    fn cannot_lock(&self, error: io::Error) -> RunsError {
        RunsError::io("lock", self.path.join(LOCK))(error)
    }
}

/// Whether the id can be the name of a folder.
fn check_id(id: &str) -> Result<(), RunsError> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':');
    if id.is_empty() || id.len() > 100 || id.starts_with(HIDDEN) || !id.chars().all(fits) {
        return Err(RunsError::InvalidId { id: id.to_owned() });
    }
    Ok(())
}

fn open_lock(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
}

/// The lock of this name in a run's folder; `None` while another process has it.
pub(crate) fn lock_exclusively(folder: &Path, name: &str) -> Result<Option<RunLock>, RunsError> {
    let path = folder.join(name);
    let file = open_lock(&path).map_err(RunsError::io("open", &path))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(RunLock(file))),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(RunsError::io("lock", path)(error)),
    }
}

/// Makes a folder that only its owner can enter; its parents as any others.
pub fn make_private(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        made => made,
    }
}

fn write_synced(path: &Path, content: &io::Result<Vec<u8>>) -> io::Result<()> {
    let content = content
        .as_ref()
        .map_err(|error| io::Error::other(error.to_string()))?;
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    io::Write::write_all(&mut file, content)?;
    file.sync_data()
}

fn sync_folder(path: &Path) -> Result<(), RunsError> {
    File::open(path)
        .and_then(|folder| folder.sync_all())
        .map_err(RunsError::io("sync", path))
}
