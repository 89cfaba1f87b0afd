//! Large files of Git LFS: git-lfs checks them out. Where it is not installed, a worktree has pointers to them, and a
//! warning names that. In an uploaded repository, it or a filter of ours does, with the content that came along.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;

use anyhow::Context;
use teamster_core::text::plural;

use crate::git::{self, git, git_bytes};
use crate::large::{POINTER, POINTER_SIZE, Store, oid_of};
use crate::step::before_change;

/// The files of Git LFS in an index, for `git ls-files`.
pub(crate) const FILES: &str = ":(attr:filter=lfs)";
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
/// The filter of uploaded repositories, and its file in their mirror.
const FILTER: &str = include_str!("lfs-filter.sh");
const FILTER_FILE: &str = "teamster-lfs.sh";

/// The setting of a filter; empty without one.
fn setting(repository: &Path, name: &str) -> String {
    git(repository, ["config", "--get", name]).unwrap_or_default()
}

/// Returns whether the settings of a repository name git-lfs rather than a filter of ours.
fn is_wanted(repository: &Path) -> bool {
    let smudge = setting(repository, "filter.lfs.smudge");
    let is_other = !smudge.is_empty() && !smudge.contains(FILTER_FILE);
    is_other || !setting(repository, "filter.lfs.process").is_empty()
}

/// Returns whether the settings of a repository name git-lfs, and it is there.
pub(crate) fn is_installed(repository: &Path) -> bool {
    is_wanted(repository) && git(repository, ["lfs", "version"]).is_ok()
}

/// Returns options of git with which a repository can be checked out and read whose settings name a git-lfs that is not
/// there.
pub(crate) fn options(repository: &Path) -> &'static [&'static str] {
    if is_wanted(repository) && git(repository, ["lfs", "version"]).is_err() {
        &AS_THEY_ARE
    } else {
        &[]
    }
}

/// Lets git-lfs put content into this folder, and write nothing into the repository.
pub(crate) fn store_in(command: &mut Command, folder: &Path) {
    let mut storage = OsStr::new("lfs.storage=").to_owned();
    storage.push(folder);
    command.arg("-c").arg(storage);
    command.args(["-c", "lfs.repositoryformatversion=0"]);
}

/// Checks out the content of large files in a worktree or a submodule of an uploaded repository, as far as the mirror has it.
/// Returns a warning if it does not have all.
///
/// From then on, large files there are pointers in commits, as where it came from: the mirror gets their content. If git
/// itself has the content of one of them, all stay as git has them.
pub(crate) fn fill_in(tree: &Path, mirror: &Path) -> anyhow::Result<Option<String>> {
    let listed = git_bytes(tree, ["ls-files", "-z", "--", FILES])?;
    let paths = listed.split(|byte| *byte == 0).filter(|it| !it.is_empty());
    let (mut pointers, mut others) = (Vec::new(), 0);
    for path in paths {
        let at = tree.join(OsStr::from_bytes(path));
        match pointer(&at) {
            Some(Pointer { oid }) => pointers.push((path, at, oid)),
            None if fs::symlink_metadata(&at).is_ok_and(|it| it.is_file() && it.len() > 0) => {
                others += 1;
            }
            None => {}
        }
    }
    if others > 0 || pointers.is_empty() {
        leave_out(tree)?;
        return Ok((!pointers.is_empty()).then(|| {
            let files = plural(pointers.len() as u64, "file");
            let others = plural(others, "other");
            format!(
                "`worktree`: {files} of Git LFS: only pointers, no content: git has that of {others}: run `git \
                 lfs migrate import` or `git add --renormalize` where the repository is submitted"
            )
        }));
    }
    if !install(tree, mirror)? {
        leave_out(tree)?;
        return Ok(Some(not_installed(pointers.len())));
    }
    let store = Store::at(mirror.join("lfs"));
    let (there, missing): (Vec<_>, Vec<_>) = (pointers.into_iter())
        .partition(|(_, _, oid)| oid.as_ref().is_some_and(|oid| store.has(oid)));
    let mut input = Vec::new();
    for (path, at, _) in there {
        // git leaves a file that is as in the index.
        fs::remove_file(&at).with_context(|| format!("cannot write {}", at.display()))?;
        input.extend_from_slice(path);
        input.push(0);
    }
    let mut check_out = git::command(tree);
    git::without_side_effects(&mut check_out);
    check_out.args(["checkout-index", "--force", "--index", "--stdin", "-z"]);
    before_change();
    git::run_with_input(check_out, &input).context("large files cannot be checked out")?;
    Ok((!missing.is_empty()).then(|| {
        let files = plural(missing.len() as u64, "file");
        format!(
            "`worktree`: {files} of Git LFS: only pointers, no content: it was not where the repository was submitted, \
             run `git lfs fetch` there first"
        )
    }))
}

