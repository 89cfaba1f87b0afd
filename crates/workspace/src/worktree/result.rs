//! Result of a worktree.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, bail};
use teamster_core::text::{one_line, plural};
use teamster_core::{WorkspaceKind, WorkspaceResult};

use super::folder::{Info, Kind, make};
use super::lfs;
use super::record::{self, Record};
use crate::diff::Range;
use crate::git::{self, git};
use crate::snapshot::Snapshot;
use crate::step::before_change;
use crate::submodules;

/// The changes of a worktree, without what they are.
#[derive(Default)]
struct State {
    /// The last commit; that at which the worktree began if its branch has none.
    head: String,
    commits: u64,
    /// Number of files that are not committed.
    files: u64,
    /// Descriptions of work in submodules that is nowhere else.
    submodules: Vec<String>,
}

impl State {
    fn read(info: &Info) -> anyhow::Result<Self> {
        let submodules = submodules::unsaved(&info.path);
        // Their changed files are named with them.
        let ignored = if submodules.is_empty() {
            "none"
        } else {
            "dirty"
        };
        let status = [
            "status",
            "--porcelain",
            "--untracked-files=all",
            &format!("--ignore-submodules={ignored}"),
        ];
        let mut command = git::command(&info.path);
        // It only reads: the index stays as it is.
        command.env("GIT_OPTIONAL_LOCKS", "0");
        let files = git::run(command.args(lfs::options(&info.path)).args(status))?;
        let head = git(
            &info.path,
            ["rev-parse", "--verify", "--quiet", "HEAD^{commit}"],
        );
        let head = head.unwrap_or_else(|_| info.base.clone());
        Ok(Self {
            commits: commits(&info.path, &info.base, &head)?,
            head,
            files: files.lines().count() as u64,
            submodules,
        })
    }

    /// Describes the changes; `None` if there are none.
    fn description(&self, base: &str) -> Option<String> {
        let mut parts = Vec::new();
        if self.commits > 0 {
            parts.push(plural(self.commits, "commit"));
        }
        if self.files > 0 {
            parts.push(format!(
                "{} not committed",
                plural(self.files, "changed file")
            ));
        }
        if parts.is_empty() && self.head != base {
            parts.push("another commit".to_owned());
        }
        parts.extend_from_slice(&self.submodules);
        (!parts.is_empty()).then(|| parts.join(", "))
    }
}

/// Describes the changes in a workspace. A worktree that git cannot read counts as changed.
pub(super) fn changes(info: &Info) -> Option<String> {
    if !info.path.exists() {
        return None;
    }
    if info.kind == Kind::Empty {
        let has_files = fs::read_dir(&info.path).map_or(true, |mut it| it.next().is_some());
        return has_files.then(|| "it has files".to_owned());
    }
    match State::read(info) {
        Ok(state) => state.description(&info.base),
        Err(_) => Some("git cannot read it".to_owned()),
    }
}

/// Returns the result of a workspace in which no agent was started.
pub(super) fn unused(info: &Info) -> WorkspaceResult {
    let kind = match info.kind {
        Kind::Worktree => WorkspaceKind::Worktree,
        Kind::Empty => WorkspaceKind::Empty,
    };
    let mut result = WorkspaceResult::new(kind, &info.base);
    result.directory = Some(info.path.to_string_lossy().into_owned());
    result.branch = Some(info.branch.clone()).filter(|branch| !branch.is_empty());
    result
}

/// Finds out what is left in a workspace that no process works in, and keeps it in refs of the repository. `record` is the
/// folder of the run's record.
pub(super) fn keep(info: &Info, record: &Path) -> WorkspaceResult {
    let mut result = unused(info);
    if info.kind == Kind::Empty {
        result.dirty = Some(changes(info).is_some());
        return result;
    }
    let kept = if info.path.exists() {
        result.branch = branch(info);
        State::read(info).and_then(|state| keep_all(&mut result, state, info, record))
    } else {
        result.directory = None;
        keep_branch(&mut result, info, record)
    };
    if let Err(error) = kept {
        result.error = Some(one_line(&format!("{error:#}")));
    }
    result
}

/// The folder of notes of runs that use a workspace which was made for another run.
const GUESTS: &str = "runs";

/// Notes that the run with this record uses a workspace, so that it is found if the run is killed.
pub(super) fn note_guest(folder: &Path, record: &Path) -> io::Result<()> {
    let id = record.file_name().unwrap_or_default();
    if folder.file_name() != Some(id) {
        before_change();
        make(&folder.join(GUESTS))?;
        fs::write(folder.join(GUESTS).join(id), "")?;
    }
    Ok(())
}

/// Removes that note.
pub(super) fn forget_guest(folder: &Path, record: &Path) {
    before_change();
    let id = record.file_name().unwrap_or_default();
    let _ = fs::remove_file(folder.join(GUESTS).join(id));
}

