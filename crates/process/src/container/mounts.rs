//! What of this machine the workspace of an agent consists of.

use std::fs;
use std::path::{Path, PathBuf};

use crate::git_env::is_repository;

/// Returns the working directory, or the work tree of git that it is in, and the repository of that work tree if it is
/// elsewhere. A work tree that has the user's home in it is left out.
pub(super) fn of_workspace(directory: &Path) -> Vec<PathBuf> {
    let home = std::env::home_dir();
    let top = directory.ancestors().find(|it| is_repository(it));
    let top = top.filter(|top| home.as_ref().is_none_or(|home| !home.starts_with(top)));
    let Some(top) = top else {
        return vec![directory.to_owned()];
    };
    let mut paths = vec![top.to_owned()];
    paths.extend(repository(top).filter(|repository| !repository.starts_with(top)));
    paths
}

/// Returns the repository of a linked work tree or of a submodule.
fn repository(top: &Path) -> Option<PathBuf> {
    let link = fs::read_to_string(top.join(".git")).ok()?;
    let own = link
        .trim_end_matches(['\n', '\r'])
        .strip_prefix("gitdir: ")?;
    let own = top.join(own);
    let common = fs::read_to_string(own.join("commondir"));
    let common = common.map(|path| own.join(path.trim_end_matches(['\n', '\r'])));
    common.unwrap_or(own).canonicalize().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_work_tree_is_mounted_with_its_repository() {
        let temp = tempfile::tempdir().unwrap();
        let temp = temp.path().canonicalize().unwrap();
        let dir = |path: &str| {
            let path = temp.join(path);
            fs::create_dir_all(&path).unwrap();
            path
        };
        assert_eq!(of_workspace(&dir("plain/sub")), [temp.join("plain/sub")]);
        dir("main/.git/worktrees/linked");
        fs::write(temp.join("main/.git/HEAD"), "ref: refs/heads/main\n").unwrap();
        assert_eq!(of_workspace(&dir("main/sub")), [temp.join("main")]);
        // As `git worktree add` writes them.
        let own = temp.join("main/.git/worktrees/linked");
        fs::write(own.join("commondir"), "../..\n").unwrap();
        let linked = dir("linked");
        fs::write(linked.join(".git"), format!("gitdir: {}\n", own.display())).unwrap();
        assert_eq!(
            of_workspace(&dir("linked/sub")),
            [linked, temp.join("main/.git")]
        );
        // As `git submodule add` writes it.
        dir("main/.git/modules/part");
        let part = dir("main/part");
        fs::write(part.join(".git"), "gitdir: ../.git/modules/part\n").unwrap();
        assert_eq!(
            of_workspace(&part),
            [part.clone(), temp.join("main/.git/modules/part")]
        );
    }
}
