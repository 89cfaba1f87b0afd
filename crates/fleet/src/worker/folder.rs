//! What a worker has on its disk: a folder for each claim.
//!
//! It is there before the agent starts, and outlives a crash of the machine: with the record, it tells the next worker
//! how far a run has come.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use teamster_core::{AgentError, WorkspaceResult};

use crate::names::RunKey;
use crate::protocol::{Folder, Tag};

/// File that the worker's process locks. It has a random number, which the folders of no other worker have.
const LOCK: &str = ".lock";
/// Prefix of folders that are drafts or being removed.
const HIDDEN: &str = ".";
const CLAIM: &str = "claim.json";
/// File that is there once the runner was started.
const BEGUN: &str = "begun";
/// File that is there before the runner is started: from then on, a run of this machine with the id may be this one.
const SPAWNS: &str = "spawns";
/// File with the reason why no agent is started.
const REFUSED: &str = "refused.json";
/// File with what was brought to the fleet.
const BROUGHT: &str = "brought.json";

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Kept {
    version: u32,
    nonce: Tag,
    revision: u64,
    decided: Decided,
}

/// What the machine decided about a run when it claimed it. The record has it too, but its owner can change that.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct Decided {
    /// Where the agent works, if the run does not name it.
    pub(super) directory: Option<PathBuf>,
    /// The longest time, in milliseconds.
    pub(super) max_time_ms: Option<u64>,
}

/// What became of the changes and files of an ended run. The end of the log in the fleet and the record both have it: it is
/// found out once for each claim.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct Brought {
    /// Why not all of them are in the fleet, and where they are; `None` if they are.
    pub(super) missing: Option<String>,
}

impl Brought {
    /// Adds what is missing to what a run has left in its workspace.
    pub(super) fn add_to(&self, workspace: Option<&mut WorkspaceResult>) {
        if let (Some(missing), Some(workspace)) = (&self.missing, workspace) {
            let known = workspace.error.take();
            let known = known.map(|error| format!("{error}; ")).unwrap_or_default();
            workspace.error = Some(format!("{known}{missing}"));
        }
    }
}

#[derive(Debug, Clone)]
pub(super) struct Folders {
    root: PathBuf,
}

impl Folders {
    pub(super) fn at(root: PathBuf) -> Self {
        Self { root }
    }

    /// Locks the folders for this process, and returns their number. Returns `None` if another one has them.
    pub(super) fn lock(&self) -> io::Result<Option<(File, Tag)>> {
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(0o700).create(&self.root)?;
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let mut file = options.mode(0o600).open(self.root.join(LOCK))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        if let Ok(machine) = text.parse() {
            return Ok(Some((file, machine)));
        }
        // The first process, or one that was killed here.
        let machine = Tag::random();
        file.set_len(0)?;
        file.rewind()?;
        file.write_all(machine.to_string().as_bytes())?;
        file.sync_all()?;
        Ok(Some((file, machine)))
    }

    /// Returns whether the disk ignores the case of names, as that of a Mac does.
    pub(super) fn ignores_case(&self) -> bool {
        self.root.join(LOCK.to_ascii_uppercase()).exists()
    }

