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
/// Settings with which pointers are checked out as they are.
const AS_POINTERS: [&str; 8] = [
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
        &AS_POINTERS
    } else {
        &[]
    }
}

/// Returns a warning if pointers were checked out rather than files.
pub(super) fn pointers(tree: &Path) -> Option<String> {
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
        format!(
            "`worktree`: {files} of Git LFS have no content, only pointers: install git-lfs and run `git lfs install`"
        )
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
