//! Submodules of a new worktree, from the repositories that the user's own tree has of them.

use std::path::{Component, Path};

use super::git;
use crate::words;

/// Checks out the submodules that are checked out in `source`, which is the user's tree, also in `target`, from their
/// local repositories and without a network. Returns a warning for each that failed.
pub(super) fn check_out(source: &Path, target: &Path) -> Vec<String> {
    let mut warnings = Vec::new();
    for (name, path) in listed(target) {
        let own = source.join(&path);
        // Not checked out there either.
        if !own.join(".git").exists() {
            continue;
        }
        if let Err(error) = check_out_one(&own, target, &name, &path) {
            let path = words::one_line(&path);
            warnings.push(format!(
                "--worktree: the submodule {path} is empty: {error:#}"
            ));
            continue;
        }
        warnings.extend(check_out(&own, &target.join(&path)));
    }
    warnings
}

/// Returns names and paths of the submodules of a tree.
fn listed(tree: &Path) -> Vec<(String, String)> {
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
    let local = git(own, ["rev-parse", "--absolute-git-dir"])?;
    let url = format!("submodule.{name}.url={local}");
    // A local path is refused by default, because usually the repository names it.
    let allow = "protocol.file.allow=always";
    let update = ["submodule", "--quiet", "update", "--init", "--", path];
    git(target, ["-c", allow, "-c", &url].into_iter().chain(update))?;
    if let Ok(remote) = git(own, ["remote", "get-url", "origin"]) {
        let checked_out = target.join(path);
        git(&checked_out, ["remote", "set-url", "origin", &remote])?;
    }
    Ok(())
}
