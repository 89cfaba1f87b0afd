//! What belongs to runs that are forgotten, in mirrors: a mirror is the machine's own, so their worktrees, branches and refs
//! go with them. In a repository of the user, worktrees and branches stay.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::folder::{Info, Kind, lock, read_info};
use super::keyed::{UNUSED, is_unused};
use super::record::{self, Record};
use super::remove_unfinished;
use crate::bundle::encoded_id;
use crate::git::git;
use crate::mirror::{Mirror, RUNS};

/// Removes a branch of a forgotten run, unless a worktree is on it.
pub(super) fn remove_branch(repository: &Path, branch: &str) {
    // It may be gone.
    let _ = git(repository, ["branch", "--quiet", "-D", "--", branch]);
}

/// Records of the runs whose workspaces are in a folder.
struct Known {
    records: Vec<(String, Record)>,
    /// The workspaces, with the names of their folders, which are the ids of the first runs in them.
    workspaces: Vec<(PathBuf, Option<Info>)>,
}

impl Known {
    /// Reads it: all of it, or what is missing here could be taken for forgotten.
    fn read(root: &Path) -> io::Result<Self> {
        let mut workspaces = Vec::new();
        for folder in record::entries(root)? {
            let info = read_info(&folder)?;
            workspaces.push((folder, info));
        }
        // Afterwards: a run that ends meanwhile has written its record before.
        let records = record::all(root)?;
        Ok(Self {
            records,
            workspaces,
        })
    }

    fn has_run_in(&self, path: &Path) -> bool {
        self.records.iter().any(|(_, record)| record.path == path)
    }

    /// Returns the ids of the runs, as in the names of refs.
    fn ids(&self) -> BTreeSet<String> {
        let first = (self.workspaces.iter())
            .filter_map(|(folder, _)| folder.file_name().and_then(|it| it.to_str()));
        let all = self.records.iter().map(|(id, _)| &**id).chain(first);
        all.map(encoded_id).collect()
    }

    fn repositories(&self) -> impl Iterator<Item = &Path> {
        let infos = self.workspaces.iter().filter_map(|(_, info)| info.as_ref());
        let infos = infos.map(|info| &*info.repository);
        let records = self.records.iter();
        infos.chain(records.map(|(_, record)| &*record.repository))
    }
}

/// Removes the worktrees in `root` that are of a mirror in `mirrors` and of no run that is known, and from each mirror the
/// refs of such runs. A mirror without runs that was not used for a long time is removed. What is in use stays until the
/// next time, and so does everything while something about the runs cannot be read.
pub fn remove_forgotten(root: &Path, mirrors: &Path) {
    // As git names it.
    let (Ok(mirrors), Ok(known)) = (mirrors.canonicalize(), Known::read(root)) else {
        return;
    };
    for (folder, info) in &known.workspaces {
        if let Some(info) = info
            && info.repository.parent() == Some(&*mirrors)
            && !known.has_run_in(&info.path)
        {
            remove(root, folder);
        }
    }
    for path in record::entries(&mirrors).unwrap_or_default() {
        let name = path.file_name().and_then(|it| it.to_str());
        let Some(name) = name.and_then(|it| it.strip_suffix(".git")) else {
            continue;
        };
        if let Ok(Some(mirror)) = Mirror::open_free(&mirrors, name) {
            clean_up(&mirror, root);
        }
    }
}

/// Removes the refs of forgotten runs from a mirror that no other process works on.
fn clean_up(mirror: &Mirror, root: &Path) {
    // Read now: a run whose worktree was made before has written that down.
    let Ok(known) = Known::read(root) else {
        return;
    };
    let path = mirror.path();
    let ids = known.ids();
    let refs = git(path, ["for-each-ref", "--format=%(refname)", RUNS]).unwrap_or_default();
    let mut is_used = known.repositories().any(|repository| repository == path);
    for reference in refs.lines() {
        let is_kept = reference
            .strip_prefix(RUNS)
            .is_some_and(|id| ids.contains(id));
        is_used |= is_kept;
        if !is_kept {
            let _ = git(path, ["update-ref", "-d", reference]);
        }
    }
    mirror.clean_up(!is_used && mirror.unused_for(SystemTime::now()) > UNUSED);
}

