//! A repository as an upload: what another machine needs of it for a run.
//!
//! It is a git bundle of the commits that the machine does not have. Uncommitted and untracked files are one commit on top,
//! which is made with an index and an object folder of its own: the repository, its index, stash and files stay as they are.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use anyhow::bail;
use teamster_api::Workspace;
use teamster_core::text::{plural, printable};

use crate::bundle;
use crate::git::{self, git, git_bytes, git_path, git_path_at};
use crate::included::Included;
use crate::large::{self, Contents, Store};
use crate::snapshot::Snapshot;
use crate::step::before_change;
use crate::submodules;
use crate::worktree::{include, lfs};

/// The ref of an upload's commit, in its bundle.
pub(crate) const BASE: &str = "refs/teamster/base";
/// The folder of refs of the commits of submodules, in a bundle.
pub(crate) const MODULES: &str = "refs/teamster/modules/";
/// Largest number of refs whose commits are offered.
const REFS: usize = 500;
/// Limit of the size of the content of large files in one upload, in bytes. A machine keeps 8 GiB of uploads by default.
const LARGE: u64 = 4 << 30;
/// Number of largest files that an error names.
const NAMED: usize = 5;

/// A repository whose state is to be uploaded.
#[derive(Debug)]
pub struct Source {
    /// Root of the worktree.
    top: PathBuf,
    /// The directory inside the worktree.
    subdirectory: PathBuf,
    head: String,
    root: String,
    branch: Option<String>,
    object_format: String,
}

/// The state of a repository, taken for an upload.
#[derive(Debug)]
#[non_exhaustive]
pub struct Taken {
    /// The commit to start at: the last one, or a commit of the uncommitted files on top of it.
    pub base: String,
    /// Number of files that are not committed.
    pub uncommitted: usize,
    /// The files that git ignores and `.worktreeinclude` names.
    pub included: Option<Included>,
    /// Warnings, such as of what is left out.
    pub warnings: Vec<String>,
    /// Commits of which the machine may have some: those of refs, and ancestors of the last commit at growing distances.
    pub offers: Vec<String>,
    /// The commits of submodules.
    modules: Vec<String>,
    /// The content of large files.
    large: Contents,
    /// The commits that stand for it, which are offered too.
    marks: BTreeMap<String, String>,
    folder: PathBuf,
    /// A repository for refs and new objects, which sees those of the user.
    own: PathBuf,
}

impl Source {
    /// Finds the repository that contains this directory.
    ///
    /// # Errors
    ///
    /// Fails if git is not installed, without a repository or a commit, or if the repository has only a part of its
    /// history.
    pub fn find(directory: &Path) -> anyhow::Result<Self> {
        let shown = printable(&directory.to_string_lossy());
        if !directory.is_dir() {
            bail!("{shown} is not a directory");
        }
        let Ok(top) = git_path_at(directory, ["rev-parse", "--show-toplevel"]) else {
            git::check()?;
            // git names a foreign owner, for example.
            let error = git(directory, ["rev-parse", "--git-dir"]).err();
            let reason = error.map_or_else(
                || "it has no working tree: name one of its worktrees".to_owned(),
                |error| error.to_string(),
            );
            bail!("{shown} is not in a git repository that can be uploaded: {reason}");
        };
        let head =
            git(&top, ["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]).map_err(|_| {
                anyhow::anyhow!("the repository {shown} has no commit yet: create one first")
            })?;
        if git(&top, ["rev-parse", "--is-shallow-repository"])? == "true" {
            bail!(
                "the repository {shown} is shallow, so another machine could not use its commits: run `git fetch \
                 --unshallow` first"
            );
        }
        if is_partial(&top) {
            bail!(
                "the repository {shown} is a partial clone, so another machine could not use its commits: run `git fetch \
                 --refetch --no-filter` first"
            );
        }
        // A history can have several roots. The order of git depends on dates.
        let roots = git(&top, ["rev-list", "--max-parents=0", "HEAD"])?;
        let root = roots.lines().min().unwrap_or(&head).to_owned();
        let subdirectory = git_path(directory, ["rev-parse", "--show-prefix"])?;
        if subdirectory.to_str().is_none() {
            bail!("the path of {shown} in its repository is not UTF-8: start in its root");
        }
        let branch = git(&top, ["symbolic-ref", "--quiet", "--short", "HEAD"]).ok();
        Ok(Self {
            subdirectory: subdirectory.components().collect(),
            object_format: git(&top, ["rev-parse", "--show-object-format"])?,
            top,
            head,
            root,
            branch,
        })
    }