    /// Returns the runs that have folders. Removes what a killed worker has left.
    pub(super) fn keys(&self) -> io::Result<Vec<RunKey>> {
        let mut keys = Vec::new();
        for entry in fs::read_dir(&self.root)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with(HIDDEN) {
                if name != LOCK {
                    let _ = fs::remove_dir_all(entry.path());
                }
            } else {
                keys.extend(RunKey::of_local(&name));
            }
        }
        keys.sort();
        Ok(keys)
    }

    fn path(&self, key: &RunKey) -> PathBuf {
        self.root.join(key.local())
    }

    /// Returns the folder of a run, without what its runner has. What has begun was not refused.
    pub(super) fn look(&self, key: &RunKey) -> io::Result<Option<Folder>> {
        match self.kept(key)? {
            Some(kept) => self.of_claim(key, kept.nonce, kept.revision).map(Some),
            None => Ok(None),
        }
    }

    /// Returns the folder of a run, as it is with this claim.
    pub(super) fn of_claim(&self, key: &RunKey, nonce: Tag, revision: u64) -> io::Result<Folder> {
        let path = self.path(key);
        Ok(Folder {
            nonce,
            revision,
            has_begun: path.join(BEGUN).try_exists()?,
            is_refused: path.join(REFUSED).try_exists()?,
        })
    }

    /// Returns what was decided at the claim; nothing without a folder.
    pub(super) fn decided(&self, key: &RunKey) -> io::Result<Decided> {
        Ok(self.kept(key)?.map(|kept| kept.decided).unwrap_or_default())
    }

    fn kept(&self, key: &RunKey) -> io::Result<Option<Kept>> {
        self.read(key, CLAIM)
    }

    /// Tries whether a folder can be made: a claim to a run would be of no use else.
    pub(super) fn try_out(&self) -> io::Result<()> {
        let draft = self.root.join(format!("{HIDDEN}try-{}", Tag::random()));
        DirBuilder::new().mode(0o700).create(&draft)?;
        let written = write_synced(&draft.join(CLAIM), &[0; 512]);
        fs::remove_dir_all(&draft)?;
        written
    }

    /// Makes the folder of a claim, in place of an older one.
    pub(super) fn make(
        &self,
        key: &RunKey,
        nonce: Tag,
        revision: u64,
        decided: Decided,
    ) -> io::Result<()> {
        self.remove(key)?;
        let draft = self
            .root
            .join(format!("{HIDDEN}new-{}-{nonce}", key.local()));
        let _ = fs::remove_dir_all(&draft);
        DirBuilder::new().mode(0o700).create(&draft)?;
        let kept = Kept {
            version: 1,
            nonce,
            revision,
            decided,
        };
        write_synced(&draft.join(CLAIM), &serde_json::to_vec(&kept)?)?;
        sync_folder(&draft)?;
        fs::rename(&draft, self.path(key))?;
        sync_folder(&self.root)
    }

    /// Writes down that the runner was started.
    pub(super) fn begun(&self, key: &RunKey) -> io::Result<()> {
        self.mark(key, BEGUN, b"")
    }

    /// Writes down that the runner is about to be started.
    pub(super) fn spawns(&self, key: &RunKey) -> io::Result<()> {
        self.mark(key, SPAWNS, b"")
    }

    /// Returns whether a runner may have been started.
    pub(super) fn may_have_spawned(&self, key: &RunKey) -> io::Result<bool> {
        self.path(key).join(SPAWNS).try_exists()
    }

    /// Writes down why no agent is started. The first reason stays.
    pub(super) fn refuse(&self, key: &RunKey, error: &AgentError) -> io::Result<()> {
        if self.path(key).join(REFUSED).try_exists()? {
            return Ok(());
        }
        self.write(key, REFUSED, error)
    }

    /// Returns the reason why no agent is started; `None` if one may be.
    pub(super) fn refusal(&self, key: &RunKey) -> io::Result<Option<AgentError>> {
        self.read(key, REFUSED)
    }

    /// Writes down what was brought to the fleet, unless someone has removed the folder: the run must come to its end.
    pub(super) fn keep_brought(&self, key: &RunKey, brought: &Brought) -> io::Result<()> {
        match self.write(key, BROUGHT, brought) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            written => written,
        }
    }

    /// Returns what was brought to the fleet; `None` before that is known.
    pub(super) fn brought(&self, key: &RunKey) -> io::Result<Option<Brought>> {
        self.read(key, BROUGHT)
    }

    /// Writes a file, which is complete or not there.
    fn write(&self, key: &RunKey, name: &str, content: &impl Serialize) -> io::Result<()> {
        let path = self.path(key);
        let draft = path.join(format!("{HIDDEN}{name}-{}", Tag::random()));
        write_synced(&draft, &serde_json::to_vec(content)?)?;
        fs::rename(&draft, path.join(name))?;
        sync_folder(&path)
    }

    /// Reads a file; `None` if it is not there.
    fn read<T: DeserializeOwned>(&self, key: &RunKey, name: &str) -> io::Result<Option<T>> {
        match fs::read(self.path(key).join(name)) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            json => Ok(Some(serde_json::from_slice(&json?)?)),
        }
    }

    fn mark(&self, key: &RunKey, name: &str, content: &[u8]) -> io::Result<()> {
        let path = self.path(key);
        match write_synced(&path.join(name), content) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            written => written?,
        }
        sync_folder(&path)
    }

    pub(super) fn remove(&self, key: &RunKey) -> io::Result<()> {
        let gone = self
            .root
            .join(format!("{HIDDEN}old-{}-{}", key.local(), Tag::random()));
        match fs::rename(self.path(key), &gone) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            renamed => renamed?,
        }
        sync_folder(&self.root)?;
        fs::remove_dir_all(gone)
    }
}

