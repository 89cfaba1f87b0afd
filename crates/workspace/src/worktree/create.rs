//! Creation of worktrees.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use teamster_core::text::{one_line, plural, printable};

use super::folder::{INFO, Info, Kind, LOCK, Step, claim, make, sweep};
use super::{Worktree, include, lfs, record};
use crate::bundle::encoded_id;
use crate::git::{self, git, git_path, git_path_at};
use crate::network::SILENCE;
use crate::remote::{self, UnknownCommit};
use crate::step::before_change;
use crate::submodules;

/// The prefix of the default branch name, before the run's id.
const BRANCH: &str = "teamster/";

/// The worktree that is wanted.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct NewWorktree {
    /// Directory whose repository gets the worktree.
    pub directory: PathBuf,
    /// The commit to start at, as git names it. Default: `HEAD`.
    pub from: Option<String>,
    /// The name of the new branch. Default: one that is named after the id.
    pub branch: Option<String>,
    /// The name of the worktree's folder. Default: that of the repository.
    pub name: Option<String>,
    /// The agent's directory in the worktree. Default: where `directory` is in its own worktree.
    pub subdirectory: Option<PathBuf>,
    /// Origin of the repository, and so of its submodules.
    pub origin: Origin,
    /// Time for which a git command that uses a network may print nothing. Default: [`SILENCE`](crate::SILENCE).
    pub silence: Option<Duration>,
}

/// Origin of the repository of a worktree.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Origin {
    /// It is the user's own.
    #[default]
    User,
    /// It is a mirror of one that can be fetched.
    Fetched,
    /// It is a mirror of one that was uploaded.
    Uploaded,
}

/// Returns the name of a worktree's folder: that of the repository, unless the files beside it have that name.
fn folder_name(name: &OsStr) -> &OsStr {
    let taken = [
        LOCK,
        INFO,
        "worktree.new",
        "set-up",
        "submodule.git",
        "runs",
    ];
    if taken.iter().any(|it| name == OsStr::new(it)) {
        OsStr::new("repository")
    } else {
        name
    }
}

impl NewWorktree {
    /// Creates the description of a worktree of the repository that contains this directory.
    pub fn of(directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
            ..Self::default()
        }
    }
}

impl Worktree {
    /// Creates a worktree in a folder of `root` with this id. First cleans up after killed processes.
    ///
    /// # Errors
    ///
    /// Fails if git is not installed, without a repository or the commit, or if the branch exists. Nothing is left behind.
    pub fn create(root: &Path, id: &str, wanted: &NewWorktree) -> anyhow::Result<Self> {
        sweep(root);
        Self::make(root, id, wanted).map_err(git::with_version)
    }

    fn make(root: &Path, id: &str, wanted: &NewWorktree) -> anyhow::Result<Self> {
        let start = Start::find(&wanted.directory, wanted.origin)?;
        let base = start.commit(wanted.from.as_deref())?;
        let branch = match &wanted.branch {
            Some(branch) => branch.clone(),
            None => format!("{BRANCH}{}", encoded_id(id)),
        };
        start.check_branch(&branch)?;
        let mut made = Self::begin(root, id, |folder| Info {
            kind: Kind::Worktree,
            repository: start.repository.clone(),
            path: folder.join(folder_name(
                wanted.name.as_deref().map_or(&*start.name, OsStr::new),
            )),
            branch,
            base,
            step: Step::Making,
            kept: false,
            key: None,
            stays: None,
        })?;
        made.origin = wanted.origin;
        let inside = wanted.subdirectory.as_ref().unwrap_or(&start.inside);
        made.directory = made.info.path.join(inside).components().collect();
        made.add()?;
        if let Some(top) = &start.top {
            if wanted.from.is_none() {
                made.warnings.extend(uncommitted(top));
            }
            let submodules = submodules::check_out(top, &made.info.path);
            made.warnings.extend(submodules);
            made.warnings.extend(include::copy(top, &made.info.path));
        } else {
            let (repository, path) = (&start.repository, &made.info.path);
            let warnings = match wanted.origin {
                Origin::User => submodules::check_out_of_linked(repository, path),
                Origin::Fetched => {
                    let silence = wanted.silence.unwrap_or(SILENCE);
                    let warning = remote::submodules(repository, path, silence);
                    warning.into_iter().collect()
                }
                Origin::Uploaded => submodules::check_out_from(repository, path, &made.folder),
            };
            made.warnings.extend(warnings);
        }
        if wanted.origin == Origin::Uploaded {
            made.warnings
                .extend(lfs::fill_in(&made.info.path, &start.repository)?);
        } else {
            made.warnings.extend(lfs::pointers(&made.info.path));
        }
        if let Some(subdirectory) = &wanted.subdirectory {
            made.check_inside(subdirectory)?;
        }
        made.info.step = Step::Prepared;
        made.write_info()?;
        if !made.directory.is_dir() {
            // The directory is not in the commit.
            made.directory.clone_from(&made.info.path);
        }
        Ok(made)
    }

