//! The content of large files (Git LFS) beside commits, which have pointers to it.
//!
//! Between machines it is a commit without a parent in a git bundle, whose files are named by the hashes of their content.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, BufReader};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::{Context, bail};
use sha2::{Digest, Sha256};

use crate::bundle;
use crate::git::{self, git, git_bytes, git_path};
use crate::included::quoted;
use crate::step::before_change;

/// The beginning of a pointer (<https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md>).
pub(crate) const POINTER: &[u8] = b"version https://git-lfs.github.com/spec/v1\n";
/// Size in bytes below which a file may be a pointer (as above).
pub(crate) const POINTER_SIZE: u64 = 1024;
/// The ref of the commit with the content, in a bundle.
pub(crate) const REF: &str = "refs/teamster-large/content";
/// The line of a pointer with the hash of the content, without the hash.
const OID: &str = "oid sha256:";

/// The beginning of the names of files that are written, as in `lfs-filter.sh`.
const DRAFT: &str = "teamster-";
/// Age from which on nothing writes such a file.
const DRAFT_AGE: Duration = Duration::from_hours(24);

/// The content of large files, by its hash: where it is.
pub(crate) type Contents = BTreeMap<String, PathBuf>;

/// The folder in which git-lfs keeps content.
#[derive(Debug)]
pub(crate) struct Store {
    root: PathBuf,
}

impl Store {
    pub(crate) fn at(root: PathBuf) -> Self {
        Self { root }
    }

    pub(crate) fn of(repository: &Path) -> anyhow::Result<Self> {
        let common = git_path(repository, ["rev-parse", "--git-common-dir"])?;
        let common = repository.join(common);
        let set = git_path(
            repository,
            ["config", "--type=path", "--get", "lfs.storage"],
        );
        Ok(Self::at(common.join(set.unwrap_or_else(|_| "lfs".into()))))
    }

    /// Returns the place of the content with this hash.
    pub(crate) fn path(&self, oid: &str) -> PathBuf {
        let (first, second) = (&oid[..2], &oid[2..4]);
        self.root.join("objects").join(first).join(second).join(oid)
    }

    pub(crate) fn has(&self, oid: &str) -> bool {
        // One that was not on the disk before the machine lost power is empty.
        fs::metadata(self.path(oid)).is_ok_and(|it| it.is_file() && it.len() > 0)
    }

    /// Removes what killed processes have left.
    pub(crate) fn remove_old_drafts(&self, now: SystemTime) {
        // What stays is removed the next time.
        for draft in fs::read_dir(self.root.join("tmp")).into_iter().flatten() {
            let Ok(draft) = draft else { continue };
            let is_ours = draft.file_name().as_bytes().starts_with(DRAFT.as_bytes());
            let changed = draft.metadata().and_then(|it| it.modified());
            let age = changed.ok().and_then(|it| now.duration_since(it).ok());
            if is_ours && age.is_some_and(|age| age > DRAFT_AGE) {
                let _ = fs::remove_file(draft.path());
            }
        }
    }

    /// Returns whether it has content.
    pub(crate) fn is_used(&self) -> bool {
        self.root.join("objects").is_dir()
    }

    /// Takes a file over that has this content.
    fn take(&self, oid: &str, file: &Path) -> anyhow::Result<()> {
        let to = self.path(oid);
        if self.has(oid) {
            return Ok(());
        }
        let take = || -> io::Result<()> {
            let drafts = self.root.join("tmp");
            fs::create_dir_all(&drafts)?;
            fs::create_dir_all(to.parent().unwrap_or(&self.root))?;
            let draft = drafts.join(format!("{DRAFT}{}-{oid}", std::process::id()));
            before_change();
            fs::copy(file, &draft)?;
            File::open(&draft)?.sync_all()?;
            before_change();
            fs::rename(&draft, &to)
        };
        take().with_context(|| format!("cannot write {}", to.display()))
    }
}

/// Returns the hash of the content that a pointer names; `None` if this is no pointer.
pub(crate) fn oid_of(file: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(file.strip_prefix(POINTER)?).ok()?;
    text.lines().find_map(|line| oid(line.strip_prefix(OID)?))
}

/// Returns the text if it is a hash.
fn oid(text: &str) -> Option<String> {
    let is_hash =
        text.len() == 64 && (text.bytes()).all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    is_hash.then(|| text.to_owned())
}

