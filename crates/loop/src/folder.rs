//! Directory of an agent, with the files and flags in `.orchestrator`.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use teamster_process::{DRAFT_PREFIX, FileMode, open_regular_file, replace_file};
use teamster_runner::try_lock_past_probes;

#[cfg(test)]
mod tests;

/// Folder of the loop's files, in the agent's directory.
pub const ORCHESTRATOR: &str = ".orchestrator";

/// File that the loop locks.
pub(crate) const LOCK: &str = "loop.lock";

/// Longest JSON file that is read, in bytes. Usual files are far shorter.
const LONGEST_JSON: u64 = 1 << 20;
/// Age from which a draft is stale. A write takes far less.
const LONGEST_WRITE: Duration = Duration::from_mins(1);

/// Flag that is set by the existence of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Flag {
    /// The tick did work: the next sleep is short.
    DidWork,
    /// The next tick begins with an empty context.
    ClearSession,
    /// The agent is ended and started with a new session.
    ResetSession,
}

impl Flag {
    /// All flags.
    pub const ALL: [Self; 3] = [Self::DidWork, Self::ClearSession, Self::ResetSession];

    /// Returns the name of the flag's file.
    pub fn file_name(self) -> &'static str {
        match self {
            Self::DidWork => "did-work",
            Self::ClearSession => "clear-session",
            Self::ResetSession => "reset-session",
        }
    }

    /// Returns the name of the file while the flag's request is being handled. The rename consumes the flag:
    /// one that is set meanwhile is a new request, and a later loop finds the request of a killed one.
    fn taken_name(self) -> String {
        format!("{}.taken", self.file_name())
    }
}

/// Error when an agent's directory is opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FolderError {
    /// The directory is missing, is no directory, or cannot be entered.
    #[error("the agent's directory {} cannot be used: {error}", path.display())]
    Unreachable {
        /// Path of the directory or file.
        path: PathBuf,
        /// I/O error.
        error: io::Error,
    },
    /// A file or folder in the directory cannot be created or read.
    #[error("{} cannot be created or read: {error}", path.display())]
    File {
        /// Path of the directory or file.
        path: PathBuf,
        /// I/O error.
        error: io::Error,
    },
    /// Another loop is running in the directory.
    #[error(
        "a loop is running in {} already{}; wake it with SIGUSR1 or end it with SIGTERM",
        path.display(),
        pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default()
    )]
    Busy {
        /// Path of the directory.
        path: PathBuf,
        /// Process id of that loop, if its lock file has it.
        pid: Option<u32>,
    },
}

/// Directory of an agent, locked. No other loop runs there until this is dropped.
#[derive(Debug)]
pub struct AgentFolder {
    directory: PathBuf,
    orchestrator: PathBuf,
    lock: File,
    predecessor: Option<u32>,
}

