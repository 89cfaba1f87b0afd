//! Processes that are killed at every change on disk.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use teamster_workspace::{NewWorktree, Worktree, WorktreeKey};
use tempfile::TempDir;

use super::repository::{Repository, files_of};

/// Variables of the victim process: its repository, the folder of its worktrees, what it does, and the number of the
/// change before which it aborts.
const REPOSITORY: &str = "TEAMSTER_TEST_REPOSITORY";
const ROOT: &str = "TEAMSTER_TEST_ROOT";
const ACTION: &str = "TEAMSTER_TEST_ACTION";
const KILL_AT: &str = "TEAMSTER_TEST_KILL_AT_CHANGE";
/// More changes than any action makes.
const MOST: u64 = 60;

/// Victim process of the other tests, which start it with variables. Does nothing as a plain test.
#[test]
fn victim() {
    let Some(repository) = env::var_os(REPOSITORY) else {
        return;
    };
    let root = PathBuf::from(env::var_os(ROOT).unwrap());
    let action = env::var(ACTION).unwrap();
    let wanted = NewWorktree::of(repository);
    let key = WorktreeKey::new("a1", "k");
    let mut made = match &*action {
        "key" => Worktree::of_key(&root, "r", &wanted, &key, false),
        "over" => Worktree::of_key(&root, "r", &wanted, &key, true),
        "empty" => Worktree::empty(&root, "r"),
        _ => Worktree::create(&root, "r", &wanted),
    }
    .unwrap();
    made.start().unwrap();
    if action == "changes" || action == "key" {
        fs::write(made.directory().join("work"), "of the agent").unwrap();
        // Outside, for the test: from here on the work must not be lost.
        fs::write(root.with_extension("worked"), "").unwrap();
    }
    drop(made);
}

/// A repository with all that a user may have in it, and a folder for worktrees.
struct Place {
    repository: Repository,
    state: TempDir,
}

impl Place {
    fn new() -> Self {
        let repository = Repository::new();
        repository.write(".gitignore", ".env\n");
        repository.write(".worktreeinclude", ".env\n");
        repository.commit("include");
        repository.write(".env", "A=1\n");
        // Something in the stash, in the index, and in neither.
        repository.write("a.txt", "stashed\n");
        repository.git(["stash", "--quiet"]);
        repository.write("a.txt", "staged\n");
        repository.git(["add", "a.txt"]);
        repository.write("sub/b.txt", "changed\n");
        repository.write("untracked", "new\n");
        Self {
            repository,
            state: tempfile::tempdir().unwrap(),
        }
    }

    fn root(&self) -> PathBuf {
        self.state.path().join("worktrees")
    }

    /// Runs the victim. Returns whether it was killed.
    fn is_killed(&self, action: &str, at: u64) -> bool {
        let output = Command::new(env::current_exe().unwrap())
            .args(["--exact", "it::killed::victim", "--nocapture"])
            .env(REPOSITORY, self.repository.path())
            .env(ROOT, self.root())
            .env(ACTION, action)
            .env(KILL_AT, at.to_string())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let is_over = output.status.success();
        assert!(is_over || output.status.code().is_none(), "{text}");
        !is_over
    }

    /// The next process, which cleans up.
    fn next(&self) {
        let wanted = NewWorktree::of(self.repository.path());
        drop(Worktree::create(&self.root(), "next", &wanted).unwrap());
    }

    fn left(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.root()).into_iter().flatten();
        entries.map(|it| it.unwrap().path()).collect()
    }
}

/// What git keeps of worktrees, their branches and results is not the user's. No object is ever changed.
fn is_users(path: &Path) -> bool {
    ![
        ".git/objects",
        ".git/refs/teamster",
        ".git/worktrees",
        ".git/refs/heads/teamster",
        ".git/logs/refs/heads/teamster",
    ]
    .iter()
    .any(|it| path.starts_with(it))
}

#[test]
fn a_process_that_is_killed_at_any_change_leaves_the_repository_as_it_was() {
    for action in ["nothing", "changes", "empty"] {
        let mut kills = 0;
        for at in 1..MOST {
            let place = Place::new();
            let all = place.repository.files();
            let users = files_of(place.repository.path(), is_users);
            let is_killed = place.is_killed(action, at);
            let context = format!("{action} at {at}");
            assert_eq!(
                files_of(place.repository.path(), is_users),
                users,
                "{context}"
            );
            let has_worked = place.root().with_extension("worked").exists();
            place.next();
            let left = place.left();
            if has_worked {
                // Kept, and shown by git.
                let list = place.repository.git(["worktree", "list"]);
                assert_eq!(
                    (left.len(), list.lines().count()),
                    (1, 2),
                    "{context}: {list}"
                );
                let tree = place.root().join("r");
                let mut trees = fs::read_dir(tree).unwrap().map(|it| it.unwrap().path());
                assert!(trees.any(|it| it.join("work").exists()), "{context}");
            } else {
                assert!(left.is_empty(), "{context}: {left:?}");
                assert_eq!(place.repository.files(), all, "{context}");
            }
            if !is_killed {
                break;
            }
            kills += 1;
        }
        assert!((5..MOST - 2).contains(&kills), "{action}: {kills}");
    }
}

#[test]
fn a_key_keeps_its_worktree_wherever_a_process_of_it_is_killed() {
    let mut kills = 0;
    for at in 1..MOST {
        let place = Place::new();
        let users = files_of(place.repository.path(), is_users);
        let is_killed = place.is_killed("key", at);
        let has_worked = place.root().with_extension("worked").exists();
        place.next();
        let context = format!("key at {at}");
        assert_eq!(
            files_of(place.repository.path(), is_users),
            users,
            "{context}"
        );
        let wanted = NewWorktree::of(place.repository.path());
        let key = WorktreeKey::new("a1", "k");
        let again = Worktree::of_key(&place.root(), "again", &wanted, &key, false).unwrap();
        assert_eq!(
            again.directory().join("work").exists(),
            has_worked,
            "{context}"
        );
        drop(again);
        assert_eq!(place.left().len(), usize::from(has_worked), "{context}");
        if !is_killed {
            break;
        }
        kills += 1;
    }
    assert!((5..MOST - 2).contains(&kills), "{kills}");
}

#[test]
fn a_key_that_starts_over_has_a_worktree_wherever_its_process_is_killed() {
    let mut kills = 0;
    for at in 1..MOST {
        let place = Place::new();
        let wanted = NewWorktree::of(place.repository.path());
        let key = WorktreeKey::new("a1", "k");
        let mut first = Worktree::of_key(&place.root(), "first", &wanted, &key, false).unwrap();
        first.start().unwrap();
        fs::write(first.directory().join("work"), "of the agent").unwrap();
        drop(first);
        let is_killed = place.is_killed("over", at);
        place.next();
        // What was done in the first one is never lost.
        let mut trees = fs::read_dir(place.root().join("first")).unwrap();
        assert!(
            trees.any(|it| it.unwrap().path().join("work").exists()),
            "{at}"
        );
        let again = Worktree::of_key(&place.root(), "again", &wanted, &key, false).unwrap();
        drop(again);
        assert!(place.left().len() <= 2, "{at}: {:?}", place.left());
        if !is_killed {
            break;
        }
        kills += 1;
    }
    assert!((5..MOST - 2).contains(&kills), "{kills}");
}
