//! Worktrees that several runs share: that of a session key stays until the key starts over or is not used for a long time,
//! that of a session until it and those that continue it are forgotten.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::{Context, anyhow, bail};
use teamster_core::text::one_line;

use super::create::Start;
use super::folder::{INFO, Info, LOCK, Stays, Step, make, read_info, write_info};
use super::result::keep_of_killed;
use super::{NewWorktree, Origin, Outcome, Worktree, finish, record};
use crate::git::{common_dir, git};
use crate::step::before_change;

/// Time without a run after which a worktree no longer belongs to its key: the age at which logs are removed.
pub(super) const UNUSED: Duration = Duration::from_hours(90 * 24);

/// A session key, to which a worktree belongs.
#[derive(Debug, Clone)]
pub struct WorktreeKey {
    id: String,
    name: String,
    /// It is taken over from the worktree that has it.
    starts_over: bool,
}

impl WorktreeKey {
    /// Creates the key with this name. `id` is a text in hexadecimal digits that no other key has.
    pub fn new(id: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            name: name.into(),
            starts_over: false,
        }
    }

    /// Returns the key for a worktree of its own, which gets it when it is [started](Worktree::start).
    #[must_use]
    pub fn start_over(mut self) -> Self {
        self.starts_over = true;
        self
    }
}

/// Relation of a worktree to a key.
#[derive(Debug, Clone)]
pub(super) struct Keyed {
    root: PathBuf,
    key: WorktreeKey,
}

impl Worktree {
    /// Opens the worktree of a session key, or creates it in a folder of `root` with this id. With a key that
    /// [starts over](WorktreeKey::start_over), it is created in any case.
    ///
    /// # Errors
    ///
    /// As [`create`](Self::create); also if the key's worktree is of another repository.
    pub fn of_key(
        root: &Path,
        id: &str,
        wanted: &NewWorktree,
        key: &WorktreeKey,
    ) -> anyhow::Result<Self> {
        make(root).with_context(|| format!("cannot create {}", root.display()))?;
        let keyed = Keyed {
            root: root.to_owned(),
            key: key.clone(),
        };
        let lock = keyed.lock()?;
        if !key.starts_over
            && let Some((folder, _)) = keyed.find()
        {
            let opened = Self::open(folder, record::folder(root, id), wanted, keyed.clone())?;
            if let Some(opened) = opened {
                return Ok(opened);
            }
        }
        let mut made = Self::create(root, id, wanted)?;
        if !key.starts_over {
            made.info.key = Some(key.id.clone());
            made.write_info()?;
            made.share()?;
        }
        made.keyed = Some(keyed);
        let _ = lock.unlock();
        Ok(made)
    }

    /// Opens a worktree that exists. `None` if it cannot be used any more.
    fn open(
        folder: PathBuf,
        record: PathBuf,
        wanted: &NewWorktree,
        keyed: Keyed,
    ) -> anyhow::Result<Option<Self>> {
        let Some((file, info)) = enter(&keyed.root, &folder) else {
            return Ok(None);
        };
        let start = Start::find(&wanted.directory, wanted.origin)?;
        let name = one_line(&keyed.key.name);
        let advice = "start the conversation over with new_session, or use another key";
        let is_of = |path: &Path| {
            start
                .common()
                .is_ok_and(|it| common_dir(path).is_ok_and(|of| of == it))
        };
        if !is_of(&info.path) {
            bail!(
                "the worktree of \"{name}\" is of another repository ({}): run it there, {advice}",
                info.repository.display()
            );
        }
        if let Some(branch) = wanted.branch.as_ref().filter(|it| **it != info.branch) {
            bail!(
                "the worktree of \"{name}\" is on the branch {}, not on {}: {advice}",
                info.branch,
                one_line(branch)
            );
        }
        let mut warnings = Vec::new();
        if let Some(from) = wanted
            .from
            .as_ref()
            .filter(|_| wanted.origin == Origin::User)
        {
            warnings.push(format!(
                "the worktree of \"{name}\" exists already, so it does not start at {}",
                one_line(from)
            ));
        }
        let inside = wanted.subdirectory.as_ref().unwrap_or(&start.inside);
        let directory: PathBuf = info.path.join(inside).components().collect();
        Ok(Some(Self {
            directory: if directory.is_dir() {
                directory
            } else {
                info.path.clone()
            },
            info,
            folder,
            lock: Some(file),
            keyed: Some(keyed),
            record,
            uploaded: None,
            origin: wanted.origin,
            warnings,
        }))
    }

    /// Lets the worktree of an uploaded repository stay at the end, for sessions that continue this one
    /// ([`of_session`](Self::of_session)). It is removed when no run that used it is known any more, or after
    /// 90 days without one if nothing was changed.
    ///
    /// # Errors
    ///
    /// Fails if that cannot be written down.
    pub fn stay(mut self) -> anyhow::Result<Self> {
        self.info.stays = Some(Stays {
            known: self.uploaded.clone().unwrap_or_default(),
            directory: self.directory.clone(),
        });
        self.write_info()?;
        self.share()?;
        Ok(self)
    }