impl AgentFolder {
    /// Opens and locks the directory. Creates `.orchestrator` and an empty `MEMORY.md` if they are missing.
    ///
    /// # Errors
    ///
    /// Fails if the directory or a file in it cannot be used, or if another loop holds the lock.
    pub fn open(directory: &Path) -> Result<Self, FolderError> {
        let unreachable = |error| FolderError::Unreachable {
            path: directory.to_owned(),
            error,
        };
        let found = fs::canonicalize(directory).map_err(unreachable)?;
        // The directory must be readable, not only exist.
        fs::read_dir(&found).map_err(unreachable)?;
        let orchestrator = found.join(ORCHESTRATOR);
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |error| FolderError::File { path, error }
        };
        fs::create_dir_all(&orchestrator).map_err(failed(&orchestrator))?;
        let (lock, predecessor) = lock(&orchestrator.join(LOCK), &found)?;
        remove_stale_drafts(&orchestrator);
        let memory = found.join("MEMORY.md");
        match OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&memory)
        {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(failed(&memory)(error));
            }
            _ => {}
        }
        Ok(Self {
            directory: found,
            orchestrator,
            lock,
            predecessor,
        })
    }

    /// Restores `.orchestrator` and the lock if they were removed. Returns whether they were.
    ///
    /// # Errors
    ///
    /// Fails if the agent's directory is gone, which is not restored, or if another loop holds the lock.
    pub fn restore(&mut self) -> Result<bool, FolderError> {
        if self.is_locked() {
            return Ok(false);
        }
        // Not `create_dir_all`: an agent's directory that was removed stays so.
        match fs::create_dir(&self.orchestrator) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let path = self.directory.clone();
                return Err(FolderError::Unreachable { path, error });
            }
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                let path = self.orchestrator.clone();
                return Err(FolderError::File { path, error });
            }
            _ => {}
        }
        (self.lock, _) = lock(&self.path(LOCK), &self.directory)?;
        Ok(true)
    }

    /// Returns whether the locked file is still the one at its path.
    pub(crate) fn is_locked(&self) -> bool {
        is_same(&self.lock, &self.path(LOCK))
    }

    /// Returns the process id of the previous loop, if it was killed.
    pub(crate) fn predecessor(&self) -> Option<u32> {
        self.predecessor
    }

    /// Returns the directory, an absolute path without links.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns the path of a file in `.orchestrator`.
    pub fn path(&self, name: &str) -> PathBuf {
        self.orchestrator.join(name)
    }

    /// Removes the flags and the `tools.json` of earlier loops, before a loop with a new session. Returns the
    /// errors, such as for a directory that is not empty.
    pub fn remove_stale(&self) -> Vec<io::Error> {
        let flags = Flag::ALL.map(|flag| [flag.file_name().to_owned(), flag.taken_name()]);
        let flags = flags.as_flattened().iter().map(String::as_str);
        let errors = flags.chain(["tools.json"]).filter_map(|name| {
            let error = self.remove(name).err()?;
            Some(self.error_with_path(name, &error))
        });
        errors.collect()
    }

    /// Sets the flags again that a killed loop had taken and not done. Returns the errors.
    pub fn restore_taken_flags(&self) -> Vec<io::Error> {
        let errors = Flag::ALL.into_iter().filter_map(|flag| {
            let taken = flag.taken_name();
            let set = fs::rename(self.path(&taken), self.path(flag.file_name()));
            let error = match set {
                Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                // One is a file and the other a directory; the flag is set.
                Err(_) if self.is_set(flag) => self.remove(&taken).err(),
                set => set.err(),
            };
            Some(self.error_with_path(&taken, &error?))
        });
        errors.collect()
    }

    /// Adds the path of the file to an error.
    fn error_with_path(&self, name: &str, error: &io::Error) -> io::Error {
        io::Error::new(
            error.kind(),
            format!("{}: {error}", self.path(name).display()),
        )
    }

    /// Returns whether a flag is set.
    pub fn is_set(&self, flag: Flag) -> bool {
        fs::symlink_metadata(self.path(flag.file_name())).is_ok()
    }

    /// Takes a flag to handle its request. Returns whether it was set. The flag is kept on disk until it is
    /// [`done`](Self::done).
    pub fn take(&self, flag: Flag) -> io::Result<bool> {
        match fs::rename(self.path(flag.file_name()), self.path(&flag.taken_name())) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Removes a taken flag after its request was handled.
    pub fn done(&self, flag: Flag) -> io::Result<()> {
        remove(&self.path(&flag.taken_name()))
    }

    /// Replaces a JSON file in `.orchestrator` atomically.
    pub fn write_json(&self, name: &str, value: &impl Serialize) -> io::Result<()> {
        write_json(&self.path(name), value)
    }

    /// Reads a JSON file in `.orchestrator`. Returns `None` if it is missing or invalid.
    pub fn read_json<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        read_json(&self.path(name))
    }

    /// Removes a file in `.orchestrator`. A missing file is no error.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        remove(&self.path(name))
    }

    /// Appends values to a JSON Lines file in `.orchestrator`, in one write.
    pub fn append_json_lines(&self, name: &str, values: &[impl Serialize]) -> io::Result<()> {
        append_json_lines(&self.path(name), values)
    }
}

impl Drop for AgentFolder {
    fn drop(&mut self) {
        // The process id may be reused. The lock is released after this.
        let _ = self.lock.set_len(0);
    }
}