/// Returns the hashes that pointers among these objects name.
pub(crate) fn named_by<'a>(
    repository: &Path,
    objects: impl IntoIterator<Item = &'a str>,
) -> anyhow::Result<BTreeSet<String>> {
    let input: String = objects.into_iter().flat_map(|it| [it, "\n"]).collect();
    let mut sizes = git::command(repository);
    sizes.args([
        "cat-file",
        "--batch-check=%(objectname) %(objecttype) %(objectsize)",
    ]);
    let sizes = git::run_with_input(sizes, input.as_bytes())?;
    let small: String = (String::from_utf8_lossy(&sizes).lines())
        .filter_map(|line| {
            let (id, about) = line.split_once(' ')?;
            let size: u64 = about.strip_prefix("blob ")?.parse().ok()?;
            (size < POINTER_SIZE).then(|| format!("{id}\n"))
        })
        .collect();
    if small.is_empty() {
        return Ok(BTreeSet::new());
    }
    let mut files = git::command(repository);
    files.args(["cat-file", "--batch"]);
    let files = git::run_with_input(files, small.as_bytes())?;
    let mut rest = &*files;
    let mut found = BTreeSet::new();
    // Each has a line with its size before it, and a line end behind it.
    while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
        let size = String::from_utf8_lossy(&rest[..end]);
        let size = size.rsplit(' ').next().and_then(|it| it.parse().ok());
        let size: usize = size.context("git printed no size")?;
        rest = &rest[end + 1..];
        let (file, next) = (rest.get(..size))
            .zip(rest.get(size + 1..))
            .unwrap_or_default();
        found.extend(oid_of(file));
        rest = next;
    }
    Ok(found)
}

/// Returns the hashes that the new lines of a patch name.
pub(crate) fn named_by_patch(patch: &[u8]) -> BTreeSet<String> {
    let lines = patch.split(|byte| *byte == b'\n');
    let lines = lines.filter_map(|line| std::str::from_utf8(line.strip_prefix(b"+")?).ok());
    lines
        .filter_map(|line| oid(line.strip_prefix(OID)?))
        .collect()
}

/// Makes a commit with this content in a repository, which is named by the ref of it.
pub(crate) fn commit(repository: &Path, contents: &Contents) -> anyhow::Result<()> {
    before_change();
    let ids = object_ids(repository, "blob", contents.values(), true)?;
    let entries = ids.iter().zip(contents.keys());
    let entries = entries.map(|(id, oid)| format!("100644 blob {id}\t{oid}\0"));
    let entries = entries.collect::<Vec<_>>().concat();
    let mut tree = git::command(repository);
    tree.args(["mktree", "-z"]);
    let tree = git::run_with_input(tree, entries.as_bytes())?;
    let tree = String::from_utf8(tree)?;
    let mut commit = git::command(repository);
    git::as_teamster(&mut commit);
    // The same content is the same commit, so that a repetition sends nothing again.
    commit
        .env("GIT_AUTHOR_DATE", "@0 +0000")
        .env("GIT_COMMITTER_DATE", "@0 +0000")
        .args(["commit-tree", tree.trim_end(), "-m", "Large files"]);
    let commit = git::run(&mut commit)?;
    git(repository, ["update-ref", REF, &commit]).map(drop)
}

/// Files taken out of a bundle.
#[derive(Debug)]
pub(crate) struct TakenOut {
    /// The hashes of the content.
    pub(crate) oids: Vec<String>,
    /// A bundle of the other refs: the same one if it had no content.
    pub(crate) rest: PathBuf,
}

/// Takes the content out of a bundle into a store, if it has any. `folder` is one for a while. `known` is a repository
/// that has the commits on which the bundle is based. Fails if the bundle is damaged, or what is in it is not what its
/// hash names.
pub(crate) fn take_out(
    from: &Path,
    folder: &Path,
    known: &Path,
    store: &Store,
) -> anyhow::Result<TakenOut> {
    let list = ["bundle", "list-heads"].map(OsStr::new).into_iter();
    let heads = git(known, list.chain([from.as_os_str()]))?;
    let refs: Vec<_> = (heads.lines())
        .filter_map(|head| head.split_once(' '))
        .map(|(_, name)| name)
        .collect();
    if !refs.contains(&REF) {
        return Ok(TakenOut {
            oids: Vec::new(),
            rest: from.to_owned(),
        });
    }
    let scratch = folder.join("large.git");
    make_beside(known, &scratch)?;
    let mut fetch = git::command(&scratch);
    git::without_side_effects(&mut fetch);
    fetch
        .args(["-c", "transfer.fsckObjects=true", "fetch", "--quiet"])
        .args(["--no-tags", "--no-write-fetch-head"])
        .arg(from)
        .arg("+refs/*:refs/*");
    before_change();
    git::run(&mut fetch).context("the bundle cannot be used")?;
    let listed = git_bytes(&scratch, ["ls-tree", "-z", REF])?;
    let file = folder.join("large");
    let mut oids = Vec::new();
    for entry in listed.split(|byte| *byte == 0).filter(|it| !it.is_empty()) {
        let entry = String::from_utf8_lossy(entry);
        let parsed = entry.split_once('\t').and_then(|(about, name)| {
            let id = about.strip_prefix("100644 blob ")?;
            Some((id, oid(name)?))
        });
        let Some((id, name)) = parsed else {
            bail!("the large files of the bundle cannot be used: one has no hash as its name");
        };
        if !store.has(&name) {
            let mut content = git::command(&scratch);
            git::run_to_file(content.args(["cat-file", "blob", id]), &file)?;
            if sha256(&file)? != name {
                bail!("the large file {name} of the bundle is damaged");
            }
            store.take(&name, &file)?;
        }
        oids.push(name);
    }
    let _ = fs::remove_file(&file);
    let others: Vec<_> = refs.into_iter().filter(|it| *it != REF).collect();
    let rest = folder.join("rest");
    bundle::write(&scratch, &rest, &others, &bundle::prerequisites(from)?)?;
    fs::remove_dir_all(&scratch)?;
    Ok(TakenOut { oids, rest })
}

