//! Submodules of a worktree: checked out from the repositories that the user's own tree has of them, and searched for
//! work that would be lost with the worktree.

use std::ffi::OsStr;
use std::fs;
use std::path::{Component, Path, PathBuf};

use anyhow::Context;
use teamster_core::text::{plural, printable};

use crate::git::{self, git, git_path};
use crate::worktree::lfs;

/// Checks out the submodules that are checked out in `source`, which is the user's tree, also in `target`, from their
/// local repositories and without a network. Returns a warning for each that failed.
pub(crate) fn check_out(source: &Path, target: &Path) -> Vec<String> {
    let mut warnings = Vec::new();
    for (name, path) in listed(target) {
        let own = source.join(&path);
        // Not checked out there either.
        if !own.join(".git").exists() {
            continue;
        }
        if let Err(error) = check_out_one(&own, target, &name, &path) {
            let path = printable(&path);
            warnings.push(format!(
                "`worktree`: the submodule {path} is empty: {error:#}"
            ));
            continue;
        }
        warnings.extend(check_out(&own, &target.join(&path)));
    }
    warnings
}

/// Checks out the submodules whose commits are in a bare repository. `scratch` is a folder for a while. Returns a warning for
/// each that is not there or failed. Large files have the content that the bare repository has.
pub(super) fn check_out_from(repository: &Path, target: &Path, scratch: &Path) -> Vec<String> {
    let mut warnings = Vec::new();
    for (name, path) in listed(target) {
        let shown = printable(&path);
        match check_out_part(repository, target, scratch, (&name, &path)) {
            Ok(true) => {
                let module = target.join(&path);
                match lfs::fill_in(&module, repository) {
                    Ok(warning) => warnings.extend(warning),
                    Err(error) => warnings.push(format!("the submodule {shown}: {error:#}")),
                }
                warnings.extend(check_out_from(repository, &module, scratch));
            }
            Ok(false) => warnings.push(format!(
                "the submodule {shown} is empty: it was not checked out where it was uploaded"
            )),
            Err(error) => warnings.push(format!("the submodule {shown} is empty: {error:#}")),
        }
    }
    warnings
}

/// Checks out submodules of a bare repository also in `target`, from a worktree of that repository which has them.
pub(super) fn check_out_of_linked(repository: &Path, target: &Path) -> Vec<String> {
    if listed(target).is_empty() {
        return Vec::new();
    }
    let list = git(repository, ["worktree", "list", "--porcelain"]).unwrap_or_default();
    let trees = list
        .lines()
        .filter_map(|line| line.strip_prefix("worktree "));
    let has_all = |tree: &&Path| {
        let has = |(_, path): &(String, String)| tree.join(path).join(".git").exists();
        *tree != target && listed(target).iter().all(has)
    };
    match trees.map(Path::new).find(has_all) {
        Some(tree) => check_out(tree, target),
        None => vec![
            "`worktree`: submodules are empty: no worktree of the repository has them all"
                .to_owned(),
        ],
    }
}

/// Checks out a submodule whose commit is in this repository; `false` if it is not.
fn check_out_part(
    repository: &Path,
    target: &Path,
    scratch: &Path,
    (name, path): (&str, &str),
) -> anyhow::Result<bool> {
    let link = git(target, ["rev-parse", &format!("HEAD:{path}")])?;
    if git(
        repository,
        ["cat-file", "-e", &format!("{link}^{{commit}}")],
    )
    .is_err()
    {
        return Ok(false);
    }
    // A repository of the submodule alone, which has the objects by reference.
    let part = scratch.join("submodule.git");
    let _ = fs::remove_dir_all(&part);
    let format = git(target, ["rev-parse", "--show-object-format"])?;
    let format = format!("--object-format={format}");
    let init = ["init", "--quiet", "--bare", "--template=", &format].map(OsStr::new);
    git(scratch, init.into_iter().chain([part.as_os_str()]))?;
    git::share_objects(&repository.join("objects"), &part.join("objects"))?;
    let branch = git(&part, ["symbolic-ref", "HEAD"])?;
    git(&part, ["update-ref", &branch, &link])?;
    let made = check_out_by(&part, target, name, path, &lfs::AS_THEY_ARE)
        .and_then(|()| own_objects(&target.join(path)));
    let _ = fs::remove_dir_all(&part);
    made?;
    let key = format!("submodule.{name}.url");
    if let Ok(remote) = git(target, ["config", "--file", ".gitmodules", &key]) {
        git(&target.join(path), ["remote", "set-url", "origin", &remote])?;
    }
    Ok(true)
}