/// Reads a JSON file. Returns `None` if it is missing, invalid or too long.
pub(crate) fn read_json<T: DeserializeOwned>(path: &Path) -> Option<T> {
    let file = open_regular_file(OpenOptions::new().read(true), path).ok()?;
    let mut text = Vec::new();
    file.take(LONGEST_JSON).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

/// Appends values to a JSON Lines file. Rotates the file at `max_bytes` and keeps the previous one with the
/// suffix `.1`.
pub(crate) fn append_json_lines_within(
    path: &Path,
    values: &[impl Serialize],
    max_bytes: u64,
) -> io::Result<()> {
    if fs::metadata(path).is_ok_and(|file| file.len() >= max_bytes) {
        rotate(path)?;
    }
    append_json_lines(path, values)
}

/// Gives a file the suffix `.1`. Without a place for it, it is removed.
pub(crate) fn rotate(path: &Path) -> io::Result<()> {
    let mut old = path.to_owned().into_os_string();
    old.push(".1");
    fs::rename(path, old).or_else(|_| fs::remove_file(path))
}

fn append_json_lines(path: &Path, values: &[impl Serialize]) -> io::Result<()> {
    let mut lines = Vec::new();
    for value in values {
        serde_json::to_writer(&mut lines, value)?;
        lines.push(b'\n');
    }
    let mut options = OpenOptions::new();
    let mut file = (options.create(true).append(true).read(true)).open(path)?;
    // An incomplete last line is ended first.
    let mut last = [b'\n'];
    if file.seek(SeekFrom::End(0))? > 0 {
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
    }
    if last != *b"\n" {
        lines.insert(0, b'\n');
    }
    file.write_all(&lines)
}

/// Reads the last complete line of a JSON Lines file.
pub(crate) fn read_last_json_line<T: DeserializeOwned>(path: &Path) -> Option<T> {
    /// Bytes that are read from the end. A line is far shorter.
    const END: u64 = 64 << 10;
    let mut file = open_regular_file(OpenOptions::new().read(true), path).ok()?;
    let length = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(END)))
        .ok()?;
    let mut text = Vec::new();
    file.take(END).read_to_end(&mut text).ok()?;
    let mut lines = text.split(|byte| *byte == b'\n').rev();
    lines.find_map(|line| serde_json::from_slice(line).ok())
}

/// Replaces a JSON file atomically: readers see the old or the new content.
pub(crate) fn write_json(path: &Path, value: &impl Serialize) -> io::Result<()> {
    // Other users may read these files.
    write_json_for(FileMode::New, path, value)
}

/// Replaces a JSON file as [`write_json`] does, for these users.
pub(crate) fn write_json_for(
    mode: FileMode,
    path: &Path,
    value: &impl Serialize,
) -> io::Result<()> {
    let mut text = serde_json::to_vec_pretty(value)?;
    text.push(b'\n');
    replace_file(path, &text, mode)
}

/// Removes drafts of killed writers. A draft that cannot be removed does no harm.
fn remove_stale_drafts(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let is_new = entry
            .file_name()
            .as_encoded_bytes()
            .starts_with(DRAFT_PREFIX.as_bytes());
        let written = entry.metadata().and_then(|file| file.modified());
        let age = written.map(|written| written.elapsed().unwrap_or_default());
        // A younger draft may belong to a supervisor that is about to rename it.
        if is_new && age.is_ok_and(|age| age > LONGEST_WRITE) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        // A flag may have been set with `mkdir`.
        Err(error) => fs::remove_dir(path).map_err(|_| error),
        Ok(()) => Ok(()),
    }
}

/// Returns whether the open file is the one at this path.
fn is_same(file: &File, path: &Path) -> bool {
    let id = |data: fs::Metadata| (data.dev(), data.ino());
    let there = fs::metadata(path).map(id);
    there.is_ok_and(|there| file.metadata().is_ok_and(|data| id(data) == there))
}

/// Locks a directory. Also returns the process id of a previous holder that was killed.
fn lock(path: &Path, directory: &Path) -> Result<(File, Pid), FolderError> {
    let mut options = OpenOptions::new();
    let options = options.create(true).truncate(false).read(true).write(true);
    let locked = options.open(path).and_then(lock_as_process);
    let locked = locked.map_err(|error| FolderError::File {
        path: path.to_owned(),
        error,
    })?;
    locked.map_err(|pid| FolderError::Busy {
        path: directory.to_owned(),
        pid,
    })
}

/// The id of a process, if its lock file has one.
pub(crate) type Pid = Option<u32>;

/// Locks a file and writes the own process id to it. Returns it with the id of a previous holder that was killed, or only
/// the id of the process that holds the lock.
pub(crate) fn lock_as_process(mut file: File) -> io::Result<Result<(File, Pid), Pid>> {
    let locked = try_lock_past_probes(&file);
    let mut pid = String::new();
    // Longer content is no process id.
    let _ = (&mut file).take(20).read_to_string(&mut pid);
    let pid = pid.trim().parse().ok();
    match locked {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(Err(pid)),
        Err(TryLockError::Error(error)) => return Err(error),
    }
    file.set_len(0)?;
    file.rewind()?;
    writeln!(file, "{}", std::process::id())?;
    Ok(Ok((file, pid)))
}