/// Makes a bare repository that sees the objects of another one.
pub(crate) fn make_beside(known: &Path, scratch: &Path) -> anyhow::Result<()> {
    let format = git(known, ["rev-parse", "--show-object-format"])?;
    let format = format!("--object-format={format}");
    let init = ["init", "--quiet", "--bare", "--template=", &format].map(OsStr::new);
    let folder = scratch.parent().unwrap_or(scratch);
    before_change();
    git(folder, init.into_iter().chain([scratch.as_os_str()]))?;
    let objects = git_path(known, ["rev-parse", "--git-path", "objects"])?;
    let objects = known.join(objects).canonicalize()?;
    Ok(git::share_objects(&objects, &scratch.join("objects"))?)
}

/// Returns the ids of files as objects of this kind. `keep` makes the objects.
fn object_ids<'a>(
    repository: &Path,
    kind: &str,
    files: impl IntoIterator<Item = &'a PathBuf>,
    keep: bool,
) -> anyhow::Result<Vec<String>> {
    let mut names = Vec::new();
    for file in files {
        names.extend_from_slice(&quoted(file.as_os_str()));
        names.push(b'\n');
    }
    let mut hash = git::command(repository);
    hash.args(["hash-object", "-t", kind])
        .args(keep.then_some("-w"))
        .args(["--no-filters", "--stdin-paths"]);
    let ids = String::from_utf8(git::run_with_input(hash, &names)?)?;
    Ok(ids.lines().map(str::to_owned).collect())
}

/// Returns the hash of the content of a file, as pointers name it.
pub(crate) fn sha256(file: &Path) -> io::Result<String> {
    let mut hasher = Sha256::new();
    let file = File::open(file)?;
    io::copy(&mut BufReader::with_capacity(1 << 20, file), &mut hasher)?;
    Ok(format!("{:x}", hasher.finalize()))
}

/// Returns, by hash, the ids of commits that stand for content: each names its hash, and has no files. A machine that has
/// such a commit has the content, so it answers for both together. `keep` makes the commits. `folder` is one for a while.
pub(crate) fn marks<'a>(
    repository: &Path,
    folder: &Path,
    oids: impl Iterator<Item = &'a String>,
    keep: bool,
) -> anyhow::Result<BTreeMap<String, String>> {
    let oids: Vec<_> = oids.cloned().collect();
    if oids.is_empty() {
        return Ok(BTreeMap::new());
    }
    let drafts = folder.join("marks");
    fs::create_dir_all(&drafts)?;
    let none = drafts.join("none");
    fs::write(&none, "")?;
    let tree = object_ids(repository, "tree", [&none], keep)?.concat();
    let by = "teamster <teamster@localhost> 0 +0000";
    let mut files = Vec::new();
    for oid in &oids {
        let file = drafts.join(oid);
        let text = format!("tree {tree}\nauthor {by}\ncommitter {by}\n\n{OID}{oid}\n");
        fs::write(&file, text)?;
        files.push(file);
    }
    let marks = object_ids(repository, "commit", &files, keep)?;
    fs::remove_dir_all(&drafts)?;
    Ok(oids.into_iter().zip(marks).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HASH: &str = "4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393";

    #[test]
    fn a_pointer_names_the_hash_of_its_content() {
        let start = String::from_utf8_lossy(POINTER);
        let pointer = format!("{start}ext-0-foo sha256:1\noid sha256:{HASH}\nsize 12345\n");
        assert_eq!(oid_of(pointer.as_bytes()).as_deref(), Some(HASH));
        for other in [
            format!("x{pointer}"),
            format!("{start}size 1\n"),
            format!("{start}oid sha256:../{HASH}\n"),
            format!("{start}oid sha256:{}\n", HASH.to_uppercase()),
        ] {
            assert_eq!(oid_of(other.as_bytes()), None, "{other}");
        }
        // Made by hand: the patch of a pointer.
        let patch = format!(
            "--- a/x\n+++ b/x\n-oid sha256:{}\n+oid sha256:{HASH}\n",
            "0".repeat(64)
        );
        assert_eq!(named_by_patch(patch.as_bytes()), [HASH.to_owned()].into());
    }
}