/// Copies the objects that a submodule has by reference: a later upload may replace those.
fn own_objects(submodule: &Path) -> anyhow::Result<()> {
    git(submodule, ["repack", "-a", "-d", "--quiet"])?;
    let alternates = git_path(
        submodule,
        ["rev-parse", "--git-path", "objects/info/alternates"],
    )?;
    fs::remove_file(submodule.join(alternates)).context("a submodule has no objects of its own")
}

/// Returns the paths of the submodules of a tree that are checked out.
pub(crate) fn checked_out(tree: &Path) -> Vec<String> {
    let paths = listed(tree).into_iter().map(|(_, path)| path);
    paths
        .filter(|path| tree.join(path).join(".git").exists())
        .collect()
}

/// Returns names and paths of the submodules of a tree.
pub(crate) fn listed(tree: &Path) -> Vec<(String, String)> {
    if !tree.join(".gitmodules").is_file() {
        return Vec::new();
    }
    let args = [
        "config",
        "-z",
        "--file",
        ".gitmodules",
        "--get-regexp",
        r"^submodule\..*\.path$",
    ];
    let entries = git(tree, args).unwrap_or_default();
    let entries = entries.split('\0').filter_map(|entry| {
        let (key, path) = entry.split_once('\n')?;
        let name = key.strip_prefix("submodule.")?.strip_suffix(".path")?;
        // The file is part of the repository: a path in it may lead elsewhere.
        let is_inside = Path::new(path)
            .components()
            .all(|part| matches!(part, Component::Normal(_)));
        is_inside.then(|| (name.to_owned(), path.to_owned()))
    });
    entries.collect()
}

fn check_out_one(own: &Path, target: &Path, name: &str, path: &str) -> anyhow::Result<()> {
    let local = git_path(own, ["rev-parse", "--absolute-git-dir"])?;
    check_out_by(&local, target, name, path, &[])?;
    if let Ok(remote) = git(own, ["remote", "get-url", "origin"]) {
        let checked_out = target.join(path);
        git(&checked_out, ["remote", "set-url", "origin", &remote])?;
    }
    Ok(())
}

/// Checks out a submodule from a repository of this machine, without hooks of its own choice.
fn check_out_by(
    local: &Path,
    target: &Path,
    name: &str,
    path: &str,
    options: &[&str],
) -> anyhow::Result<()> {
    let mut command = git::command(target);
    git::without_side_effects(&mut command);
    command.args(options);
    // By the environment, because a name may contain `=`. A local path is refused by default, because usually the
    // repository names it.
    command
        .env("GIT_CONFIG_COUNT", "2")
        .env("GIT_CONFIG_KEY_0", format!("submodule.{name}.url"))
        .env("GIT_CONFIG_VALUE_0", local)
        .env("GIT_CONFIG_KEY_1", "protocol.file.allow")
        .env("GIT_CONFIG_VALUE_1", "always")
        .args(["submodule", "--quiet", "update", "--init", "--", path]);
    git::run(&mut command).map(drop)
}

