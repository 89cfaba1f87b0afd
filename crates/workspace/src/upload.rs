//! A repository as an upload: what another machine needs of it for a run.
//!
//! It is a git bundle of the commits that the machine does not have. Uncommitted and untracked files are one commit on top,
//! which is made with an index and an object folder of its own: the repository, its index, stash and files stay as they are.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};
use teamster_core::text::{one_line, plural, printable};

use crate::git::{self, git, git_bytes, git_path};

/// The ref of an upload's commit, in its bundle.
pub(crate) const BASE: &str = "refs/teamster/base";
/// Largest number of refs whose commits are offered.
const REFS: usize = 500;
/// Number of largest files that an error names.
const NAMED: usize = 5;

/// A repository whose state is to be uploaded.
#[derive(Debug)]
pub struct Source {
    /// Root of the worktree.
    top: PathBuf,
    /// Folder of objects.
    objects: PathBuf,
    /// The directory inside the worktree.
    subdirectory: PathBuf,
    head: String,
    root: String,
    branch: Option<String>,
    object_format: String,
}

/// A packed upload.
#[derive(Debug)]
pub struct Packed {
    /// The commit to start at: the head, or a commit of the uncommitted files on top of it.
    pub base: String,
    /// The bundle; `None` if the machine has all commits.
    pub bundle: Option<PathBuf>,
    /// Number of files that are not committed.
    pub uncommitted: usize,
    /// Warnings, such as of what is left out.
    pub warnings: Vec<String>,
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
        let Ok(top) = git_path(directory, ["rev-parse", "--show-toplevel"]) else {
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
        // A history can have several roots. The order of git depends on dates.
        let roots = git(&top, ["rev-list", "--max-parents=0", "HEAD"])?;
        let root = roots.lines().min().unwrap_or(&head).to_owned();
        let subdirectory = git_path(directory, ["rev-parse", "--show-prefix"])?;
        let objects = git_path(&top, ["rev-parse", "--git-path", "objects"])?;
        let branch = git(&top, ["symbolic-ref", "--quiet", "--short", "HEAD"]).ok();
        Ok(Self {
            objects: top.join(objects),
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

    /// Returns commits of which the machine may have some: those of refs, and ancestors of the last commit at growing
    /// distances.
    ///
    /// # Errors
    ///
    /// Fails if git does.
    pub fn offers(&self) -> anyhow::Result<Vec<String>> {
        let mut offers = vec![self.head.clone()];
        let history = git(&self.top, ["rev-list", "--first-parent", "HEAD"])?;
        let history: Vec<_> = history.lines().collect();
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
        let refs = git(&self.top, refs)?;
        offers.extend(refs.lines().map(str::to_owned));
        offers.push(self.root.clone());
        offers.sort_unstable();
        offers.dedup();
        Ok(offers)
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

    /// Packs what a machine needs that has the commits `known`. `folder` is an empty folder, in which all is made.
    ///
    /// # Errors
    ///
    /// Fails if git does, for example because the disk is full.
    pub fn pack(&self, folder: &Path, known: &[String]) -> anyhow::Result<Packed> {
        let mut warnings = Vec::new();
        // A repository for refs and new objects, which sees those of the user.
        let own = folder.join("repository.git");
        let format = format!("--object-format={}", self.object_format);
        let init = ["init", "--quiet", "--bare", &format, "--template="];
        git(
            folder,
            init.map(OsStr::new).into_iter().chain([own.as_os_str()]),
        )?;
        let alternates = [self.objects.as_os_str().as_bytes(), b"\n"].concat();
        fs::create_dir_all(own.join("objects/info"))?;
        fs::write(own.join("objects/info/alternates"), alternates)
            .with_context(|| format!("cannot write in {}", folder.display()))?;

        let (base, uncommitted) = self.snapshot(folder, &own)?;
        warnings.extend(self.submodules(&base, &own)?);
        if known.contains(&base) {
            return Ok(Packed {
                base,
                bundle: None,
                uncommitted,
                warnings,
            });
        }
        git(&own, ["update-ref", BASE, &base])?;
        let bundle = folder.join("bundle");
        let create = ["bundle", "create", "--quiet"].map(OsStr::new);
        let mut command = git::command(&own);
        command.args(create).arg(&bundle).args([BASE, "--stdin"]);
        let known: String = known.iter().map(|it| format!("^{it}\n")).collect();
        git::run_with_input(command, known.as_bytes())?;
        Ok(Packed {
            base,
            bundle: Some(bundle),
            uncommitted,
            warnings,
        })
    }

    /// Returns a commit of all files that are not ignored, in the objects of `own`, and the number of files by which it
    /// differs from the last commit: that one if there are none.
    fn snapshot(&self, folder: &Path, own: &Path) -> anyhow::Result<(String, usize)> {
        let index = folder.join("index");
        let users = self
            .top
            .join(git_path(&self.top, ["rev-parse", "--git-path", "index"])?);
        // With the times of files that it knows, git need not read them all.
        match fs::copy(&users, &index) {
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(error).context("cannot copy the repository's index"),
        }
        let here = || {
            let mut command = git::command(&self.top);
            command
                .args([
                    "-c",
                    "core.fsmonitor=false",
                    "-c",
                    "advice.addEmbeddedRepo=false",
                ])
                .env("GIT_INDEX_FILE", &index)
                .env("GIT_OBJECT_DIRECTORY", own.join("objects"))
                .env("GIT_ALTERNATE_OBJECT_DIRECTORIES", &self.objects);
            command
        };
        let run = |command: &mut Command, args: &[&str]| git::run(command.args(args));
        run(&mut here(), &["add", "--all"])?;
        let tree = run(&mut here(), &["write-tree"])?;
        if tree == git(&self.top, ["rev-parse", "HEAD^{tree}"])? {
            return Ok((self.head.clone(), 0));
        }
        let message = "Uncommitted changes";
        let mut commit = here();
        git::as_teamster(&mut commit);
        let commit = run(
            &mut commit,
            &["commit-tree", &tree, "-p", &self.head, "-m", message],
        )?;
        let changed = ["diff-tree", "-r", "--name-only", &self.head, &commit];
        let changed = run(&mut here(), &changed)?.lines().count();
        Ok((commit, changed))
    }

    /// Returns a warning for the submodules that are not uploaded.
    fn submodules(&self, base: &str, own: &Path) -> anyhow::Result<Option<String>> {
        let listed = git_bytes(own, ["ls-tree", "-r", "-z", base])?;
        let listed = String::from_utf8_lossy(&listed);
        let links = listed.split('\0').filter_map(|entry| {
            let (_, path) = entry.strip_prefix("160000 ")?.split_once('\t')?;
            Some(one_line(path))
        });
        let links: Vec<_> = links.collect();
        Ok((!links.is_empty()).then(|| {
            let names = links.join(", ");
            let count = plural(links.len() as u64, "submodule");
            format!("{count} not uploaded, so empty there: {names}")
        }))
    }
}

/// Formats a number of bytes.
fn mib(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}
