//! The directory of an agent, and what the loop and others leave for each other in `.orchestrator`.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Where everything lies that is not the agent's own work.
pub const ORCHESTRATOR: &str = ".orchestrator";

/// Whoever has the lock on this one is the loop.
const LOCK: &str = "loop.lock";

/// How the name of a file begins that is about to take the place of another.
const NEW: &str = ".new-";
/// So much is read of a file of JSON, in bytes. All of them are far shorter.
const LONGEST_JSON: u64 = 1 << 20;
/// Longer than it takes to write one.
const LONGEST_WRITE: Duration = Duration::from_mins(1);

/// A file whose being there says something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Flag {
    /// The tick did something: sleep is short.
    DidWork,
    /// Begin the next tick with an empty context.
    ClearSession,
    /// End the agent and start it anew.
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
        /// Its process id, if it has said so.
        pid: Option<u32>,
    },
}

/// The directory of an agent. While this lives no other loop runs there.
#[derive(Debug)]
pub struct AgentFolder {
    directory: PathBuf,
    orchestrator: PathBuf,
    lock: File,
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
        let lock = lock(&orchestrator.join(LOCK), &found)?;
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
        })
    }

    /// Makes `.orchestrator` again, with the lock in it, if somebody has removed them; whether that was so.
    /// The agent's directory is not made again.
    pub fn mend(&mut self) -> Result<bool, FolderError> {
        if self.is_locked() {
            return Ok(false);
        }
        // Not the agent's directory too: if that is gone, nobody wants it.
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
        self.lock = lock(&self.path(LOCK), &self.directory)?;
        Ok(true)
    }

    /// Whether the lock that this has is still the one that others find.
    pub(crate) fn is_locked(&self) -> bool {
        is_same(&self.lock, &self.path(LOCK))
    }

    /// Where the agent works.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// A file in `.orchestrator`.
    pub fn path(&self, name: &str) -> PathBuf {
        self.orchestrator.join(name)
    }

    /// What a loop that begins anew does not want: flags and lists of earlier ones.
    pub fn remove_stale(&self) -> io::Result<()> {
        let flags = Flag::ALL.map(|flag| [flag.file_name().to_owned(), flag.taken_name()]);
        for name in flags.as_flattened() {
            self.remove(name).map_err(|error| self.told(name, &error))?;
        }
        let name = "tools.json";
        self.remove(name).map_err(|error| self.told(name, &error))
    }

    /// Sets again what a loop had taken that was killed before it was done.
    pub fn set_again(&self) -> io::Result<()> {
        for flag in Flag::ALL {
            let taken = self.path(&flag.taken_name());
            match fs::rename(taken, self.path(flag.file_name())) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(self.told(flag.file_name(), &error));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The error with the name of its file.
    fn told(&self, name: &str, error: &io::Error) -> io::Error {
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

    /// What a flag asked for is done.
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
        let mut lines = Vec::new();
        for value in values {
            serde_json::to_writer(&mut lines, value)?;
            lines.push(b'\n');
        }
        let mut options = OpenOptions::new();
        let mut file = (options.create(true).append(true).read(true)).open(self.path(name))?;
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
}

/// Reads a file of JSON. One that is missing, no such JSON or much too long is none.
pub(crate) fn read_json<T: DeserializeOwned>(path: &Path) -> Option<T> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        // A pipe in its place, into which nobody writes, is not waited for.
        options.custom_flags(nix::fcntl::OFlag::O_NONBLOCK.bits());
    }
    let mut text = Vec::new();
    let file = options.open(path).ok()?;
    file.take(LONGEST_JSON).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

/// Replaces a file of JSON as a whole: a reader sees the old one or the new one.
pub(crate) fn write_json(path: &Path, value: &impl Serialize) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    builder.prefix(NEW);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // Others read these files: what the user's mask allows, as of any file.
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    let mut file = builder.tempfile_in(folder)?;
    let mut text = serde_json::to_vec_pretty(value)?;
    text.push(b'\n');
    file.write_all(&text)?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// Removes what a writer has left that was killed. That it cannot be removed is in nobody's way.
fn sweep(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let is_new = entry
            .file_name()
            .as_encoded_bytes()
            .starts_with(NEW.as_bytes());
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

/// The lock of a directory, with the process id of whoever has it in its file.
fn lock(path: &Path, directory: &Path) -> Result<File, FolderError> {
    let failed = |error| FolderError::File {
        path: path.to_owned(),
        error,
    };
    let mut options = OpenOptions::new();
    let options = options.create(true).truncate(false).read(true).write(true);
    let mut file = options.open(path).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut pid = String::new();
            // It is only for the message.
            let _ = file.read_to_string(&mut pid);
            return Err(FolderError::Busy {
                path: directory.to_owned(),
                pid: pid.trim().parse().ok(),
            });
        }
        Err(TryLockError::Error(error)) => return Err(failed(error)),
    }
    file.set_len(0).map_err(failed)?;
    writeln!(file, "{}", std::process::id()).map_err(failed)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn folder() -> (tempfile::TempDir, AgentFolder) {
        let directory = tempfile::tempdir().unwrap();
        let folder = AgentFolder::open(directory.path()).unwrap();
        (directory, folder)
    }

    fn names(folder: &AgentFolder) -> Vec<String> {
        let entries = fs::read_dir(folder.path("")).unwrap();
        let mut names: Vec<_> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name != "loop.lock")
            .collect();
        names.sort();
        names
    }

    #[test]
    fn what_is_missing_is_made_and_what_is_there_stays() {
        let directory = tempfile::tempdir().unwrap();
        let memory = directory.path().join("MEMORY.md");
        drop(AgentFolder::open(directory.path()).unwrap());
        assert_eq!(fs::read_to_string(&memory).unwrap(), "");
        fs::write(&memory, "keep").unwrap();
        drop(AgentFolder::open(directory.path()).unwrap());
        assert_eq!(fs::read_to_string(&memory).unwrap(), "keep");
    }

    #[test]
    fn a_directory_that_is_none_is_told() {
        let directory = tempfile::tempdir().unwrap();
        let missing = directory.path().join("x");
        let error = AgentFolder::open(&missing).unwrap_err();
        assert!(matches!(error, FolderError::Unreachable { .. }), "{error}");
        fs::write(&missing, "").unwrap();
        let error = AgentFolder::open(&missing).unwrap_err();
        assert!(matches!(error, FolderError::Unreachable { .. }), "{error}");
    }

    #[test]
    fn a_second_loop_is_refused_and_told_of_the_first() {
        let (directory, first) = folder();
        let error = AgentFolder::open(directory.path()).unwrap_err().to_string();
        let pid = format!("(pid {})", std::process::id());
        assert!(error.contains(&pid), "{error}");
        drop(first);
        AgentFolder::open(directory.path()).unwrap();
    }

    #[test]
    fn what_was_removed_meanwhile_is_made_again_with_its_lock() {
        let (directory, mut first) = folder();
        assert!(!first.mend().unwrap());
        fs::remove_dir_all(first.path("")).unwrap();
        assert!(first.mend().unwrap());
        assert!(!first.mend().unwrap());
        let error = AgentFolder::open(directory.path()).unwrap_err();
        assert!(matches!(error, FolderError::Busy { .. }), "{error}");
        // Who was slower is told.
        fs::remove_dir_all(first.path("")).unwrap();
        let _second = AgentFolder::open(directory.path()).unwrap();
        let error = first.mend().unwrap_err();
        assert!(matches!(error, FolderError::Busy { .. }), "{error}");
        // An agent's directory that is gone stays so.
        fs::remove_dir_all(directory.path()).unwrap();
        let error = first.mend().unwrap_err();
        assert!(matches!(error, FolderError::Unreachable { .. }), "{error}");
        assert!(!directory.path().exists());
    }

    #[test]
    fn a_flag_is_taken_once_and_one_that_is_set_meanwhile_is_another() {
        let (_directory, folder) = folder();
        let path = folder.path("clear-session");
        assert!(!folder.take(Flag::ClearSession).unwrap());
        fs::write(&path, "").unwrap();
        assert!(folder.is_set(Flag::ClearSession));
        assert!(folder.take(Flag::ClearSession).unwrap());
        assert!(!folder.is_set(Flag::ClearSession));
        fs::write(&path, "").unwrap();
        folder.done(Flag::ClearSession).unwrap();
        assert!(folder.is_set(Flag::ClearSession));
        assert_eq!(names(&folder), ["clear-session"]);
    }

    #[test]
    fn a_flag_that_was_taken_and_not_done_is_set_again() {
        let (_directory, folder) = folder();
        fs::write(folder.path("did-work"), "").unwrap();
        fs::create_dir(folder.path("reset-session")).unwrap();
        assert!(folder.take(Flag::DidWork).unwrap());
        assert!(folder.take(Flag::ResetSession).unwrap());
        folder.set_again().unwrap();
        assert!(folder.is_set(Flag::DidWork) && folder.is_set(Flag::ResetSession));
        fs::write(folder.path("tools.json"), "{}").unwrap();
        assert!(folder.take(Flag::DidWork).unwrap());
        folder.remove_stale().unwrap();
        assert!(names(&folder).is_empty(), "{:?}", names(&folder));
    }

    #[test]
    fn what_a_killed_writer_has_left_is_removed() {
        let (directory, first) = folder();
        for (name, seconds) in [(".new-old", 3600), (".new-young", 1), ("old", 3600)] {
            let file = File::create(first.path(name)).unwrap();
            let then = std::time::SystemTime::now() - Duration::from_secs(seconds);
            file.set_modified(then).unwrap();
        }
        drop(first);
        let folder = AgentFolder::open(directory.path()).unwrap();
        assert_eq!(names(&folder), [".new-young", "old"]);
    }

    #[test]
    fn json_is_replaced_as_a_whole_and_lines_are_appended_whole() {
        let (_directory, folder) = folder();
        for n in [1, 2] {
            folder.write_json("x.json", &json!({ "n": n })).unwrap();
        }
        let read: Value = folder.read_json("x.json").unwrap();
        assert_eq!(read, json!({ "n": 2 }));
        fs::write(folder.path("y.json"), "{").unwrap();
        assert_eq!(folder.read_json::<Value>("y.json"), None);
        fs::write(folder.path("u.jsonl"), "{\"cut").unwrap();
        let lines = [json!(1), json!(2)];
        folder.append_json_lines("u.jsonl", &lines).unwrap();
        folder.append_json_lines("u.jsonl", &lines[..1]).unwrap();
        let text = fs::read_to_string(folder.path("u.jsonl")).unwrap();
        assert_eq!(text, "{\"cut\n1\n2\n1\n");
        assert_eq!(names(&folder), ["u.jsonl", "x.json", "y.json"]);
    }
}