    /// Creates an empty directory in a folder of `root` with this id. First cleans up after killed processes.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be created. Nothing is left behind.
    pub fn empty(root: &Path, id: &str) -> anyhow::Result<Self> {
        sweep(root);
        let mut made = Self::begin(root, id, |folder| Info {
            kind: Kind::Empty,
            repository: folder.join("files"),
            path: folder.join("files"),
            branch: String::new(),
            base: String::new(),
            step: Step::Making,
            kept: false,
            key: None,
            stays: None,
        })?;
        make(&made.info.path)
            .with_context(|| format!("cannot create {}", made.info.path.display()))?;
        made.info.step = Step::Prepared;
        made.write_info()?;
        Ok(made)
    }

    /// Creates the folder of a new workspace. From here on, dropping it cleans up.
    fn begin(root: &Path, id: &str, info: impl FnOnce(&Path) -> Info) -> anyhow::Result<Self> {
        let folder = root.join(id);
        make(root).with_context(|| format!("cannot create {}", root.display()))?;
        if folder.exists() {
            bail!("a worktree exists in {} already", folder.display());
        }
        let lock = claim(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
        let info = info(&folder);
        let made = Self {
            directory: info.path.clone(),
            info,
            folder,
            lock: Some(lock),
            keyed: None,
            record: record::folder(root, id),
            uploaded: None,
            origin: Origin::User,
            warnings: Vec::new(),
        };
        made.write_info()?;
        Ok(made)
    }

    /// Checks that the agent's directory is in the worktree, and is no link that leads out of it.
    fn check_inside(&self, subdirectory: &Path) -> anyhow::Result<()> {
        let real = |path: &Path| path.canonicalize();
        let shown = printable(&subdirectory.to_string_lossy());
        let (Ok(root), Ok(directory)) = (real(&self.info.path), real(&self.directory)) else {
            bail!("the repository has no directory {shown} at that commit");
        };
        if !directory.starts_with(root) {
            bail!("the directory {shown} leads out of the repository");
        }
        Ok(())
    }

    /// Lets git check the worktree out.
    fn add(&mut self) -> anyhow::Result<()> {
        let info = &self.info;
        let args = [
            OsStr::new("worktree"),
            OsStr::new("add"),
            OsStr::new("--quiet"),
            OsStr::new("-b"),
            OsStr::new(&info.branch),
            info.path.as_os_str(),
            OsStr::new(&info.base),
        ];
        before_change();
        let mut command = git::command(&info.repository);
        if self.origin != Origin::User {
            // What a repository of another machine names is not run before its set-up is trusted.
            git::without_side_effects(&mut command);
        }
        command.args(if self.origin == Origin::Uploaded {
            // Their content is filled in later.
            &lfs::AS_THEY_ARE
        } else {
            lfs::options(&info.repository)
        });
        command.args(args);
        let Err(error) = git::run(&mut command) else {
            return Ok(());
        };
        // A hook of the user's runs at the end, when all is checked out, and git reports its failure as its own.
        let complete = ["status", "--porcelain", "--untracked-files=no"];
        let head = git(&info.path, ["rev-parse", "HEAD"]).ok();
        if head.as_deref() != Some(&info.base)
            || !info.path.join(".git").is_file()
            || git(&info.path, complete)
                .ok()
                .is_none_or(|it| !it.is_empty())
        {
            return Err(error);
        }
        self.warnings.push(format!(
            "`worktree`: the hook post-checkout has failed: {error:#}"
        ));
        Ok(())
    }
}

/// The repository of a directory.
pub(super) struct Start {
    /// The worktree that contains the directory, or the repository if it has none.
    repository: PathBuf,
    /// The worktree, if there is one.
    top: Option<PathBuf>,
    /// The name of new worktrees' folders.
    name: OsString,
    /// The directory in the worktree.
    pub(super) inside: PathBuf,
    /// The directory, for messages.
    shown: String,
    directory: PathBuf,
}

impl Start {
    pub(super) fn find(directory: &Path, origin: Origin) -> anyhow::Result<Self> {
        let shown = printable(&directory.to_string_lossy());
        let name = |path: &Path| {
            path.file_name()
                .unwrap_or(OsStr::new("worktree"))
                .to_owned()
        };
        let directory = directory.to_owned();
        let command = || match origin {
            Origin::User => git::command_at(&directory),
            // Its path is known.
            Origin::Fetched | Origin::Uploaded => git::command(&directory),
        };
        let error = match git::path_of(command().args(["rev-parse", "--show-toplevel"])) {
            Ok(top) => {
                return Ok(Self {
                    name: name(&top),
                    inside: git_path_at(&directory, ["rev-parse", "--show-prefix"])?,
                    repository: top.clone(),
                    top: Some(top),
                    shown,
                    directory,
                });
            }
            Err(error) => error,
        };
        git::check()?;
        if !directory.is_dir() {
            bail!("{shown} is not a directory");
        }
        // A repository without a worktree of its own, from inside of it or by a file `.git` that leads to it.
        let is =
            |what: &str| git::run(command().args(["rev-parse", what])).is_ok_and(|it| it == "true");
        if is("--is-bare-repository") {
            let repository = git::path_of(command().args(["rev-parse", "--absolute-git-dir"]))?;
            // As in `project/.bare`.
            let named = name(&repository);
            let is_hidden = named.as_encoded_bytes().starts_with(b".");
            let parent = repository.parent().filter(|_| is_hidden).map(name);
            let stem = || repository.file_stem().unwrap_or(&named).to_owned();
            return Ok(Self {
                name: parent.unwrap_or_else(stem),
                repository,
                top: None,
                inside: PathBuf::new(),
                shown,
                directory,
            });
        }
        if is("--is-inside-git-dir") {
            bail!(
                "{shown} is the internal directory of a git repository: run it in one of its worktrees"
            );
        }
        if git::is_foreign(&error) || error.to_string().contains("safe.bareRepository") {
            return Err(error);
        }
        bail!("{shown} is not in a git repository: run it in one, or set `working_directory`")
    }