/// Lets a repository have the filter of a mirror; git-lfs, if the settings of the machine name it, because these go before
/// that. Returns `false` if they do, and it is not there.
fn install(repository: &Path, mirror: &Path) -> anyhow::Result<bool> {
    // An empty one keeps git from using the others.
    unset(repository, "filter.lfs.process");
    let storage = mirror.join("lfs");
    let storage = storage
        .to_str()
        .context("the state directory is not UTF-8")?;
    if !setting(repository, "filter.lfs.process").is_empty() {
        if git(repository, ["lfs", "version"]).is_err() {
            return Ok(false);
        }
        for name in ["clean", "smudge", "required"] {
            unset(repository, &format!("filter.lfs.{name}"));
        }
        set(repository, "lfs.storage", storage)?;
        // No server is asked, also none that the repository names.
        let url = format!("file://{}", mirror.display());
        set(repository, "lfs.url", &url)?;
        set(repository, "lfs.pushurl", &url)?;
        set(repository, "lfs.skipdownloaderrors", "true")?;
        return Ok(true);
    }
    let file = mirror.join(FILTER_FILE);
    let shown = file.to_str().context("the state directory is not UTF-8")?;
    if fs::read(&file).ok().as_deref() != Some(FILTER.as_bytes()) {
        let draft = mirror.join(format!("{FILTER_FILE}.new"));
        before_change();
        fs::write(&draft, FILTER)?;
        fs::rename(&draft, &file)?;
    }
    let run = format!("sh '{}'", shown.replace('\'', r"'\''"));
    set(repository, "filter.lfs.smudge", &format!("{run} smudge"))?;
    set(repository, "filter.lfs.clean", &format!("{run} clean"))?;
    set(repository, "filter.lfs.required", "true")?;
    Ok(true)
}

/// Lets a repository have files as they are.
fn leave_out(repository: &Path) -> anyhow::Result<()> {
    for pair in AS_THEY_ARE.iter().filter(|it| **it != "-c") {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        set(repository, name, value)?;
    }
    Ok(())
}

// A worktree of a mirror has settings of its own: in those of the mirror, it would change the files of other runs.

fn unset(repository: &Path, name: &str) {
    // It may not be there.
    let _ = git(repository, ["config", "--worktree", "--unset-all", name]);
}

fn set(repository: &Path, name: &str, value: &str) -> anyhow::Result<()> {
    if git(repository, ["config", "--worktree", "--get", name]).is_ok_and(|it| it == value) {
        return Ok(());
    }
    // A name may be there several times.
    let args = ["config", "--worktree", "--replace-all", name, value];
    git(repository, args).map(drop)
}

/// Returns a warning if pointers were checked out rather than files.
pub(super) fn pointers(tree: &Path) -> Option<String> {
    let attributes = fs::read_to_string(tree.join(".gitattributes")).unwrap_or_default();
    if !attributes.contains("filter=lfs") {
        return None;
    }
    let listed = git_bytes(tree, ["ls-files", "-z", "--", FILES]).ok()?;
    let paths = listed.split(|byte| *byte == 0).filter(|it| !it.is_empty());
    let pointers = paths.filter(|path| pointer(&tree.join(OsStr::from_bytes(path))).is_some());
    let pointers = pointers.count();
    (pointers > 0).then(|| not_installed(pointers))
}

/// The warning of a machine without git-lfs.
fn not_installed(pointers: usize) -> String {
    let files = plural(pointers as u64, "file");
    format!(
        "`worktree`: {files} of Git LFS: only pointers, no content: install git-lfs and run `git lfs install`"
    )
}

/// A file that stands for a large one.
struct Pointer {
    /// Hash of the content, if it names one.
    oid: Option<String>,
}

/// Returns what a file names if it is a pointer.
fn pointer(path: &Path) -> Option<Pointer> {
    // A link is no file of LFS.
    let about = fs::symlink_metadata(path).ok()?;
    if !about.is_file() || about.len() >= POINTER_SIZE {
        return None;
    }
    let mut text = Vec::new();
    File::open(path).ok()?.read_to_end(&mut text).ok()?;
    text.starts_with(POINTER)
        .then(|| Pointer { oid: oid_of(&text) })
}
