//! `.worktreeinclude`: files that git ignores and that a worktree gets all the same, such as `.env`.
//!
//! The file is in the root of the user's tree and has the syntax of `.gitignore`, as Claude Code defined it
//! (<https://code.claude.com/docs/en/worktrees>). A file is copied if it matches and is ignored by git, in the user's tree
//! and in the worktree alike, so that it never becomes a part of a commit.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::symlink;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, bail};
use teamster_core::text::printable;

use crate::git::{self, git_bytes};
use crate::step::before_change;

const FILE: &str = ".worktreeinclude";
/// Number of files that are named in a warning.
const NAMED: usize = 3;

/// Copies what is to be included from the user's tree. Returns warnings.
pub(super) fn copy(source: &Path, target: &Path) -> Vec<String> {
    let copied = matching(source).and_then(|listed| {
        let here = ignored(source, &listed)?;
        copy_ignored(source, target, &joined(&here))
    });
    copied.unwrap_or_else(|error| vec![format!("`worktree`: {FILE} was not used: {error:#}")])
}

/// Returns the paths of the files that a tree includes.
pub(crate) fn listed(source: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let listed = matching(source)?;
    let paths = ignored(source, &listed)?.into_iter();
    Ok(paths
        .map(|path| PathBuf::from(OsString::from_vec(path)))
        .collect())
}

/// Copies those of the files of a folder that git ignores in a worktree. `paths` end with zeros. Returns warnings.
pub(crate) fn copy_ignored(
    source: &Path,
    target: &Path,
    paths: &[u8],
) -> anyhow::Result<Vec<String>> {
    let mut failed = Vec::new();
    for path in ignored(target, paths)? {
        let path = Path::new(OsStr::from_bytes(&path));
        if let Err(error) = copy_one(source, target, path) {
            failed.push(format!(
                "{} ({error:#})",
                printable(&path.to_string_lossy())
            ));
        }
    }
    if failed.is_empty() {
        return Ok(Vec::new());
    }
    let more = failed.len().saturating_sub(NAMED);
    failed.truncate(NAMED);
    let more = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    Ok(vec![format!(
        "`worktree`: files of {FILE} were not copied: {}{more}",
        failed.join(", ")
    )])
}

/// Returns the paths that match a pattern of the file and are not tracked, each with a zero at its end.
fn matching(source: &Path) -> anyhow::Result<Vec<u8>> {
    if !fs::symlink_metadata(source.join(FILE)).is_ok_and(|it| it.is_file()) {
        return Ok(Vec::new());
    }
    let exclude = format!("--exclude-from={FILE}");
    git_bytes(
        source,
        ["ls-files", "--others", "--ignored", "-z", &exclude],
    )
}

/// Returns paths in one text, each with a zero at its end.
fn joined(paths: &BTreeSet<Vec<u8>>) -> Vec<u8> {
    let ended = paths.iter().flat_map(|path| path.iter().chain([&0]));
    ended.copied().collect()
}

/// Returns those of the paths that git ignores in a worktree, which need not have them.
fn ignored(tree: &Path, paths: &[u8]) -> anyhow::Result<BTreeSet<Vec<u8>>> {
    if paths.is_empty() {
        return Ok(BTreeSet::new());
    }
    let mut command = git::command(tree);
    command.args(["check-ignore", "-z", "--stdin"]);
    // 1: none is.
    let listed = git::run_with_input_or(command, paths, 1)?;
    let listed = listed.split(|byte| *byte == 0).filter(|it| !it.is_empty());
    Ok(listed.map(<[u8]>::to_vec).collect())
}

fn copy_one(source: &Path, target: &Path, path: &Path) -> anyhow::Result<()> {
    let (from, to) = (source.join(path), target.join(path));
    let about = match fs::symlink_metadata(&from) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        about => about?,
    };
    let kind = about.file_type();
    if fs::symlink_metadata(&to).is_ok() {
        return Ok(());
    }
    make_parents(target, path)?;
    if kind.is_symlink() {
        let leads_to = fs::read_link(&from)?;
        if !is_inside(path, &leads_to) {
            bail!("a link that leads out of the repository");
        }
        return symlink(leads_to, to).context("cannot be linked");
    }
    // A nested repository is listed as a folder, a pipe as a file.
    if !kind.is_file() {
        bail!("not a file");
    }
    before_change();
    // With its permissions, and as a clone where the file system has such.
    fs::copy(from, to).map(drop).context("cannot be copied")
}

/// Creates the folders above a file, through no link.
fn make_parents(target: &Path, path: &Path) -> anyhow::Result<()> {
    let mut folder = target.to_owned();
    for part in path.parent().into_iter().flat_map(Path::components) {
        let Component::Normal(part) = part else {
            bail!("a path out of the repository");
        };
        folder.push(part);
        match fs::symlink_metadata(&folder) {
            Ok(about) if about.is_dir() => {}
            Ok(_) => bail!(
                "{} is not a folder there",
                printable(&folder.to_string_lossy())
            ),
            Err(_) => fs::create_dir(&folder)?,
        }
    }
    Ok(())
}

/// Returns whether a link at this path of a tree leads to a path of the tree.
fn is_inside(path: &Path, leads_to: &Path) -> bool {
    let mut depth = path.components().count().saturating_sub(1);
    for part in leads_to.components() {
        match part {
            Component::CurDir => {}
            Component::Normal(_) => depth += 1,
            Component::ParentDir if depth > 0 => depth -= 1,
            _ => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_leads_inside_or_not() {
        let inside = |path: &str, to: &str| is_inside(Path::new(path), Path::new(to));
        assert!(inside("a/b", "../c/d"));
        assert!(inside("a", "./b"));
        assert!(!inside("a", "../b"));
        assert!(!inside("a/b", "../../c"));
        assert!(!inside("a", "/etc/passwd"));
        assert!(!inside("a/b", "c/../../../d"));
    }
}