    /// Returns the last commit.
    pub fn head(&self) -> &str {
        &self.head
    }

    /// Returns the first commit, by which machines know copies of one repository.
    pub fn root(&self) -> &str {
        &self.root
    }

    /// Returns the branch that is checked out.
    pub fn branch(&self) -> Option<&str> {
        self.branch.as_deref()
    }

    /// Returns the directory inside the worktree; empty for its root.
    pub fn subdirectory(&self) -> &Path {
        &self.subdirectory
    }

    /// Returns the root of the worktree.
    pub fn top(&self) -> &Path {
        &self.top
    }

    /// Returns where an agent works that starts at the commit `base`, in the same directory as here.
    pub(crate) fn workspace(&self, base: String, included: Option<&Included>) -> Workspace {
        // A name that is not UTF-8 is not important.
        let text = |text: Option<&OsStr>| {
            let text = text.and_then(OsStr::to_str);
            text.filter(|text| !text.is_empty()).map(str::to_owned)
        };
        Workspace::Upload {
            repository: self.root.clone(),
            head: (base != self.head).then(|| self.head.clone()),
            commit: base,
            included: included.map(|it| it.commit.clone()),
            name: text(self.top.file_name()).filter(|name| !name.starts_with('.')),
            subdirectory: text(Some(self.subdirectory.as_os_str())),
            submitted_from: None,
            stays: false,
        }
    }

    /// Checks the size of the files that are not committed, in bytes, before any is read.
    ///
    /// # Errors
    ///
    /// Fails with the names of the largest files if they exceed the limit.
    pub fn check_uncommitted(&self, limit: u64) -> anyhow::Result<()> {
        let untracked = ["ls-files", "--others", "--exclude-standard", "-z"];
        // Without writing the index.
        let quiet = "diff.autoRefreshIndex=false";
        let changed = [
            "-c",
            quiet,
            "diff",
            "--name-only",
            "--no-ext-diff",
            "-z",
            "HEAD",
            "--",
        ];
        let mut sizes = Vec::new();
        for args in [&untracked[..], &changed[..]] {
            let listed = git_bytes(&self.top, args)?;
            for path in listed.split(|byte| *byte == 0).filter(|it| !it.is_empty()) {
                let path = Path::new(OsStr::from_bytes(path));
                if let Ok(file) = fs::symlink_metadata(self.top.join(path)) {
                    sizes.push((file.len(), path.to_owned()));
                }
            }
        }
        for path in include::listed(&self.top)? {
            if let Ok(file) = fs::symlink_metadata(self.top.join(&path)) {
                sizes.push((file.len(), path));
            }
        }
        let total: u64 = sizes.iter().map(|(bytes, _)| bytes).sum();
        if total <= limit {
            return Ok(());
        }
        sizes.sort_unstable_by(|a, b| b.cmp(a));
        let largest = sizes.iter().take(NAMED).map(|(bytes, path)| {
            format!("{} ({})", printable(&path.to_string_lossy()), mib(*bytes))
        });
        let largest: Vec<_> = largest.collect();
        bail!(
            "{} that are not committed have {}, more than the limit of {}; the largest are {}: commit, ignore or remove \
             what the agent does not need",
            plural(sizes.len() as u64, "file"),
            mib(total),
            mib(limit),
            largest.join(", ")
        )
    }

    /// Takes the state of the repository. `folder` is an empty folder, in which all is made, and which must live on.
    ///
    /// # Errors
    ///
    /// Fails if git does, for example because the disk is full.
    pub fn take(&self, folder: &Path) -> anyhow::Result<Taken> {
        self.take_in(folder).map_err(git::with_version)
    }

    fn take_in(&self, folder: &Path) -> anyhow::Result<Taken> {
        let own = folder.join("repository.git");
        let format = format!("--object-format={}", self.object_format);
        let init = ["init", "--quiet", "--bare", &format, "--template="];
        before_change();
        git(
            folder,
            init.map(OsStr::new).into_iter().chain([own.as_os_str()]),
        )?;
        let mut commits = Commits {
            folder,
            own: &own,
            trees: 0,
            uncommitted: 0,
            modules: Vec::new(),
            large: Contents::new(),
            warnings: Vec::new(),
        };
        let base = commits.of(&self.top, &self.head, "")?;
        let Commits {
            uncommitted,
            modules,
            large,
            warnings,
            ..
        } = commits;
        let mut warnings = warnings;
        let has_large = !large.is_empty();
        let included = Included::commit(&self.top, &own, folder, has_large, &mut warnings)?;
        let marks = large::marks(&own, folder, large.keys(), false)?;
        let mut offers = vec![self.root.clone(), base.clone()];
        offers.extend(modules.iter().chain(marks.values()).cloned());
        add_offers(&self.top, &mut offers)?;
        offers.sort_unstable();
        offers.dedup();
        Ok(Taken {
            base,
            uncommitted,
            included,
            warnings,
            offers,
            modules,
            large,
            marks,
            folder: folder.to_owned(),
            own,
        })
    }
}

