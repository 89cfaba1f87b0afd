//! A mirror: a bare repository that a machine keeps for runs that bring their commits along.
//!
//! Commits are kept by refs: those of runs, and that of the latest upload, so that the next one needs little.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, bail};
use tempfile::TempDir;

use crate::bundle::encoded_id;
use crate::git::{self, git};
use crate::large::{self, Store};
use crate::network::FOREGROUND;
use crate::step::before_change;
use crate::upload::{BASE, MODULES};

/// The folder of the refs of runs.
pub(crate) const RUNS: &str = "refs/teamster-mirror/runs/";
/// The ref of the latest upload.
const LATEST: &str = "refs/teamster-mirror/latest";
/// The folder of refs of the commits of submodules. Those of a bundle are in a folder that runs could have.
const KEPT_MODULES: &str = "refs/teamster-mirror/modules/";
/// The folder of refs of the commits that stand for large files which the mirror has.
const LARGE: &str = "refs/teamster-mirror/large/";
/// The folder in a mirror for a while.
const SCRATCH: &str = "teamster-scratch";
/// The file in a mirror whose time is that of its last use.
const USED: &str = "teamster-used";
/// Time between two tries to lock a mirror.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Time after which a wait is worth a notice.
const NOTICED: Duration = Duration::from_secs(2);
/// Time after which a process notes again that it works on a mirror.
const NOTED_EVERY: Duration = Duration::from_secs(1);

/// Limits of waiting for another process that works on a mirror.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Wait<'a> {
    /// Time for which a git command that uses a network may print nothing. For as long as that, the process may not run,
    /// such as one that is stopped.
    pub silence: Duration,
    /// It is called with a text for the user when a wait begins to be long.
    pub notice: &'a dyn Fn(String),
}

impl<'a> Wait<'a> {
    /// Creates the description of a wait.
    pub fn new(silence: Duration, notice: &'a dyn Fn(String)) -> Self {
        Self { silence, notice }
    }
}

/// The files of an upload that git ignores.
#[derive(Debug)]
pub struct IncludedFiles {
    bundle: PathBuf,
    /// Removed with this.
    _folder: TempDir,
}

impl IncludedFiles {
    /// Returns the path of their bundle.
    pub fn bundle(&self) -> &Path {
        &self.bundle
    }
}

/// A bare repository of a machine.
#[derive(Debug)]
pub struct Mirror {
    path: PathBuf,
    /// Locked while the mirror changes. It has the id of the process, which sets its time as long as it runs.
    lock: Arc<File>,
    /// Dropped, it ends the thread that sets the time.
    _noting: Sender<()>,
}

impl Mirror {
    /// Opens the mirror with this name in `root`, which is created if it is missing, and waits until no other process
    /// changes it. `name` is the full id of a commit.
    ///
    /// # Errors
    ///
    /// Fails if the name is not an id, if the folder cannot be written, or if the other process does not run.
    pub fn open(root: &Path, name: &str, wait: Wait<'_>) -> anyhow::Result<Self> {
        Self::open_with(root, name, |lock| take(lock, wait).map(|()| true))
            .map_err(git::with_version)?
            .context("cannot lock the mirror of the repository")
    }

    /// Opens a mirror that no other process works on; else `None`. Fails as [`open`](Self::open) does.
    pub(crate) fn open_free(root: &Path, name: &str) -> anyhow::Result<Option<Self>> {
        Self::open_with(root, name, try_take)
    }