/// Removes a worktree that no process uses, that belongs to no key, and in which no run was that is known.
fn remove(root: &Path, folder: &Path) {
    let Ok(Some(lock)) = lock(folder) else {
        return;
    };
    // What was read before may have changed until it was locked.
    if let Ok(Some(info)) = read_info(folder)
        && info.kind != Kind::Empty
        && (info.key.is_none() || is_unused(folder))
        && Known::read(root).is_ok_and(|known| !known.has_run_in(&info.path))
    {
        remove_unfinished(&info);
        remove_branch(&info.repository, &info.branch);
        let _ = fs::remove_dir_all(folder);
    }
    let _ = lock.unlock();
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::super::{Kept, NewWorktree, Origin, Worktree};
    use super::*;

    const NAME: &str = "1111111111111111111111111111111111111111";
    const OWN: &str = "refs/teamster-mirror/";

    /// Makes a worktree of a mirror for a run that is forgotten.
    fn forgotten(folder: &Path) -> (PathBuf, PathBuf) {
        let mirrors = folder.canonicalize().unwrap().join("mirrors");
        let mirror = Mirror::open_free(&mirrors, NAME).unwrap().unwrap();
        let mirror = mirror.path().to_owned();
        let tree = git(&mirror, ["hash-object", "-w", "-t", "tree", "/dev/null"]).unwrap();
        let user = ["-c", "user.name=A", "-c", "user.email=a@b"];
        let commit = ["commit-tree", "-m", "first", &tree];
        let base = git(&mirror, user.iter().chain(&commit)).unwrap();
        let root = folder.join("worktrees");
        let mut wanted = NewWorktree::of(&mirror);
        wanted.from = Some(base);
        wanted.origin = Origin::Uploaded;
        let mut made = Worktree::create(&root, "gone", &wanted).unwrap();
        made.start().unwrap();
        fs::write(made.directory().join("work"), "of the agent").unwrap();
        made.finish();
        Kept::find(&root, "gone")
            .unwrap()
            .unwrap()
            .forget(Some(&mirrors))
            .unwrap();
        (root, mirrors)
    }

    #[test]
    fn unreadable_description_prevents_every_removal() {
        let folder = tempfile::tempdir().unwrap();
        let (root, mirrors) = forgotten(folder.path());
        let other = root.join("other");
        fs::create_dir_all(&other).unwrap();
        fs::write(other.join("worktree.json"), "{").unwrap();
        remove_forgotten(&root, &mirrors);
        assert!(root.join("gone").exists());
        fs::remove_dir_all(other).unwrap();
        remove_forgotten(&root, &mirrors);
        assert!(!root.join("gone").exists());
    }

    #[test]
    fn a_run_that_ends_after_the_look_is_not_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let (root, _) = forgotten(folder.path());
        let gone = root.join("gone");
        let info = read_info(&gone).unwrap().unwrap();
        let of_run = record::folder(&root, "r");
        Record::new(&info).write(&of_run).unwrap();
        remove(&root, &gone);
        assert!(info.path.join("work").exists());
        Record::remove(&of_run);
        remove(&root, &gone);
        assert!(!gone.exists());
    }

    #[test]
    fn mirror_in_use_is_skipped_and_runs_are_known_by_folder() {
        let folder = tempfile::tempdir().unwrap();
        let (root, mirrors) = forgotten(folder.path());
        let held = Mirror::open_free(&mirrors, NAME).unwrap().unwrap();
        let refs = || git(held.path(), ["for-each-ref", "--format=%(refname)", OWN]).unwrap();
        let head = git(held.path(), ["rev-parse", "teamster/gone"]).unwrap();
        for id in ["gone", "late"] {
            held.receive(id, &head, None).unwrap();
        }
        let begun = Instant::now();
        remove_forgotten(&root, &mirrors);
        assert!(begun.elapsed() < Duration::from_secs(8));
        assert_eq!(refs().lines().count(), 3, "{}", refs());
        // It has no description yet.
        fs::create_dir(root.join("late")).unwrap();
        let path = held.path().to_owned();
        drop(held);
        remove_forgotten(&root, &mirrors);
        let refs = git(&path, ["for-each-ref", "--format=%(refname)", OWN]).unwrap();
        assert_eq!(refs, format!("{OWN}latest\n{RUNS}late"));
    }
}
