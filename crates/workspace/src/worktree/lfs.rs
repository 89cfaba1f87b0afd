//! Large files of Git LFS: git-lfs checks them out. Where it is not installed, a worktree has pointers to them, and a
//! warning names that.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use teamster_core::text::plural;

use crate::git::{git, git_bytes};

/// The beginning of a pointer (<https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md>).
const POINTER: &[u8] = b"version https://git-lfs.github.com/spec/v1\n";
/// Settings with which files are read and written as they are: pointers stay pointers, and content is no pointer.
pub(crate) const AS_THEY_ARE: [&str; 8] = [
    "-c",
    "filter.lfs.process=",
    "-c",
    "filter.lfs.smudge=",
    "-c",
    "filter.lfs.clean=",
    "-c",
    "filter.lfs.required=false",
];

/// Returns options of git with which a repository can be checked out and read whose settings name a git-lfs that is not
/// there.
pub(crate) fn options(repository: &Path) -> &'static [&'static str] {
    let is_set = |name: &str| git(repository, ["config", "--get", name]).is_ok();
    let is_wanted = is_set("filter.lfs.process") || is_set("filter.lfs.smudge");
    if is_wanted && git(repository, ["lfs", "version"]).is_err() {
        &AS_THEY_ARE
    } else {
        &[]
    }
}

/// Lets the worktrees of an uploaded repository have files as they are: there is no server that has their content, so what an
/// agent adds must not become a pointer to what only this machine has.
pub(crate) fn leave_out(repository: &Path) -> anyhow::Result<()> {
    for pair in AS_THEY_ARE.iter().filter(|it| **it != "-c") {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        if !git(repository, ["config", "--local", "--get", name]).is_ok_and(|it| it == value) {
            // A name may be there several times.
            git(
                repository,
                ["config", "--local", "--replace-all", name, value],
            )?;
        }
    }
    Ok(())
}

/// Returns a warning if pointers were checked out rather than files. `is_uploaded`: the tree is of an upload.
pub(super) fn pointers(tree: &Path, is_uploaded: bool) -> Option<String> {
    let attributes = fs::read_to_string(tree.join(".gitattributes")).unwrap_or_default();
    if !attributes.contains("filter=lfs") {
        return None;
    }
    let listed = git_bytes(tree, ["ls-files", "-z", "--", ":(attr:filter=lfs)"]).ok()?;
    let paths = listed.split(|byte| *byte == 0).filter(|it| !it.is_empty());
    let pointers = paths.filter(|path| is_pointer(&tree.join(OsStr::from_bytes(path))));
    let pointers = pointers.count() as u64;
    (pointers > 0).then(|| {
        let files = plural(pointers, "file");
        let why = if is_uploaded {
            "the content of what is committed is not submitted"
        } else {
            "install git-lfs and run `git lfs install`"
        };
        format!("`worktree`: {files} of Git LFS have no content, only pointers: {why}")
    })
}

fn is_pointer(path: &Path) -> bool {
    // A link is no file of LFS.
    if !fs::symlink_metadata(path).is_ok_and(|it| it.is_file()) {
        return false;
    }
    let mut start = [0; POINTER.len()];
    File::open(path).is_ok_and(|mut file| file.read_exact(&mut start).is_ok() && start == POINTER)
}