impl Taken {
    /// Packs what a machine needs that has the commits `known`, into a bundle. Returns its path; `None` if the machine has
    /// all. The bundle of [included](Self::included) files is written too, with the content of large files that the machine
    /// does not have. Content that is damaged or too large is left out, with a warning.
    ///
    /// # Errors
    ///
    /// Fails if git does, for example because the disk is full.
    pub fn pack(&mut self, known: &[String]) -> anyhow::Result<Option<PathBuf>> {
        let large = self.new_large_files(known);
        if let Some(included) = &self.included {
            included.pack(&self.own, &large)?;
        }
        let modules = self.modules.iter().filter(|it| !known.contains(it));
        let modules = modules.enumerate();
        let modules = modules.map(|(number, commit)| (format!("{MODULES}{number}"), commit));
        let has_base = known.contains(&self.base);
        let base = (!has_base).then(|| (BASE.to_owned(), &self.base));
        let refs: Vec<_> = base.into_iter().chain(modules).collect();
        if refs.is_empty() {
            return Ok(None);
        }
        for (name, commit) in &refs {
            git(&self.own, ["update-ref", name, commit])?;
        }
        let refs: Vec<_> = refs.iter().map(|(name, _)| &**name).collect();
        let marks: BTreeSet<_> = self.marks.values().collect();
        let known = known.iter().filter(|it| !marks.contains(it));
        let bundle = self.folder.join("bundle");
        bundle::write(&self.own, &bundle, &refs, known)?;
        Ok(Some(bundle))
    }

    /// Returns the content of large files that a machine does not have which has the commits `known`.
    fn new_large_files(&mut self, known: &[String]) -> Contents {
        let marks = &self.marks;
        let is_new = |oid: &String| marks.get(oid).is_none_or(|it| !known.contains(it));
        let mut new = Vec::new();
        for (oid, path) in self.large.iter().filter(|(oid, _)| is_new(oid)) {
            new.push((fs::metadata(path).map_or(0, |it| it.len()), oid, path));
        }
        // So that as many as possible have theirs.
        new.sort_unstable();
        let (mut taken, mut sum) = (Contents::new(), 0);
        let (mut damaged, mut left) = (None, (0, 0));
        for (size, oid, path) in new {
            if size > LARGE - sum {
                left = (left.0 + 1, left.1 + size);
            } else if large::sha256(path).is_ok_and(|it| it == *oid) {
                sum += size;
                taken.insert(oid.clone(), path.clone());
            } else {
                damaged = Some(path);
            }
        }
        if let Some(path) = damaged {
            let path = printable(&path.to_string_lossy());
            self.warnings.push(format!(
                "not uploaded: the content of a file of Git LFS, which is damaged: remove {path} and run `git lfs fetch`"
            ));
        }
        if left.0 > 0 {
            self.warnings.push(format!(
                "not uploaded: the content of {} of Git LFS, {} beyond the limit of {} in one upload",
                plural(left.0, "file"),
                mib(left.1),
                mib(LARGE)
            ));
        }
        taken
    }
}

/// Adds commits of a repository and its submodules of which the machine may have some: those of refs, and ancestors of the
/// last commit at growing distances.
fn add_offers(tree: &Path, offers: &mut Vec<String>) -> anyhow::Result<()> {
    let history = git(tree, ["rev-list", "--first-parent", "HEAD"])?;
    let history: Vec<_> = history.lines().collect();
    offers.extend(history.first().map(|head| (*head).to_owned()));
    let mut distance = 1;
    while let Some(commit) = history.get(distance) {
        offers.push((*commit).to_owned());
        distance *= 2;
    }
    let refs = [
        "for-each-ref",
        "--sort=-committerdate",
        &format!("--count={REFS}"),
        // A tag's own object is no commit.
        "--format=%(if)%(*objectname)%(then)%(*objectname)%(else)%(objectname)%(end)",
        "refs/heads",
        "refs/remotes",
        "refs/tags",
    ];
    offers.extend(git(tree, refs)?.lines().map(str::to_owned));
    for path in submodules::checked_out(tree) {
        // One that has no commit yet is named when it is packed.
        let _ = add_offers(&tree.join(path), offers);
    }
    Ok(())
}