/// Describes the work in the submodules of a worktree that is nowhere else. Git keeps their repositories with the
/// worktree, so it removes their branches and stashes too.
pub(crate) fn unsaved(tree: &Path) -> Vec<String> {
    let mut found = Vec::new();
    if let Ok(repository) = git(tree, ["rev-parse", "--absolute-git-dir"]) {
        let repository = PathBuf::from(repository);
        add_unsaved(&repository, &["HEAD".to_owned()], "", &mut found);
    }
    found
}

/// Adds the work in the submodules of this repository, in which these commits are saved.
fn add_unsaved(repository: &Path, saved: &[String], prefix: &str, found: &mut Vec<String>) {
    let modules = repository.join("modules");
    let mut submodules = Vec::new();
    add_repositories(&modules, &mut submodules);
    if submodules.is_empty() {
        return;
    }
    let saved = saved.iter().flat_map(|commit| links(repository, commit));
    let saved: Vec<_> = saved.collect();
    for submodule in submodules {
        let name = submodule.strip_prefix(&modules).unwrap_or(&submodule);
        let name = format!("{prefix}{}", name.display());
        match work_in(&submodule, &saved) {
            Ok(work) if work.is_empty() => {}
            Ok(work) => found.push(format!(
                "{} in the submodule {}",
                work.join(" and "),
                printable(&name)
            )),
            Err(_) => found.push(format!(
                "the submodule {}, which git cannot read",
                printable(&name)
            )),
        }
        add_unsaved(&submodule, &saved, &format!("{name}/"), found);
    }
}

/// Adds the repositories in a folder `modules`. A submodule's name may have slashes.
fn add_repositories(folder: &Path, found: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in entries.filter(|it| it.file_type().is_ok_and(|it| it.is_dir())) {
        let path = entry.path();
        if path.join("HEAD").is_file() && path.join("objects").is_dir() {
            found.push(path);
        } else {
            add_repositories(&path, found);
        }
    }
}

/// Returns the commits of submodules that a commit names.
fn links(repository: &Path, commit: &str) -> Vec<String> {
    let listed = git_dir(repository, ["ls-tree", "-r", "-z", commit]).unwrap_or_default();
    let links = listed.split('\0').filter_map(|entry| {
        let (commit, _) = entry.strip_prefix("160000 commit ")?.split_once('\t')?;
        Some(commit.to_owned())
    });
    links.collect()
}

/// Returns the numbers of commits that are on no remote and not saved, stashes, and changed files.
fn work_in(repository: &Path, saved: &[String]) -> anyhow::Result<Vec<String>> {
    // `saved` may be of other submodules.
    let range = [
        "rev-list",
        "--count",
        "--ignore-missing",
        "--branches",
        "HEAD",
    ];
    let except = ["--not", "--remotes"].into_iter();
    let except = except
        .chain(saved.iter().map(String::as_str))
        // The folder has a file HEAD.
        .chain(["--"]);
    let commits: u64 = git_dir(repository, range.into_iter().chain(except))?.parse()?;
    let stashes = git_dir(repository, ["stash", "list"])?.lines().count();
    // A submodule that was removed from the working directory has none of its own.
    let files = git(repository, ["--git-dir=.", "config", "core.worktree"])
        .map(|directory| repository.join(directory))
        .and_then(|directory| {
            git(
                &directory,
                ["status", "--porcelain", "--untracked-files=all"],
            )
        })
        .map_or(0, |files| files.lines().count());
    let mut work = Vec::new();
    if commits > 0 {
        work.push(plural(commits, "commit"));
    }
    match stashes {
        0 => {}
        1 => work.push("1 stash".to_owned()),
        _ => work.push(format!("{stashes} stashes")),
    }
    if files > 0 {
        let files = plural(files as u64, "changed file");
        work.push(format!("{files} not committed"));
    }
    Ok(work)
}

/// Runs git in a repository whose working directory may be gone.
fn git_dir<'a>(
    repository: &Path,
    args: impl IntoIterator<Item = &'a str>,
) -> anyhow::Result<String> {
    let here = ["--git-dir=.", "--work-tree=."].into_iter();
    git(repository, here.chain(args))
}
