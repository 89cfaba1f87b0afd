//! The end of a change whose process was killed.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use teamster_core::text::printable;

use super::{AFTER, BEFORE, Entry, HELD, JOURNAL, Journal, Stamp, folder, lock, move_file, remove};
use crate::git;
use crate::step::before_change;

/// The number of files that an error names.
const NAMED: usize = 10;

/// Moves back what a killed process has moved in the worktree with this root. Returns what was done, for the user.
/// Fails if that is not possible, such as because files were changed since. Nothing is moved then.
pub(in crate::take) fn recover(top: &Path, git_dir: &Path) -> anyhow::Result<Option<String>> {
    let folder = folder(top, git_dir);
    if !folder.exists() {
        return Ok(None);
    }
    let Some(_lock) = lock(git_dir)? else {
        return Ok(None);
    };
    let held = index_lock(top)?;
    let inode = |path: &Path| fs::symlink_metadata(path).map(|it| it.ino()).ok();
    let is_held = inode(&held).is_some_and(|it| Some(it) == inode(&folder.join(HELD)));
    let let_go = || -> anyhow::Result<()> {
        if is_held {
            before_change();
            fs::remove_file(&held).with_context(|| format!("cannot remove {}", held.display()))?;
        }
        remove(&folder);
        Ok(())
    };
    let journal = match fs::read(folder.join(JOURNAL)) {
        Ok(text) => serde_json::from_slice::<Journal>(&text)?,
        // It was killed before or after.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let_go()?;
            return Ok(None);
        }
        Err(error) => return Err(error.into()),
    };
    let is_there = |path: PathBuf| fs::symlink_metadata(path).is_ok();
    let is_placed = |entry: &Entry| {
        let is_moved = entry.before.is_none() || is_there(folder.join(BEFORE).join(&entry.path));
        is_moved && (entry.after.is_none() || !is_there(folder.join(AFTER).join(&entry.path)))
    };
    if !is_held && journal.files.iter().all(is_placed) {
        // All was done.
        remove(&folder);
        return Ok(None);
    }
    let changed = journal.files.iter().filter(|entry| {
        let there = Stamp::of(&top.join(&entry.path));
        let is_moved = Stamp::of(&folder.join(BEFORE).join(&entry.path)).is_some();
        // As it was, as it becomes, or between.
        !((there == entry.before && !is_moved)
            || there == entry.after
            || (there.is_none() && is_moved))
    });
    let changed: Vec<_> = changed.map(|entry| &*entry.path).collect();
    if !changed.is_empty() {
        bail!(changed_since(&folder, &changed));
    }
    undo(top, &folder, &journal)?;
    let_go()?;
    Ok(Some(
        "changes were being applied here when the process was killed: the files are as they were before that".to_owned(),
    ))
}

/// Returns the error of a change that cannot be undone, because these files were changed since.
pub(super) fn changed_since(folder: &Path, files: &[&Path]) -> String {
    let mut named: Vec<_> = files
        .iter()
        .take(NAMED)
        .map(|path| printable(&path.to_string_lossy()))
        .collect();
    if files.len() > NAMED {
        named.push(format!("{} more", files.len() - NAMED));
    }
    let files = match &*named {
        [] => String::new(),
        named => format!(", and these were changed since: {}", named.join(", ")),
    };
    let folder = printable(&folder.to_string_lossy());
    format!(
        "changes were being applied here when the process was killed{files}; the files as they were before are in \
         {folder}/{BEFORE}: copy back what you need of it, then remove {folder}"
    )
}

/// Moves back what was moved. Tries each, and returns the first error.
pub(super) fn undo(top: &Path, folder: &Path, journal: &Journal) -> anyhow::Result<()> {
    let (before, after) = (folder.join(BEFORE), folder.join(AFTER));
    let mut undone = Ok(());
    for entry in &journal.files {
        let there = top.join(&entry.path);
        if entry.after.is_some() && Stamp::of(&there) == entry.after {
            undone = undone.and(move_file(&there, &after.join(&entry.path)));
        }
    }
    // The deepest first.
    let mut folders: Vec<_> = journal.folders.iter().map(|it| &it.0).collect();
    folders.sort();
    for folder in folders.iter().rev() {
        let _ = fs::remove_dir(folder);
    }
    for entry in &journal.files {
        let kept = before.join(&entry.path);
        if Stamp::of(&kept).is_some() {
            undone = undone.and(move_file(&kept, &top.join(&entry.path)));
        }
    }
    undone.with_context(|| format!("files as they were before are in {}", before.display()))
}

/// Returns the path of the lock of a worktree's index.
fn index_lock(top: &Path) -> anyhow::Result<PathBuf> {
    let index = git::git_path(top, ["rev-parse", "--git-path", "index"])?;
    Ok(top.join(index).with_added_extension("lock"))
}