    fn open_with(
        root: &Path,
        name: &str,
        take: impl FnOnce(&File) -> anyhow::Result<bool>,
    ) -> anyhow::Result<Option<Self>> {
        if !is_commit_id(name) {
            bail!(
                "\"{}\" is not the id of a commit",
                teamster_core::text::one_line(name)
            );
        }
        let cannot = || format!("cannot write in {}", root.display());
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(root)
            .with_context(cannot)?;
        let lock = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(root.join(format!("{name}.lock")))
            .with_context(cannot)?;
        if !take(&lock)? {
            return Ok(None);
        }
        let lock = Arc::new(lock);
        let noting = note_progress(lock.clone());
        let path = root.join(format!("{name}.git"));
        if !path.join("HEAD").exists() {
            // What a killed process has left is made again.
            match fs::remove_dir_all(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(error).with_context(cannot);
                }
                _ => {}
            }
            let draft = root.join(format!("{name}.new"));
            let _ = fs::remove_dir_all(&draft);
            let format = if name.len() == 64 { "sha256" } else { "sha1" };
            let format = format!("--object-format={format}");
            let init = ["init", "--quiet", "--bare", "--template=", &format];
            before_change();
            git(
                root,
                init.map(OsStr::new).into_iter().chain([draft.as_os_str()]),
            )?;
            separate_settings(&draft)?;
            before_change();
            fs::rename(&draft, &path).with_context(cannot)?;
        }
        Ok(Some(Self {
            path,
            lock,
            _noting: noting,
        }))
    }

    /// Returns which of these commits the machine has with their whole history, in any mirror named so; none if there is
    /// no mirror.
    ///
    /// # Errors
    ///
    /// Fails if git does.
    pub fn known(root: &Path, name: &str, offered: &[String]) -> anyhow::Result<Vec<String>> {
        let path = root.join(format!("{name}.git"));
        let offered = offered.iter().filter(|it| is_commit_id(it));
        if !is_commit_id(name) || !path.join("HEAD").exists() {
            return Ok(Vec::new());
        }
        let input: String = offered.clone().flat_map(|it| [it, "\n"]).collect();
        let mut present = git::command(&path);
        present.args(["cat-file", "--batch-check=%(objectname) %(objecttype)"]);
        let present = git::run_with_input(present, input.as_bytes())?;
        let present = String::from_utf8_lossy(&present);
        let present: Vec<_> = present
            .lines()
            .filter_map(|line| line.strip_suffix(" commit"))
            .collect();
        if present.is_empty() {
            return Ok(Vec::new());
        }
        // Commits that no ref keeps may have lost objects.
        let mut kept_by_none = git::command(&path);
        // Options are not read from stdin before git 2.42.
        kept_by_none.args(["rev-list", "--stdin", "--not", "--all"]);
        let input = format!("{}\n", present.join("\n"));
        let lost = git::run_with_input(kept_by_none, input.as_bytes())?;
        let lost = String::from_utf8_lossy(&lost);
        let lost: Vec<_> = lost.lines().collect();
        // Content may be lost, too.
        let store = Store::at(path.join("lfs"));
        let marks = git(
            &path,
            ["for-each-ref", "--format=%(objectname) %(refname)", LARGE],
        )?;
        let gone: BTreeSet<_> = (marks.lines())
            .filter_map(|line| line.split_once(' '))
            .filter(|(_, name)| {
                let oid = name.strip_prefix(LARGE);
                oid.is_some_and(|oid| !store.has(oid))
            })
            .map(|(mark, _)| mark)
            .collect();
        let known = present.into_iter();
        let known = known.filter(|it| !lost.contains(it) && !gone.contains(it));
        Ok(known.map(str::to_owned).collect())
    }

    /// Returns the path of the repository.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Takes the commit `base` of an upload for the run with this id, out of its bundle unless the mirror has it.
    ///
    /// # Errors
    ///
    /// Fails if the bundle is damaged, needs commits that the mirror does not have, or does not contain the commit. The
    /// mirror is unchanged then.
    pub fn receive(&self, id: &str, base: &str, bundle: Option<&Path>) -> anyhow::Result<()> {
        self.take_in(id, base, bundle).map_err(git::with_version)
    }

    fn take_in(&self, id: &str, base: &str, bundle: Option<&Path>) -> anyhow::Result<()> {
        if !is_commit_id(base) {
            bail!(
                "\"{}\" is not the id of a commit",
                teamster_core::text::one_line(base)
            );
        }
        if let Some(bundle) = bundle {
            let heads = ["bundle", "list-heads"].map(OsStr::new).into_iter();
            let heads = git(&self.path, heads.chain([bundle.as_os_str()]))
                .context("the upload is not a git bundle")?;
            let has_base = heads.lines().any(|head| head == format!("{base} {BASE}"));
            if !has_base && !Self::known_in(&self.path, base)? {
                bail!("the upload does not contain the commit {base}");
            }
            for head in heads.lines() {
                let name = head.split_once(' ').map_or("", |(_, name)| name);
                if name != BASE && !name.starts_with(MODULES) {
                    bail!("the upload is not one of a repository: it has other refs");
                }
            }
            let fetch = ["fetch", "--quiet", "--no-tags", "--no-write-fetch-head"];
            let args = FOREGROUND.iter().chain(&fetch).map(OsStr::new);
            let modules = format!("+{MODULES}*:{KEPT_MODULES}*");
            let ours = has_base.then(|| format!("+{BASE}:{LATEST}"));
            let refs = [&modules].into_iter().chain(&ours).map(OsStr::new);
            before_change();
            git(&self.path, args.chain([bundle.as_os_str()]).chain(refs))
                .context("the upload cannot be used")?;
        } else if Self::known_in(&self.path, base)? {
            before_change();
            git(&self.path, ["update-ref", LATEST, base])?;
        } else {
            bail!("the machine no longer has the commit {base}: submit the run again");
        }
        self.note_use()?;
        before_change();
        git(&self.path, ["update-ref", &run_ref(id), base])?;
        Ok(())
    }

    /// Takes the content of large files out of the bundle of an upload's included files, and returns the others.
    ///
    /// # Errors
    ///
    /// Fails if the bundle is damaged, or if the disk is full.
    pub fn receive_large_files(&self, included: &Path) -> anyhow::Result<IncludedFiles> {
        // What a killed process has left.
        let _ = fs::remove_dir_all(self.path.join(SCRATCH));
        let mut folder = tempfile::Builder::new();
        let folder = (folder.prefix(SCRATCH).rand_bytes(0)).tempdir_in(&self.path)?;
        let store = Store::at(self.path.join("lfs"));
        store.remove_old_drafts(SystemTime::now());
        let taken = large::take_out(included, folder.path(), &self.path, &store)?;
        let marks = large::marks(&self.path, folder.path(), taken.oids.iter(), true)?;
        let refs = marks
            .iter()
            .map(|(oid, mark)| format!("update {LARGE}{oid} {mark}\n"));
        let refs = refs.collect::<Vec<_>>().concat();
        let mut update = git::command(&self.path);
        update.args(["update-ref", "--stdin"]);
        before_change();
        git::run_with_input(update, refs.as_bytes())?;
        Ok(IncludedFiles {
            bundle: taken.rest,
            _folder: folder,
        })
    }

    fn known_in(path: &Path, commit: &str) -> anyhow::Result<bool> {
        if git(path, ["cat-file", "-e", &format!("{commit}^{{commit}}")]).is_err() {
            return Ok(false);
        }
        let lost = git(
            path,
            ["rev-list", "--max-count=1", commit, "--not", "--all"],
        )?;
        Ok(lost.is_empty())
    }

    /// Returns for how long no run has used the mirror. Of one that none has used yet it begins now.
    pub(crate) fn unused_for(&self, now: SystemTime) -> Duration {
        match fs::metadata(self.path.join(USED)).and_then(|it| it.modified()) {
            Ok(used) => now.duration_since(used).unwrap_or_default(),
            Err(_) => {
                // Else it begins the next time.
                let _ = self.note_use();
                Duration::ZERO
            }
        }
    }

    /// Removes commits that nothing needs, some time later; with `all`, the mirror.
    pub(crate) fn clean_up(&self, all: bool) {
        // What stays is cleaned up the next time.
        if all {
            // Without this file it is no mirror, so one that is removed in part is made again.
            before_change();
            let _ = fs::remove_file(self.path.join("HEAD"));
            before_change();
            let _ = fs::remove_dir_all(&self.path);
        } else {
            let settings = ["-c", "gc.autoDetach=false", "gc", "--auto", "--quiet"];
            let _ = git(&self.path, settings);
        }
    }

    /// Notes that a run uses the mirror.
    pub(crate) fn note_use(&self) -> io::Result<()> {
        fs::write(self.path.join(USED), "")
    }

    /// Removes what is kept for the run with this id.
    ///
    /// # Errors
    ///
    /// Fails if git does.
    pub fn forget(&self, id: &str) -> anyhow::Result<()> {
        git(&self.path, ["update-ref", "-d", &run_ref(id)]).map(drop)
    }
}