/// Commits of the files of a tree and its submodules, as they are.
struct Commits<'a> {
    folder: &'a Path,
    /// The repository of new objects.
    own: &'a Path,
    /// Number of trees so far.
    trees: usize,
    /// Number of files by which the trees differ from their last commits.
    uncommitted: usize,
    /// The commits of submodules.
    modules: Vec<String>,
    /// The content of large files.
    large: Contents,
    warnings: Vec<String>,
}

impl Commits<'_> {
    /// Returns a commit of all files of a tree that are not ignored: `head` if it has them all. `shown` is the path of a
    /// submodule, with a slash.
    fn of(&mut self, tree: &Path, head: &str, shown: &str) -> anyhow::Result<String> {
        let objects = tree.join(git_path(tree, ["rev-parse", "--git-path", "objects"])?);
        // The objects of the trees are seen by what packs them.
        git::share_objects(&objects, &self.own.join("objects"))?;
        let index = self.folder.join(format!("index{}", self.trees));
        self.trees += 1;
        let snapshot = Snapshot::new(tree, index)
            .objects_in(self.own.join("objects"))
            .large_files_in(self.folder.join("lfs"));
        for what in snapshot.add(head)? {
            let what = format!("not uploaded: {shown}{what}");
            self.warnings.push(what);
        }
        for path in submodules::checked_out(tree) {
            let module = tree.join(&path);
            let name = format!("{shown}{path}");
            let Ok(last) = git(
                &module,
                ["rev-parse", "--verify", "--quiet", "HEAD^{commit}"],
            ) else {
                continue;
            };
            if git(&module, ["rev-parse", "--is-shallow-repository"])? == "true" {
                self.warnings.push(format!(
                    "the submodule {} is shallow, so it is not uploaded: run `git fetch --unshallow` in it",
                    printable(&name)
                ));
                continue;
            }
            let commit = self.of(&module, &last, &format!("{name}/"))?;
            let link = format!("160000,{commit},{path}");
            snapshot.run(["update-index", "--add", "--cacheinfo", &link])?;
            self.modules.push(commit);
        }
        self.add_large_files(&snapshot, tree)?;
        let written = snapshot.run(["write-tree"])?;
        if written == git(tree, ["rev-parse", &format!("{head}^{{tree}}")])? {
            return Ok(head.to_owned());
        }
        // The same files are the same commit, so that a repetition sends nothing again.
        let date = git(
            tree,
            [
                "show",
                "--no-patch",
                "--no-show-signature",
                "--format=@%ct +0000",
                head,
            ],
        )?;
        let commit = snapshot.commit(&written, head, "Uncommitted changes", Some(&date))?;
        let quoted = "core.quotePath=true";
        let changed = [
            "-c",
            quoted,
            "diff-tree",
            "-r",
            "--name-only",
            head,
            &commit,
        ];
        self.uncommitted += snapshot.run(changed)?.lines().count();
        Ok(commit)
    }

    /// Adds the content of the files of Git LFS in a snapshot, as far as it is on this machine.
    fn add_large_files(&mut self, snapshot: &Snapshot<'_>, tree: &Path) -> anyhow::Result<()> {
        let listed = snapshot.read(&["ls-files", "--stage", "-z", "--", lfs::FILES])?;
        let listed = String::from_utf8_lossy(&listed);
        let objects = listed.split('\0').filter_map(|entry| {
            let (about, _) = entry.split_once('\t')?;
            about.strip_prefix("100")?.split(' ').nth(1)
        });
        let stores = [Store::at(self.folder.join("lfs")), Store::of(tree)?];
        for oid in large::named_by(self.own, objects)? {
            if let Some(store) = stores.iter().find(|it| it.has(&oid)) {
                self.large.insert(oid.clone(), store.path(&oid));
            }
        }
        Ok(())
    }
}

/// Returns whether objects are left out that a remote has.
fn is_partial(tree: &Path) -> bool {
    let promisors = ["config", "--get-regexp", r"^remote\..*\.promisor$"];
    git(tree, promisors).is_ok_and(|it| it.lines().any(|line| line.ends_with(" true")))
}

/// Formats a number of bytes.
fn mib(bytes: u64) -> String {
    let tenths = bytes.saturating_mul(10) >> 20;
    format!("{}.{} MiB", tenths / 10, tenths % 10)
}
