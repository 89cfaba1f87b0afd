//! Preparation of a run's folder, before readers find it.

use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind};
use std::mem;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use crate::folder::{
    HIDDEN, INFO, LOCK, check_id, lock_exclusively, make_private, sync_folder, write_synced,
};
use crate::log::FILE;
use crate::server::Listener;
use crate::step::{Step, before};
use crate::{LogLimits, NewRun, RunFolder, RunInfo, RunLock, RunLogWriter, RunsError};

/// Run whose folder is complete and synced, but not visible to readers. Dropping it removes the folder.
#[derive(Debug)]
pub struct DraftRun {
    draft: DraftFolder,
    root: PathBuf,
    info: RunInfo,
    log: RunLogWriter,
    listener: Listener,
    lock: RunLock,
}

/// Folder that is removed when this is dropped.
#[derive(Debug)]
struct DraftFolder(PathBuf);

impl Drop for DraftFolder {
    fn drop(&mut self) {
        // Without the draft the run never existed. A draft that cannot be removed does no harm.
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl DraftRun {
    pub(crate) fn new(root: &Path, info: &RunInfo, limits: LogLimits) -> Result<Self, RunsError> {
        check_id(&info.run_id)?;
        make_private(root).map_err(RunsError::io("make", root))?;
        let exists = || RunsError::Exists {
            id: info.run_id.clone(),
        };
        if root.join(&info.run_id).exists() {
            return Err(exists());
        }
        let path = root.join(format!("{HIDDEN}new-{}", info.run_id));
        before(Step::MakeDraft);
        (DirBuilder::new().mode(0o700).create(&path)).map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => exists(),
            _ => RunsError::io("make", &path)(error),
        })?;
        let draft = DraftFolder(path);
        let path = &draft.0;
        before(Step::CreateLock);
        let lock = lock_exclusively(path, LOCK)?.ok_or_else(|| RunsError::Locked {
            id: info.run_id.clone(),
        })?;
        before(Step::CreateSocket);
        let listener = Listener::bind(path)?;
        before(Step::WriteInfo);
        let file = path.join(INFO);
        write_synced(&file, &serde_json::to_vec(info).map_err(io::Error::from))
            .map_err(RunsError::io("write", &file))?;
        before(Step::CreateLog);
        // It is empty, so it is its name in the folder that must outlive a crash of the machine.
        let log =
            RunLogWriter::open(path, limits).map_err(RunsError::io("make", path.join(FILE)))?;
        before(Step::SyncDraft);
        sync_folder(path)?;
        Ok(Self {
            root: root.to_owned(),
            info: info.clone(),
            draft,
            log,
            listener,
            lock,
        })
    }

    /// Accepts the run: after this returns, every reader finds it, even after a crash of this process or the
    /// machine.
    ///
    /// # Errors
    ///
    /// Fails if another process created the run first, or if the folder cannot be renamed or synced.
    pub fn accept(self) -> Result<NewRun, RunsError> {
        let path = self.root.join(&self.info.run_id);
        before(Step::RenameDraft);
        // Fails if another process created the run first: its folder is not empty.
        fs::rename(&self.draft.0, &path).map_err(|error| match error.kind() {
            ErrorKind::DirectoryNotEmpty | ErrorKind::AlreadyExists => RunsError::Exists {
                id: self.info.run_id.clone(),
            },
            _ => RunsError::io("make", &path)(error),
        })?;
        mem::forget(self.draft);
        before(Step::SyncRuns);
        sync_folder(&self.root)?;
        Ok(NewRun {
            log: self.log.moved_to(&path),
            folder: RunFolder::new(path, self.info),
            listener: self.listener,
            lock: self.lock,
        })
    }
}