/// Returns whether a file can be read, and its content is not what was written: reading it again is of no use.
pub(super) fn is_damaged(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::InvalidData | ErrorKind::UnexpectedEof
    )
}

fn write_synced(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(content)?;
    file.sync_all()
}

fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

#[cfg(test)]
mod tests {
    use teamster_core::{ErrorCode, ErrorKind};

    use super::*;

    #[test]
    fn a_claim_replaces_an_older_one_and_is_found_again() {
        let dir = tempfile::tempdir().unwrap();
        let folders = Folders::at(dir.path().join("w1"));
        let (lock, machine) = folders.lock().unwrap().unwrap();
        assert!(folders.lock().unwrap().is_none());
        // A disk of either kind may be there, on each system.
        fs::write(dir.path().join("probe"), "").unwrap();
        let ignores_case = dir.path().join("PROBE").exists();
        assert_eq!(folders.ignores_case(), ignores_case);
        drop(lock);
        let (_lock, same) = folders.lock().unwrap().unwrap();
        assert_eq!(same, machine);
        let other = Folders::at(dir.path().join("w2"));
        assert_ne!(other.lock().unwrap().unwrap().1, machine);
        let key = RunKey::new("ann", "a.b:c");
        assert_eq!(folders.look(&key).unwrap(), None);
        let decided = Decided {
            directory: Some("/w".into()),
            max_time_ms: Some(5),
        };
        folders.make(&key, Tag::of(1), 7, decided.clone()).unwrap();
        assert_eq!(folders.decided(&key).unwrap(), decided);
        folders.begun(&key).unwrap();
        folders.begun(&key).unwrap();
        let begun = Folder {
            nonce: Tag::of(1),
            revision: 7,
            has_begun: true,
            is_refused: false,
        };
        assert_eq!(folders.look(&key).unwrap(), Some(begun));
        folders
            .make(&key, Tag::of(2), 9, Decided::default())
            .unwrap();
        assert_eq!(folders.decided(&key).unwrap(), Decided::default());
        let claimed = Folder {
            nonce: Tag::of(2),
            revision: 9,
            has_begun: false,
            is_refused: false,
        };
        assert_eq!(folders.look(&key).unwrap(), Some(claimed));
        assert_eq!(folders.refusal(&key).unwrap(), None);
        let error = |message| AgentError::new(ErrorCode::Io, ErrorKind::Internal, message);
        folders.refuse(&key, &error("no agent")).unwrap();
        folders.refuse(&key, &error("later")).unwrap();
        assert!(folders.look(&key).unwrap().unwrap().is_refused);
        let kept = folders.refusal(&key).unwrap().unwrap();
        assert_eq!(kept.message, "no agent");
        assert_eq!(folders.brought(&key).unwrap(), None);
        let brought = Brought {
            missing: Some("no room".to_owned()),
        };
        folders.keep_brought(&key, &brought).unwrap();
        assert_eq!(folders.brought(&key).unwrap(), Some(brought.clone()));
        let removed = RunKey::new("ann", "removed");
        folders.keep_brought(&removed, &brought).unwrap();
        assert_eq!(folders.brought(&removed).unwrap(), None);
        // Another claim finds out itself.
        folders
            .make(&key, Tag::of(2), 9, Decided::default())
            .unwrap();
        assert_eq!(folders.brought(&key).unwrap(), None);
        // What a killed worker has left is no run.
        fs::create_dir(dir.path().join("w1/.new-x")).unwrap();
        assert_eq!(folders.keys().unwrap(), std::slice::from_ref(&key));
        assert!(!dir.path().join("w1/.new-x").exists());
        // What a disk that fails has left of them.
        for content in ["", "{\"version\":1", "nonsense", "\0\0\0"] {
            fs::write(folders.path(&key).join(CLAIM), content).unwrap();
            fs::write(folders.path(&key).join(REFUSED), content).unwrap();
            fs::write(folders.path(&key).join(BROUGHT), content).unwrap();
            assert!(is_damaged(&folders.look(&key).unwrap_err()), "{content}");
            assert!(is_damaged(&folders.decided(&key).unwrap_err()), "{content}");
            assert!(is_damaged(&folders.refusal(&key).unwrap_err()), "{content}");
            assert!(is_damaged(&folders.brought(&key).unwrap_err()), "{content}");
            let found = folders.of_claim(&key, Tag::of(2), 9).unwrap();
            assert!(found.is_refused && !found.has_begun);
        }
        folders.remove(&key).unwrap();
        folders.remove(&key).unwrap();
        assert_eq!(folders.keys().unwrap(), []);
    }
}
