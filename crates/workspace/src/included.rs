//! Files that git ignores and an upload takes along all the same: those of `.worktreeinclude`.
//!
//! They are a bundle of their own, of one commit without a parent, so they are in no commit that a branch has, and in no
//! mirror. Content is taken as it is, without filters and conversions.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use teamster_core::text::{one_line, printable};

use crate::bundle;
use crate::git::{self, git, git_bytes};
use crate::large::{self, Contents};
use crate::step::before_change;
use crate::worktree::include;

/// The ref of the commit, in its bundle.
const REF: &str = "refs/teamster/included";

/// Files that an upload takes along beside its commits: those that git ignores, and the content of large files, which has a
/// ref of its own.
#[derive(Debug)]
#[non_exhaustive]
pub struct Included {
    /// The commit of files that git ignores.
    pub commit: String,
    /// Its bundle.
    pub bundle: PathBuf,
    /// Number of files that git ignores.
    pub files: usize,
}

impl Included {
    /// Commits what a tree includes, with `own` as the repository of new objects, for a bundle in `folder`. Returns `None` if
    /// that is nothing, and there is no content of large files. Adds warnings.
    pub(crate) fn commit(
        tree: &Path,
        own: &Path,
        folder: &Path,
        has_large: bool,
        warnings: &mut Vec<String>,
    ) -> anyhow::Result<Option<Self>> {
        let (mut files, mut links) = (Vec::new(), Vec::new());
        for path in include::listed(tree)? {
            let about = fs::symlink_metadata(tree.join(&path));
            let Ok(about) = about else { continue };
            if about.is_symlink() {
                links.push(path);
            } else if about.is_file() {
                let mode = about.permissions().mode();
                files.push((
                    if mode & 0o100 == 0 {
                        "100644"
                    } else {
                        "100755"
                    },
                    path,
                ));
            } else {
                let shown = printable(&path.to_string_lossy());
                warnings.push(format!("not uploaded: {shown} (not a file)"));
            }
        }
        if files.is_empty() && links.is_empty() && !has_large {
            return Ok(None);
        }
        let mut names = Vec::new();
        for (_, path) in &files {
            names.extend_from_slice(&quoted(tree.join(path).as_os_str()));
            names.push(b'\n');
        }
        let hash = |args: &[&str], input: &[u8]| {
            let mut command = git::command(own);
            command.args(["hash-object", "-w"]).args(args);
            let printed = git::run_with_input(command, input)?;
            anyhow::Ok(String::from_utf8(printed)?)
        };
        let hashes = hash(&["--no-filters", "--stdin-paths"], &names)?;
        let hashes: Vec<_> = hashes.lines().map(str::to_owned).collect();
        if hashes.len() != files.len() {
            bail!("a file of .worktreeinclude is gone");
        }
        let mut entries = Vec::new();
        let mut add = |mode: &str, hash: &str, path: &Path| {
            entries.extend_from_slice(format!("{mode} {hash}\t").as_bytes());
            entries.extend_from_slice(path.as_os_str().as_bytes());
            entries.push(0);
        };
        for ((mode, path), id) in files.iter().zip(&hashes) {
            add(mode, id, path);
        }
        for path in &links {
            let target = fs::read_link(tree.join(path))?;
            let id = hash(&["--stdin"], target.as_os_str().as_bytes())?;
            add("120000", id.trim_end(), path);
        }
        let index = folder.join("included-index");
        let with_index = |args: &[&str]| {
            let mut command = git::command(own);
            git::as_teamster(&mut command);
            // The same files are the same commit, so that a repetition sends nothing again.
            command
                .env("GIT_INDEX_FILE", &index)
                .env("GIT_AUTHOR_DATE", "@0 +0000")
                .env("GIT_COMMITTER_DATE", "@0 +0000")
                .args(args);
            command
        };
        before_change();
        git::run_with_input(
            with_index(&["update-index", "-z", "--index-info"]),
            &entries,
        )?;
        let written = git::run(&mut with_index(&["write-tree"]))?;
        let message = ["commit-tree", &written, "-m", "Included files"];
        let commit = git::run(&mut with_index(&message))?;
        git(own, ["update-ref", REF, &commit])?;
        Ok(Some(Self {
            commit,
            bundle: folder.join("included"),
            files: files.len() + links.len(),
        }))
    }

