//! The directory of an agent, and what the loop and others leave for each other in `.orchestrator`.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use teamster_process::{DRAFT_PREFIX, FileMode, replace_file};

#[cfg(test)]
mod tests;

/// Where everything lies that is not the agent's own work.
pub const ORCHESTRATOR: &str = ".orchestrator";

/// The loop holds the lock on this one.
pub(crate) const LOCK: &str = "loop.lock";

/// So much is read of a file of JSON, in bytes. All of them are far shorter.
const LONGEST_JSON: u64 = 1 << 20;
/// Longer than it takes to write one.
const LONGEST_WRITE: Duration = Duration::from_mins(1);

/// A file whose existence is a flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Flag {
    /// The tick did something: sleep is short.
    DidWork,
    /// Begin the next tick with an empty context.
    ClearSession,
    /// End the agent and start another.
    ResetSession,
}

impl Flag {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::DidWork, Self::ClearSession, Self::ResetSession];

    /// The name of its file.
    pub fn file_name(self) -> &'static str {
        match self {
            Self::DidWork => "did-work",
            Self::ClearSession => "clear-session",
            Self::ResetSession => "reset-session",
        }
    }

    /// Where it is while what it asks for is being done: it is consumed by this rename, so that one which is
    /// set meanwhile is another one, and one whose loop is killed meanwhile is found by the next.
    fn taken_name(self) -> String {
        format!("{}.taken", self.file_name())
    }
}

/// Why an agent's directory cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FolderError {
    /// It is not there, or no directory, or cannot be entered.
    #[error("the agent's directory {} cannot be used: {error}", path.display())]
    Unreachable {
        /// Which.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// Something in it cannot be made or read.
    #[error("{}: {error}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// Another loop is running there.
    #[error(
        "a loop is running in {} already{}; wake it with SIGUSR1 or end it with SIGTERM",
        path.display(),
        pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default()
    )]
    Busy {
        /// Where.
        path: PathBuf,
        /// Its process id, if it has reported it.
        pid: Option<u32>,
    },
}

/// The directory of an agent. While this lives no other loop runs there.
#[derive(Debug)]
pub struct AgentFolder {
    directory: PathBuf,
    orchestrator: PathBuf,
    lock: File,
    predecessor: Option<u32>,
}

impl AgentFolder {
    /// Opens it and makes what is missing: `.orchestrator` and an empty `MEMORY.md`.
    pub fn open(directory: &Path) -> Result<Self, FolderError> {
        let unreachable = |error| FolderError::Unreachable {
            path: directory.to_owned(),
            error,
        };
        let found = fs::canonicalize(directory).map_err(unreachable)?;
        // It is entered and read, not only found.
        fs::read_dir(&found).map_err(unreachable)?;
        let orchestrator = found.join(ORCHESTRATOR);
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |error| FolderError::File { path, error }
        };
        fs::create_dir_all(&orchestrator).map_err(failed(&orchestrator))?;
        let (lock, predecessor) = lock(&orchestrator.join(LOCK), &found)?;
        sweep(&orchestrator);
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

    /// Makes `.orchestrator` again, with the lock in it, if they were removed; whether that was so.
    /// The agent's directory is not made again.
    pub fn mend(&mut self) -> Result<bool, FolderError> {
        if self.is_locked() {
            return Ok(false);
        }
        // Not the agent's directory too: if that is gone, it is not wanted.
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

    /// Whether the lock that this has is still the one that others find.
    pub(crate) fn is_locked(&self) -> bool {
        is_same(&self.lock, &self.path(LOCK))
    }

    /// The process id of the loop before this one, if it was killed.
    pub(crate) fn predecessor(&self) -> Option<u32> {
        self.predecessor
    }

    /// Where the agent works.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// A file in `.orchestrator`.
    pub fn path(&self, name: &str) -> PathBuf {
        self.orchestrator.join(name)
    }

    /// Removes what a loop with a new session does not want: flags and lists of earlier ones. What cannot be
    /// removed, such as a directory with something in it.
    pub fn remove_stale(&self) -> Vec<io::Error> {
        let flags = Flag::ALL.map(|flag| [flag.file_name().to_owned(), flag.taken_name()]);
        let flags = flags.as_flattened().iter().map(String::as_str);
        let errors = flags.chain(["tools.json"]).filter_map(|name| {
            let error = self.remove(name).err()?;
            Some(self.error_with_path(name, &error))
        });
        errors.collect()
    }

    /// Sets again what a loop had taken that was killed before it was done. What is in the way of that.
    pub fn set_again(&self) -> Vec<io::Error> {
        let errors = Flag::ALL.into_iter().filter_map(|flag| {
            let taken = flag.taken_name();
            let set = fs::rename(self.path(&taken), self.path(flag.file_name()));
            let error = match set {
                Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                // One is a file and the other a directory; it is set in any case.
                Err(_) if self.is_set(flag) => self.remove(&taken).err(),
                set => set.err(),
            };
            Some(self.error_with_path(&taken, &error?))
        });
        errors.collect()
    }

    /// The error with the name of its file.
    fn error_with_path(&self, name: &str, error: &io::Error) -> io::Error {
        io::Error::new(
            error.kind(),
            format!("{}: {error}", self.path(name).display()),
        )
    }

    /// Whether a flag is set.
    pub fn is_set(&self, flag: Flag) -> bool {
        fs::symlink_metadata(self.path(flag.file_name())).is_ok()
    }

    /// Takes a flag, to do what it asks for; whether it was set. Until it is [`done`](Self::done), it is not
    /// lost.
    pub fn take(&self, flag: Flag) -> io::Result<bool> {
        match fs::rename(self.path(flag.file_name()), self.path(&flag.taken_name())) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The request of a flag is done.
    pub fn done(&self, flag: Flag) -> io::Result<()> {
        remove(&self.path(&flag.taken_name()))
    }

    /// Replaces a file of JSON in `.orchestrator` as a whole.
    pub fn write_json(&self, name: &str, value: &impl Serialize) -> io::Result<()> {
        write_json(&self.path(name), value)
    }

    /// Reads one. A file that is missing or no such JSON is none.
    pub fn read_json<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        read_json(&self.path(name))
    }

    /// Removes a file in `.orchestrator`. One that is not there is no error.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        remove(&self.path(name))
    }

