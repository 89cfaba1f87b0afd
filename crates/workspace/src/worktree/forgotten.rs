//! What belongs to runs that are forgotten, in mirrors: a mirror is the machine's own, so their worktrees, branches and refs
//! go with them. In a repository of the user, worktrees and branches stay.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::SystemTime;

use super::folder::{Info, Kind, lock, read_info};
use super::keyed::{UNUSED, is_unused};
use super::record::{self, Record};
use super::remove_unfinished;
use crate::bundle::encoded_id;
use crate::git::git;
use crate::mirror::{CLEAN_UP, Mirror, OWN, RUNS, Wait};

/// Removes a branch of a forgotten run, unless a worktree is on it.
pub(super) fn remove_branch(repository: &Path, branch: &str) {
    // It may be gone.
    let _ = git(repository, ["branch", "--quiet", "-D", "--", branch]);
}

/// Removes the worktrees in `root` that are of a mirror in `mirrors` and of no run that is known, and from each mirror the
/// refs of such runs. A mirror without runs that was not used for a long time is removed. What is in use stays.
pub fn remove_forgotten(root: &Path, mirrors: &Path) {
    // As git names it.
    let Ok(mirrors) = mirrors.canonicalize() else {
        return;
    };
    // A run whose record cannot be read is not known to be forgotten.
    let Ok(records) = record::all(root) else {
        return;
    };
    let mut ids: BTreeSet<_> = records.iter().map(|(id, _)| encoded_id(id)).collect();
    let mut bases = BTreeSet::new();
    let mut used: BTreeSet<_> = BTreeSet::new();
    for (
        _,
        Record {
            repository, base, ..
        },
    ) in &records
    {
        used.insert(repository.clone());
        bases.insert(base.clone());
    }
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        let folder = entry.path();
        let id = entry.file_name().to_str().map(encoded_id);
        match read_info(&folder) {
            Ok(Some(info)) => {
                let is_known = records.iter().any(|(_, record)| record.path == info.path);
                let is_mirrors = info.repository.parent() == Some(&*mirrors);
                if is_mirrors && !is_known && remove(&folder, &info) {
                    continue;
                }
                used.insert(info.repository);
                bases.insert(info.base);
            }
            Ok(None) => {}
            Err(_) => return,
        }
        ids.extend(id);
    }
    for entry in fs::read_dir(&mirrors).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = path.file_name().and_then(|it| it.to_str());
        let Some(name) = name.and_then(|it| it.strip_suffix(".git")) else {
            continue;
        };
        // While a run is being prepared, what it needs has no folder yet.
        let Ok(mirror) = Mirror::open(&mirrors, name, Wait::new(CLEAN_UP, &|_| ())) else {
            continue;
        };
        let refs = git(&path, ["for-each-ref", "--format=%(refname)", OWN]).unwrap_or_default();
        let mut is_used = used.contains(&path);
        for reference in refs.lines() {
            let is_kept = match reference.strip_prefix(RUNS) {
                Some(id) => ids.contains(id),
                // An earlier version has made these, for commits that runs began at.
                None => match reference.rsplit_once("/commits/") {
                    Some((_, commit)) => bases.contains(commit),
                    None => continue,
                },
            };
            is_used |= is_kept;
            if !is_kept {
                let _ = git(&path, ["update-ref", "-d", reference]);
            }
        }
        mirror.clean_up(!is_used && mirror.unused_for(SystemTime::now()) > UNUSED);
    }
}

/// Removes a worktree that no process uses, and that belongs to no key. Returns whether it was removed.
fn remove(folder: &Path, info: &Info) -> bool {
    if info.kind == Kind::Empty || info.key.is_some() && !is_unused(folder) {
        return false;
    }
    let Ok(Some(lock)) = lock(folder) else {
        return false;
    };
    remove_unfinished(info);
    remove_branch(&info.repository, &info.branch);
    let is_removed = fs::remove_dir_all(folder).is_ok();
    let _ = lock.unlock();
    is_removed
}