/// Lets each worktree of a mirror have settings of its own. Then only the mirror itself is bare.
fn separate_settings(mirror: &Path) -> anyhow::Result<()> {
    let shared = mirror.join("config");
    let set = |file: &Path, args: &[&str]| {
        let start = [OsStr::new("config"), OsStr::new("--file"), file.as_os_str()];
        before_change();
        git(mirror, start.into_iter().chain(args.iter().map(OsStr::new)))
    };
    set(&mirror.join("config.worktree"), &["core.bare", "true"])?;
    set(&shared, &["--unset-all", "core.bare"])?;
    set(&shared, &["extensions.worktreeConfig", "true"]).map(drop)
}

impl Drop for Mirror {
    fn drop(&mut self) {
        // Explicitly: the thread, or a process that is being spawned, may hold the file open for a moment.
        let _ = self.lock.unlock();
    }
}

/// Starts a thread that notes until the sender is dropped that this process works on a mirror. All that git does meanwhile
/// ends: a command that uses a network is limited by its own silence.
fn note_progress(lock: Arc<File>) -> Sender<()> {
    let (sender, end) = mpsc::channel();
    thread::spawn(move || {
        while end.recv_timeout(NOTED_EVERY) == Err(RecvTimeoutError::Timeout) {
            // Without it, others give up earlier.
            let _ = lock.set_modified(SystemTime::now());
        }
    });
    sender
}