    /// Returns the commit to start at.
    fn commit(&self, from: Option<&str>) -> anyhow::Result<String> {
        let shown = &self.shown;
        let wanted = format!("{}^{{commit}}", from.unwrap_or("HEAD"));
        let found = git(
            &self.directory,
            ["rev-parse", "--verify", "--quiet", &wanted],
        );
        found.map_err(|_| match from {
            Some(from) => UnknownCommit::error(format!(
                "the repository {shown} has no commit \"{}\": fetch it first, or name another one",
                one_line(from)
            )),
            None if git(&self.directory, ["for-each-ref", "--count=1"])
                .is_ok_and(|refs| !refs.is_empty()) =>
            {
                anyhow!(
                    "the branch of {shown} has no commit yet: create one first, or name a commit to start at"
                )
            }
            None => anyhow!("the repository {shown} has no commit yet: create one first"),
        })
    }

    /// Returns the folder that all worktrees of the repository share.
    pub(super) fn common(&self) -> anyhow::Result<PathBuf> {
        let common = git_path(&self.repository, ["rev-parse", "--git-common-dir"])?;
        Ok(self.repository.join(common).canonicalize()?)
    }

    fn check_branch(&self, branch: &str) -> anyhow::Result<()> {
        if branch.starts_with('-')
            || git(&self.directory, ["check-ref-format", "--branch", branch]).is_err()
        {
            bail!("\"{}\" is not a valid branch name", one_line(branch));
        }
        let reference = format!("refs/heads/{branch}");
        let exists = git(
            &self.directory,
            ["rev-parse", "--verify", "--quiet", &reference],
        );
        if exists.is_ok() {
            bail!("a branch \"{branch}\" exists already: choose another name, or omit it");
        }
        Ok(())
    }
}

/// Returns a warning about uncommitted changes that the agent does not see.
fn uncommitted(top: &Path) -> Option<String> {
    let mut status = git::command(top);
    // The user's index is not written.
    status.env("GIT_OPTIONAL_LOCKS", "0");
    let changed = git::run(status.args(["status", "--porcelain"])).ok()?;
    let changed = changed.lines().count() as u64;
    (changed > 0).then(|| {
        let files = plural(changed, "file");
        format!("`worktree` starts at the last commit, without the uncommitted changes to {files}")
    })
}
