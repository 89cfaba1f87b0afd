//! Environment variables that bind git to one repository.
//!
//! Git sets them for its hooks, aliases and editors. A child process that works in another repository or worktree must
//! not inherit them: its `git commit` would go to the branch of the first one.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use teamster_core::provider::LOCAL_GIT_VARIABLES;

/// Returns the variables that a child process in `directory` must not inherit: [`LOCAL_GIT_VARIABLES`] if they bind git
/// to another repository or worktree than that of the directory, else none.
///
/// A child in the current directory inherits all of them, because the caller is bound to the same repository.
#[must_use]
pub fn foreign_git_variables(directory: &Path) -> &'static [&'static str] {
    let is_bound = LOCAL_GIT_VARIABLES
        .iter()
        .any(|name| env::var_os(name).is_some());
    if !is_bound || !is_foreign(directory, |name| env::var_os(name).map(PathBuf::from)) {
        return &[];
    }
    LOCAL_GIT_VARIABLES
}

fn is_foreign(directory: &Path, variable: impl Fn(&str) -> Option<PathBuf>) -> bool {
    let Ok(here) = env::current_dir().and_then(fs::canonicalize) else {
        return true;
    };
    // A directory that does not exist is refused later.
    let Ok(directory) = here.join(directory).canonicalize() else {
        return true;
    };
    if directory == here {
        return false;
    }
    let own = git_dir(&directory);
    match (variable("GIT_DIR"), variable("GIT_WORK_TREE")) {
        // The other variables, such as `GIT_INDEX_FILE`, are of the repository around the current directory.
        (None, None) => own.is_none() || own != git_dir(&here),
        // Without a work tree, git takes the working directory for the top of one; relative paths change their meaning.
        (Some(git_dir), Some(work_tree)) if git_dir.is_absolute() && work_tree.is_absolute() => {
            let is_inside = work_tree
                .canonicalize()
                .is_ok_and(|work_tree| directory.starts_with(work_tree));
            !is_inside || own.is_some_and(|own| git_dir.canonicalize().ok() != Some(own))
        }
        _ => true,
    }
}

/// Returns whether a folder is the top of a repository or of a worktree. A folder `.git` without a `HEAD` is none, for
/// git too: sandboxes leave empty ones in the folders that they protect.
///
/// ```
/// let folder = tempfile::tempdir()?;
/// std::fs::create_dir(folder.path().join(".git"))?;
/// assert!(!teamster_process::is_repository(folder.path()));
/// std::fs::write(folder.path().join(".git/HEAD"), "ref: refs/heads/main\n")?;
/// assert!(teamster_process::is_repository(folder.path()));
/// # std::io::Result::Ok(())
/// ```
pub fn is_repository(folder: &Path) -> bool {
    let entry = folder.join(".git");
    entry.is_file() || entry.join("HEAD").symlink_metadata().is_ok()
}

/// Returns the folder with the data of the worktree that contains this directory, as git finds it.
fn git_dir(directory: &Path) -> Option<PathBuf> {
    directory.ancestors().find_map(|folder| {
        let entry = folder.join(".git");
        if entry.is_dir() {
            let data = is_repository(folder).then(|| entry.canonicalize().ok());
            return data.flatten();
        }
        // A linked worktree or a submodule has a file instead.
        let text = fs::read_to_string(entry).ok()?;
        let path = text.strip_prefix("gitdir:")?.trim();
        folder.join(path).canonicalize().ok()
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::process::Command;

    use super::*;

    #[test]
    fn all_that_git_lists_is_there() {
        let Ok(output) = Command::new("git")
            .args(["rev-parse", "--local-env-vars"])
            .output()
        else {
            return;
        };
        let listed = String::from_utf8(output.stdout).unwrap();
        assert!(listed.contains("GIT_DIR\n"), "{listed}");
        for name in listed.lines() {
            assert!(LOCAL_GIT_VARIABLES.contains(&name), "{name}");
        }
    }

    /// Decides with these variables for a directory. `GIT_INDEX_FILE` alone is no variable that is looked at.
    fn foreign(directory: &Path, git_dir: Option<&Path>, work_tree: Option<&Path>) -> bool {
        is_foreign(directory, |name| {
            let value = match name {
                "GIT_DIR" => git_dir,
                "GIT_WORK_TREE" => work_tree,
                _ => None,
            };
            value.map(Path::to_owned)
        })
    }

    #[test]
    fn variables_are_foreign_in_another_repository_or_worktree() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        for folder in [
            "a/.git/worktrees/w",
            "a/sub",
            "b/.git",
            "w",
            "none",
            "home/x",
        ] {
            fs::create_dir_all(path(folder)).unwrap();
        }
        for top in ["a", "b"] {
            fs::write(path(top).join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
        }
        // As a sandbox leaves it: it hides no repository around it.
        fs::create_dir_all(path("a/sub/.git")).unwrap();
        let linked = format!("gitdir: {}\n", path("a/.git/worktrees/w").display());
        fs::write(path("w/.git"), linked).unwrap();
        symlink(path("a"), path("link")).unwrap();
        let (git, top) = (path("a/.git"), path("a"));
        let both = (Some(&*git), Some(&*top));

        // As with a hook that names both.
        assert!(!foreign(&path("a/sub"), both.0, both.1));
        assert!(!foreign(&path("link/sub"), both.0, both.1));
        assert!(foreign(&path("b"), both.0, both.1));
        assert!(foreign(&path("w"), both.0, both.1));
        assert!(foreign(&path("none"), both.0, both.1));
        // A work tree whose repository is elsewhere.
        assert!(!foreign(&path("home/x"), both.0, Some(&path("home"))));
        // Git would take the folder for the top of the work tree, or the paths for others.
        assert!(foreign(&path("a/sub"), both.0, None));
        assert!(foreign(
            &path("a/sub"),
            Some(Path::new(".git")),
            Some(Path::new("."))
        ));
        assert!(foreign(&path("a/sub"), None, both.1));
        // Only an index: that of the repository around the current directory.
        assert!(foreign(&path("b"), None, None));
        // The caller itself is bound to them.
        let here = env::current_dir().unwrap();
        assert!(!foreign(&here, both.0, None));
        assert!(!foreign(Path::new("."), None, None));
        assert!(!foreign(Path::new("src"), None, None));
    }
}