/// The error of a mirror whose lock cannot be used.
const CANNOT_LOCK: &str = "cannot lock the mirror of the repository";

/// Locks a mirror and notes this process in the file, unless another one holds it. Returns whether it is locked.
fn try_take(mut lock: &File) -> anyhow::Result<bool> {
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(false),
        Err(TryLockError::Error(error)) => return Err(error).context(CANNOT_LOCK),
    }
    let mut note = || -> io::Result<()> {
        lock.set_len(0)?;
        lock.rewind()?;
        writeln!(lock, "{}", std::process::id())
    };
    note().context(CANNOT_LOCK)?;
    Ok(true)
}

/// Locks a mirror as [`try_take`] does, and waits for another process as long as that runs.
fn take(mut lock: &File, wait: Wait<'_>) -> anyhow::Result<()> {
    let begun = Instant::now();
    let mut is_noticed = false;
    while !try_take(lock)? {
        let waited = begun.elapsed();
        let is_noticeable = !is_noticed && waited >= NOTICED.min(wait.silence);
        let progress = lock.metadata().and_then(|it| it.modified());
        let idle = progress.map_or(waited, |at| at.elapsed().unwrap_or_default().min(waited));
        if is_noticeable || idle >= wait.silence {
            let mut holder = String::new();
            lock.rewind().context(CANNOT_LOCK)?;
            (lock.take(20).read_to_string(&mut holder)).context(CANNOT_LOCK)?;
            let holder = match holder.trim().parse::<u32>() {
                Ok(pid) => format!("process {pid}"),
                Err(_) => "another process".to_owned(),
            };
            if idle >= wait.silence {
                bail!(
                    "{holder} works on the mirror of the repository, and has made no progress for {} s: wait until it has \
                     ended, or end it",
                    wait.silence.as_secs_f64()
                );
            }
            is_noticed = true;
            (wait.notice)(format!(
                "waiting for {holder}, which works on the mirror of the repository"
            ));
        }
        thread::sleep(LOOK_EVERY);
    }
    Ok(())
}

/// Returns the ref that keeps the commit of the run with this id.
pub(crate) fn run_ref(id: &str) -> String {
    format!("{RUNS}{}", encoded_id(id))
}

pub(crate) fn is_commit_id(text: &str) -> bool {
    matches!(text.len(), 40 | 64)
        && text
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}