    /// Appends values to a file with one of JSON a line, all with one write.
    pub fn append_json_lines(&self, name: &str, values: &[impl Serialize]) -> io::Result<()> {
        append_json_lines(&self.path(name), values)
    }
}

impl Drop for AgentFolder {
    fn drop(&mut self) {
        // A later reader of the process id would take another process for this one. The lock goes after this.
        let _ = self.lock.set_len(0);
    }
}

/// Reads a file of JSON. One that is missing, no such JSON or much too long is none.
pub(crate) fn read_json<T: DeserializeOwned>(path: &Path) -> Option<T> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        // A pipe in its place, without a writer, is not waited for.
        options.custom_flags(nix::fcntl::OFlag::O_NONBLOCK.bits());
    }
    let mut text = Vec::new();
    let file = options.open(path).ok()?;
    file.take(LONGEST_JSON).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

/// Appends values to a file with one of JSON a line, and rotates it when it has grown to so many bytes; the
/// last is kept beside it.
pub(crate) fn append_json_lines_within(
    path: &Path,
    values: &[impl Serialize],
    max_bytes: u64,
) -> io::Result<()> {
    if fs::metadata(path).is_ok_and(|file| file.len() >= max_bytes) {
        let mut old = path.to_owned().into_os_string();
        old.push(".1");
        // What is in the way of the old one must not end the new one.
        fs::rename(path, old).or_else(|_| fs::remove_file(path))?;
    }
    append_json_lines(path, values)
}

fn append_json_lines(path: &Path, values: &[impl Serialize]) -> io::Result<()> {
    let mut lines = Vec::new();
    for value in values {
        serde_json::to_writer(&mut lines, value)?;
        lines.push(b'\n');
    }
    let mut options = OpenOptions::new();
    let mut file = (options.create(true).append(true).read(true)).open(path)?;
    // A line that was cut off stays one line.
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

/// Reads the last whole line of a file with one JSON value a line.
pub(crate) fn read_last_json_line<T: DeserializeOwned>(path: &Path) -> Option<T> {
    /// So much of the end is read, in bytes. A line is far shorter.
    const END: u64 = 64 << 10;
    if !fs::metadata(path).ok()?.is_file() {
        return None;
    }
    let mut file = File::open(path).ok()?;
    let length = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(END)))
        .ok()?;
    let mut text = Vec::new();
    file.take(END).read_to_end(&mut text).ok()?;
    let mut lines = text.split(|byte| *byte == b'\n').rev();
    lines.find_map(|line| serde_json::from_slice(line).ok())
}

/// Replaces a file of JSON as a whole: a reader sees the old one or the new one.
pub(crate) fn write_json(path: &Path, value: &impl Serialize) -> io::Result<()> {
    let mut text = serde_json::to_vec_pretty(value)?;
    text.push(b'\n');
    // Others read these files.
    replace_file(path, &text, FileMode::New)
}

/// Removes what a writer has left that was killed. One that cannot be removed does no harm.
fn sweep(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let is_new = entry
            .file_name()
            .as_encoded_bytes()
            .starts_with(DRAFT_PREFIX.as_bytes());
        let written = entry.metadata().and_then(|file| file.modified());
        let age = written.map(|written| written.elapsed().unwrap_or_default());
        // A younger one may be that of a supervisor, who is about to put it in its place.
        if is_new && age.is_ok_and(|age| age > LONGEST_WRITE) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        // A flag may be set by `mkdir`.
        Err(error) => fs::remove_dir(path).map_err(|_| error),
        Ok(()) => Ok(()),
    }
}

/// Whether this file is the one that is found there.
fn is_same(file: &File, path: &Path) -> bool {
    let Ok(there) = fs::metadata(path) else {
        return false;
    };
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let id = |data: fs::Metadata| (data.dev(), data.ino());
        file.metadata().is_ok_and(|data| id(data) == id(there))
    }
    #[cfg(not(unix))]
    {
        // There an open file cannot be removed.
        let _ = (file, there);
        true
    }
}

/// The lock of a directory, with the process id of its holder in its file; and that of a holder that was
/// killed.
fn lock(path: &Path, directory: &Path) -> Result<(File, Option<u32>), FolderError> {
    let failed = |error| FolderError::File {
        path: path.to_owned(),
        error,
    };
    let mut options = OpenOptions::new();
    let options = options.create(true).truncate(false).read(true).write(true);
    let mut file = options.open(path).map_err(failed)?;
    let locked = file.try_lock();
    let mut pid = String::new();
    // It is no process id.
    let _ = (&mut file).take(20).read_to_string(&mut pid);
    let pid = pid.trim().parse().ok();
    match locked {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            return Err(FolderError::Busy {
                path: directory.to_owned(),
                pid,
            });
        }
        Err(TryLockError::Error(error)) => return Err(failed(error)),
    }
    file.set_len(0).map_err(failed)?;
    file.rewind().map_err(failed)?;
    writeln!(file, "{}", std::process::id()).map_err(failed)?;
    Ok((file, pid))
}