/// Keeps what is left in a workspace by runs whose processes were killed. The caller holds the folder's lock.
pub(super) fn keep_of_killed(root: &Path, folder: &Path, info: &Info) {
    let guests = fs::read_dir(folder.join(GUESTS)).into_iter().flatten();
    let guests = guests.flatten().map(|it| it.file_name());
    let owner = folder.file_name().map(OsStr::to_owned);
    for id in owner.into_iter().chain(guests) {
        let Some(id) = id.to_str() else {
            continue;
        };
        let record = record::folder(root, id);
        if let Ok(Some(known)) = Record::read(&record)
            && known.result.is_none()
        {
            Record::end(info, &keep(info, &record), &record);
        }
        forget_guest(folder, &record);
    }
}

/// Keeps the commits and files of a worktree, and fills in the result as far as that is possible.
fn keep_all(
    result: &mut WorkspaceResult,
    state: State,
    info: &Info,
    record: &Path,
) -> anyhow::Result<()> {
    let head = state.head;
    result.dirty = Some(state.files > 0 || !state.submodules.is_empty());
    result.unsaved = state.submodules;
    result.commits = Some(state.commits);
    result.head = Some(head.clone());
    let mut end = head.clone();
    if head != info.base {
        set(info, record, HEAD, &head)?;
    }
    if state.files > 0 {
        let kept = || -> anyhow::Result<_> {
            let snapshot = Snapshot::new(&info.path, index_file(record));
            let tree = snapshot.tree(&head)?;
            let is_new = tree.id != git(&info.path, ["rev-parse", &format!("{head}^{{tree}}")])?;
            let message = "Uncommitted changes at the end of a run";
            let commit = is_new.then(|| snapshot.commit(&tree.id, &head, message, None));
            let commit = commit.transpose()?;
            if let Some(commit) = &commit {
                set(info, record, WIP, commit)?;
            }
            Ok((commit, tree.left_out))
        };
        let (commit, left_out) =
            kept().context("what is not committed is only in the worktree's folder")?;
        result.unsaved.extend(left_out);
        end = commit.clone().unwrap_or(end);
        result.wip = commit;
    }
    fill_in_figures(result, &info.path, &end)
}

/// Fills in the figures from the base to this commit.
fn fill_in_figures(
    result: &mut WorkspaceResult,
    directory: &Path,
    end: &str,
) -> anyhow::Result<()> {
    let range = Range {
        repository: directory,
        base: &result.base,
        head: end,
        objects: None,
    };
    let figures = range.figures()?;
    result.files_changed = Some(figures.files_changed);
    result.insertions = Some(figures.insertions);
    result.deletions = Some(figures.deletions);
    Ok(())
}

/// Keeps the commits on the branch of a worktree whose folder was deleted.
fn keep_branch(result: &mut WorkspaceResult, info: &Info, record: &Path) -> anyhow::Result<()> {
    let branch = format!("refs/heads/{}", info.branch);
    let head = git(
        &info.repository,
        ["rev-parse", "--verify", "--quiet", &branch],
    );
    if let Ok(head) = head {
        result.commits = Some(commits(&info.repository, &info.base, &head)?);
        result.head = Some(head.clone());
        if head != info.base {
            set(info, record, HEAD, &head)?;
        }
        fill_in_figures(result, &info.repository, &head)?;
    }
    bail!("the folder was deleted before the end, with what was not committed")
}

/// Returns the path of a temporary index. Several processes may look at one worktree at the same time.
pub(super) fn index_file(record: &Path) -> PathBuf {
    static LOOKS: AtomicU64 = AtomicU64::new(0);
    let number = LOOKS.fetch_add(1, Ordering::Relaxed);
    record.join(format!("index-{}-{number}", std::process::id()))
}

/// Name of the ref of a run's last commit.
pub(super) const HEAD: &str = "head";
/// Name of the ref of what is not committed.
pub(super) const WIP: &str = "wip";

/// Returns the full name of a ref of the run with this record.
pub(super) fn reference(record: &Path, name: &str) -> String {
    let id = record.file_name().unwrap_or_default().to_string_lossy();
    crate::bundle::reference(&id, name)
}

fn set(info: &Info, record: &Path, name: &str, commit: &str) -> anyhow::Result<()> {
    let mut command = git::command(if info.path.exists() {
        &info.path
    } else {
        &info.repository
    });
    git::without_side_effects(&mut command);
    let message = "teamster: end of a run";
    command.args([
        "update-ref",
        "-m",
        message,
        &reference(record, name),
        commit,
    ]);
    before_change();
    git::run(&mut command).map(drop)
}

fn commits(directory: &Path, base: &str, head: &str) -> anyhow::Result<u64> {
    let range = format!("{base}..{head}");
    let count = git(directory, ["rev-list", "--count", &range, "--"])?;
    count.parse().context("git printed no number")
}

/// Returns the branch that the worktree is on: the agent may have renamed or changed it. Without, as during a rebase,
/// that of the run, if it still exists.
fn branch(info: &Info) -> Option<String> {
    let current = git(&info.path, ["symbolic-ref", "--quiet", "--short", "HEAD"]);
    current.ok().or_else(|| {
        let own = format!("refs/heads/{}", info.branch);
        let exists = git(&info.path, ["rev-parse", "--verify", "--quiet", &own]).is_ok();
        exists.then(|| info.branch.clone())
    })
}