    /// Writes the bundle, with this content.
    pub(crate) fn pack(&self, own: &Path, large: &Contents) -> anyhow::Result<()> {
        let mut refs = vec![REF];
        if !large.is_empty() {
            large::commit(own, large)?;
            refs.push(large::REF);
        }
        bundle::write(own, &self.bundle, &refs, [])
    }
}

/// Copies the files of such a bundle into a worktree, readable by the user alone, where git ignores them and there is
/// nothing else. `folder` is one for a while. Returns warnings. Fails if the bundle is damaged or does not have the
/// commit.
pub(crate) fn unpack(
    bundle: &Path,
    commit: &str,
    tree: &Path,
    folder: &Path,
) -> anyhow::Result<Vec<String>> {
    let scratch = folder.join("included.git");
    let files = folder.join("included");
    let _ = fs::remove_dir_all(&scratch);
    let _ = fs::remove_dir_all(&files);
    let format = format!(
        "--object-format={}",
        if commit.len() == 64 { "sha256" } else { "sha1" }
    );
    let init = ["init", "--quiet", "--bare", "--template=", &format].map(OsStr::new);
    git(folder, init.into_iter().chain([scratch.as_os_str()]))?;
    let unpacked = (|| {
        let fetch = [
            "-c",
            "transfer.fsckObjects=true",
            "fetch",
            "--quiet",
            "--no-tags",
        ];
        let refs = format!("+{REF}:{REF}");
        let fetch = fetch.map(OsStr::new).into_iter();
        git(
            &scratch,
            fetch.chain([bundle.as_os_str(), OsStr::new(&refs)]),
        )
        .context("the included files cannot be used")?;
        if git(&scratch, ["rev-parse", REF])? != commit {
            bail!(
                "the upload does not contain the included files {}",
                one_line(commit)
            );
        }
        fs::create_dir(&files)?;
        let command = |args: &[&str]| {
            let mut command = git::command(&scratch);
            git::without_side_effects(&mut command);
            command
                .args([
                    "-c",
                    "core.autocrlf=false",
                    "-c",
                    "core.attributesFile=/dev/null",
                ])
                .env("GIT_WORK_TREE", &files)
                .args(args);
            command
        };
        // As they are, with any attributes that one of them sets.
        fs::create_dir_all(scratch.join("info"))?;
        fs::write(
            scratch.join("info/attributes"),
            "* -text -filter -ident -working-tree-encoding\n",
        )?;
        git::run(&mut command(&["read-tree", commit]))?;
        git::run(&mut command(&["checkout-index", "--all", "--quiet"]))?;
        let listed = git_bytes(&scratch, ["ls-tree", "-r", "-z", "--name-only", commit])?;
        for path in listed.split(|byte| *byte == 0).filter(|it| !it.is_empty()) {
            let path = files.join(OsStr::from_bytes(path));
            let about = fs::symlink_metadata(&path)?;
            if about.is_file() {
                let mode = about.permissions().mode() & 0o700;
                fs::set_permissions(&path, fs::Permissions::from_mode(mode))?;
            }
        }
        include::copy_ignored(&files, tree, &listed)
    })();
    let _ = fs::remove_dir_all(&scratch);
    let _ = fs::remove_dir_all(&files);
    unpacked
}

/// Returns a path as git reads it in a line.
pub(crate) fn quoted(path: &OsStr) -> Vec<u8> {
    let bytes = path.as_bytes();
    if !bytes.contains(&b'\n') && !bytes.starts_with(b"\"") {
        return bytes.to_vec();
    }
    git::in_c(bytes)
}