    /// Opens the worktree of an earlier session, which [stays](Self::stay), for one with the id `id` that continues it.
    ///
    /// # Errors
    ///
    /// Fails if it is gone, or if it belonged to that session alone.
    pub fn of_session(root: &Path, id: &str, first: &str) -> anyhow::Result<Self> {
        let folder = root.join(first);
        let shown = one_line(first);
        let gone = || {
            anyhow!(
                "the workspace of session {shown} is gone: the sessions that used it were forgotten, or none did for 90 days: \
                 begin a new one"
            )
        };
        let known = read_info(&folder)
            .with_context(|| format!("cannot read the description of {}", folder.display()))?
            .ok_or_else(gone)?;
        // Before it is locked: that session does not share it as long as it is live.
        let Some(Stays { known, directory }) = known.stays else {
            bail!("the workspace of session {shown} belongs to it alone: begin a new one");
        };
        let (file, mut info) = enter(root, &folder).ok_or_else(gone)?;
        // At its end, it is looked at again.
        info.kept = false;
        Ok(Self {
            directory: if directory.is_dir() {
                directory
            } else {
                info.path.clone()
            },
            info,
            folder,
            lock: Some(file),
            keyed: None,
            record: record::folder(root, id),
            uploaded: Some(known),
            origin: Origin::Uploaded,
            warnings: Vec::new(),
        })
    }

    /// Lets other runs use the worktree at the same time.
    fn share(&self) -> anyhow::Result<()> {
        let Some(lock) = &self.lock else {
            return Ok(());
        };
        lock.lock_shared()
            .with_context(|| format!("cannot lock {}", self.folder.display()))
    }

    /// Takes the key over from the worktree that had it.
    pub(super) fn take_key(&mut self) -> anyhow::Result<()> {
        let Some(keyed) = self.keyed.clone().filter(|it| it.key.starts_over) else {
            return Ok(());
        };
        let lock = keyed.lock()?;
        while let Some((folder, mut info)) = keyed.find() {
            info.key = None;
            before_change();
            write_info(&folder, &info)?;
            // Unless another run uses it, which then does this at its end.
            if let Ok(Some(lock)) = super::folder::lock(&folder) {
                finish(&folder, &mut info);
                let _ = lock.unlock();
            }
        }
        self.info.key = Some(keyed.key.id.clone());
        self.write_info()?;
        self.share()?;
        if let Some(keyed) = &mut self.keyed {
            keyed.key.starts_over = false;
        }
        let _ = lock.unlock();
        Ok(())
    }

    /// Returns the right to remove a worktree that several runs can share, if it belongs to no key and no session any more,
    /// or was never started, and no other run uses it.
    pub(super) fn last_of_shared(&mut self, lock: &File) -> bool {
        if let Ok(Some(now)) = read_info(&self.folder) {
            self.info.key = now.key;
            self.info.stays = now.stays;
            self.info.step = now.step;
        }
        // What was never started leaves nothing behind.
        if self.info.is_shared() && self.info.step >= Step::Started {
            return false;
        }
        let _ = lock.unlock();
        lock.try_lock().is_ok() && self.folder.join(INFO).exists()
    }
}

impl Keyed {
    /// Waits until no other process makes the worktree of this key, or of a few others.
    fn lock(&self) -> anyhow::Result<File> {
        let folder = self.root.with_extension("keys");
        let cannot = || format!("cannot lock in {}", folder.display());
        make(&folder).with_context(cannot)?;
        let name: String = self.key.id.chars().take(1).collect();
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(folder.join(name))
            .with_context(cannot)?;
        file.lock().with_context(cannot)?;
        Ok(file)
    }

    fn find(&self) -> Option<(PathBuf, Info)> {
        let entries = fs::read_dir(&self.root).into_iter().flatten().flatten();
        entries.into_iter().find_map(|entry| {
            let folder = entry.path();
            let info = read_info(&folder).ok().flatten()?;
            let is_it = info.key.as_ref() == Some(&self.key.id) && info.step > Step::Making;
            is_it.then_some((folder, info))
        })
    }
}

/// Locks a worktree together with other runs that use it. `None` if it cannot be used any more.
fn enter(root: &Path, folder: &Path) -> Option<(File, Info)> {
    // No other run uses it: what a killed one has left is not yet mixed with what this one will do.
    if folder.is_dir()
        && let Ok(Some(lock)) = super::folder::lock(folder)
    {
        if let Ok(Some(info)) = read_info(folder) {
            keep_of_killed(root, folder, &info);
        }
        let _ = lock.unlock();
    }
    let file = OpenOptions::new().read(true).open(folder.join(LOCK)).ok()?;
    file.lock_shared().ok()?;
    // Its last run may have removed it meanwhile.
    let info = read_info(folder).ok()??;
    let is_whole =
        info.path.join(".git").is_file() && git(&info.path, ["rev-parse", "HEAD"]).is_ok();
    is_whole.then_some((file, info))
}

/// Returns the outcome of a worktree that stays for other runs.
pub(super) fn kept(info: &Info) -> Outcome {
    let changes = super::changes(info).map_or_else(String::new, |it| format!("{it}, "));
    let what = if info.key.is_some() {
        "for the next run with the session key"
    } else {
        "for what continues the session"
    };
    Outcome::Kept(format!("{changes}{what}"))
}

/// Returns whether a key has not used its worktree for a long time.
pub(super) fn is_unused(folder: &Path) -> bool {
    let used = fs::metadata(folder.join(INFO)).and_then(|it| it.modified());
    used.is_ok_and(|used| {
        SystemTime::now()
            .duration_since(used)
            .is_ok_and(|it| it > UNUSED)
    })
}
