//! Processes that are killed at every change on disk.

mod pushed;
mod taken;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use teamster_workspace::{
    Incoming, Kept, Mirror, NewWorktree, Origin, SILENCE, Source, Target, Wait, Worktree,
    WorktreeKey,
};
use tempfile::TempDir;

use super::repository::{Repository, files_of, git};

/// Variables of the victim process: its repository, the folder of its worktrees, what it does, and the number of the
/// change before which it aborts.
const REPOSITORY: &str = "TEAMSTER_TEST_REPOSITORY";
const ROOT: &str = "TEAMSTER_TEST_ROOT";
const ACTION: &str = "TEAMSTER_TEST_ACTION";
const KILL_AT: &str = "TEAMSTER_TEST_KILL_AT_CHANGE";
/// More changes than any action makes.
const MOST: u64 = 60;
/// Number of files that the patch of a run changes.
const CHANGED: usize = 5;

/// Victim process of the other tests, which start it with variables. Does nothing as a plain test.
#[test]
fn victim() {
    let Some(repository) = env::var_os(REPOSITORY) else {
        return;
    };
    let root = PathBuf::from(env::var_os(ROOT).unwrap());
    let action = env::var(ACTION).unwrap();
    let brought = root.with_extension("brought");
    match &*action {
        "apply" | "apply-index" => {
            let target = Target::find(Path::new(&repository)).unwrap();
            let patch = brought.join("patch");
            let applied = match &*action {
                "apply" => target.apply(&patch),
                _ => target.apply_with_index(&patch),
            };
            assert_eq!(applied.unwrap(), CHANGED);
            return;
        }
        "fetch" => {
            let target = Target::find(Path::new(&repository)).unwrap();
            let commits = fs::read_to_string(brought.join("commits")).unwrap();
            let commits: Vec<_> = commits.lines().collect();
            let mut incoming = Incoming::new("done", commits[0], commits[1]);
            incoming.wip = Some(commits[2]);
            let bundle = brought.join("bundle");
            target.fetch(Some(&bundle), incoming, "brought").unwrap();
            return;
        }
        "upload" => {
            upload(Path::new(&repository), &root);
            return;
        }
        _ => {}
    }
    let wanted = NewWorktree::of(repository);
    let key = WorktreeKey::new("a1", "k");
    let mut made = match &*action {
        "key" => Worktree::of_key(&root, "r", &wanted, &key),
        "over" => Worktree::of_key(&root, "r", &wanted, &key.start_over()),
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
    if action == "push" {
        fs::write(made.directory().join("work"), "of the agent").unwrap();
        git(made.directory(), ["add", "work"]);
        git(made.directory(), ["commit", "--quiet", "-m", "of the run"]);
        let head = made.finish().result.head.unwrap();
        fs::write(root.with_extension("worked"), head).unwrap();
        let mut kept = Kept::find(&root, "r").unwrap().unwrap();
        kept.push("origin", Some("fix"), SILENCE).unwrap();
        return;
    }
    drop(made);
}

/// Uploads a repository to a mirror, and makes a worktree there.
fn upload(repository: &Path, root: &Path) {
    let packing = tempfile::tempdir_in(root.parent().unwrap()).unwrap();
    let source = Source::find(repository).unwrap();
    let mut taken = source.take(packing.path()).unwrap();
    let mirrors = root.with_extension("mirrors");
    let known = Mirror::known(&mirrors, source.root(), &taken.offers).unwrap();
    let bundle = taken.pack(&known).unwrap();
    let wait = Wait::new(SILENCE, &|text| panic!("{text}"));
    let mirror = Mirror::open(&mirrors, source.root(), wait).unwrap();
    mirror.receive("r", &taken.base, bundle.as_deref()).unwrap();
    let mut wanted = NewWorktree::of(mirror.path());
    wanted.from = Some(taken.base);
    wanted.origin = Origin::Uploaded;
    drop(Worktree::create(root, "r", &wanted).unwrap());
}

/// A repository with all that a user may have in it, and a folder for worktrees.
struct Place {
    repository: Repository,
    state: TempDir,
}

impl Place {
    /// Makes one such place of which copies are made: that takes less time.
    fn template() -> Self {
        let repository = Repository::new();
        repository.write(".gitignore", ".env\n");
        repository.write(".worktreeinclude", ".env\n");
        repository.write("c.txt", &"a line\n".repeat(10));
        repository.write("gone", "gone\n");
        fs::create_dir_all(repository.path().join("d/e")).unwrap();
        repository.write("d/e/stays", "x\n");
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

    fn copy(&self) -> Self {
        let copy = |from: &Path| {
            let to = tempfile::tempdir().unwrap();
            let mut all = from.as_os_str().to_owned();
            all.push("/.");
            let copied = Command::new("cp")
                .arg("-a")
                .arg(all)
                .arg(to.path())
                .status();
            assert!(copied.unwrap().success());
            to
        };
        Self {
            repository: Repository::at(copy(self.repository.path())),
            state: copy(self.state.path()),
        }
    }

    /// Leaves what a run has brought back: its patch, its bundle and its commits.
    fn bring(&self) {
        let root = self.state.path().join("other");
        let wanted = NewWorktree::of(self.repository.path());
        let mut made = Worktree::create(&root, "done", &wanted).unwrap();
        made.start().unwrap();
        let path = made.directory().to_owned();
        fs::write(path.join(".gitignore"), ".env\nmore\n").unwrap();
        git(&path, ["mv", "c.txt", "d/e/moved"]);
        git(&path, ["commit", "--quiet", "--all", "-m", "of the run"]);
        fs::write(path.join("new"), "new\n").unwrap();
        fs::remove_file(path.join("gone")).unwrap();
        let result = made.finish().result;
        let brought = self.root().with_extension("brought");
        fs::create_dir(&brought).unwrap();
        let kept = Kept::find(&root, "done").unwrap().unwrap();
        kept.write_patch(&brought.join("patch")).unwrap();
        assert!(kept.write_bundle(&brought.join("bundle")).unwrap());
        kept.forget(None).unwrap();
        let commits = [result.base, result.head.unwrap(), result.wip.unwrap()];
        fs::write(brought.join("commits"), commits.join("\n")).unwrap();
        self.repository
            .git(["worktree", "remove", "--force", path.to_str().unwrap()]);
        self.repository
            .git(["branch", "--quiet", "-D", "teamster/done"]);
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

/// Gives `play` a copy of a place and the number of a change, from the first one on, until it returns that the victim was
/// not killed there. Returns how often it was.
fn at_each_change(template: &Place, mut play: impl FnMut(&Place, u64) -> bool) -> u64 {
    let killed = (1..MOST)
        .take_while(|at| play(&template.copy(), *at))
        .count() as u64;
    assert!(killed < MOST - 2, "{killed} changes");
    killed
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
fn kill_at_any_change_leaves_the_repository_unchanged() {
    let template = Place::template();
    for action in ["nothing", "changes", "empty"] {
        let kills = at_each_change(&template, |place, at| {
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
            // What `runs` knows of is what is left.
            let known = fs::read_dir(place.root().with_extension("results"));
            let known = known
                .into_iter()
                .flatten()
                .map(|it| it.unwrap().file_name());
            let known: Vec<_> = known.collect();
            let names: Vec<_> = left
                .iter()
                .map(|it| it.file_name().unwrap().to_owned())
                .collect();
            assert_eq!(known, names, "{context}");
            if has_worked {
                let kept = Kept::find(&place.root(), "r").unwrap().unwrap();
                let result = kept.result();
                assert!(result.is_some_and(|it| it.wip.is_some()), "{context}");
                let result = result.unwrap();
                let wip = result.wip.clone().unwrap();
                let work = place.repository.git(["show", &format!("{wip}:work")]);
                assert_eq!(work, "of the agent", "{context}");
                let reference = place.repository.git(["rev-parse", "refs/teamster/r/wip"]);
                assert_eq!(reference, wip, "{context}");

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
            is_killed
        });
        assert!(kills >= 5, "{action}: {kills}");
    }
}

#[test]
fn a_key_keeps_its_worktree_wherever_a_process_of_it_is_killed() {
    let template = Place::template();
    let kills = at_each_change(&template, |place, at| {
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
        let again = Worktree::of_key(&place.root(), "again", &wanted, &key).unwrap();
        assert_eq!(
            again.directory().join("work").exists(),
            has_worked,
            "{context}"
        );
        drop(again);
        // One that was marked as started stays with the key, too.
        let least = usize::from(has_worked);
        assert!((least..=1).contains(&place.left().len()), "{context}");
        is_killed
    });
    assert!(kills >= 5, "{kills}");
}

#[test]
fn kill_at_any_step_of_a_new_start_leaves_a_worktree() {
    let template = Place::template();
    let kills = at_each_change(&template, |place, at| {
        let wanted = NewWorktree::of(place.repository.path());
        let key = WorktreeKey::new("a1", "k");
        let mut first = Worktree::of_key(&place.root(), "first", &wanted, &key).unwrap();
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
        let again = Worktree::of_key(&place.root(), "again", &wanted, &key).unwrap();
        drop(again);
        assert!(place.left().len() <= 2, "{at}: {:?}", place.left());
        is_killed
    });
    assert!(kills >= 5, "{kills}");
}

#[test]
fn an_upload_can_be_repeated_wherever_a_process_of_it_is_killed() {
    let template = Place::template();
    let kills = at_each_change(&template, |place, at| {
        let before = place.repository.files();
        let is_killed = place.is_killed("upload", at);
        assert!(
            place.repository.files() == before,
            "{at}: something was changed"
        );
        assert!(!place.is_killed("upload", u64::MAX), "{at}");
        assert!(place.left().is_empty(), "{at}: {:?}", place.left());
        is_killed
    });
    assert!(kills >= 5, "{kills}");
}

#[test]
fn work_of_a_killed_keyed_run_is_kept_before_the_next_change() {
    let template = Place::template();
    let mut is_seen = false;
    at_each_change(&template, |place, at| {
        let wanted = NewWorktree::of(place.repository.path());
        let key = WorktreeKey::new("a1", "k");
        let of_key = |id| Worktree::of_key(&place.root(), id, &wanted, &key).unwrap();
        let mut first = of_key("first");
        first.start().unwrap();
        first.finish();
        let is_killed = place.is_killed("key", at);
        if place.root().with_extension("worked").exists() {
            is_seen = true;
            let next = of_key("next");
            fs::write(next.directory().join("work"), "of the next").unwrap();
            let kept = Kept::find(&place.root(), "r").unwrap().unwrap();
            let wip = kept.result().and_then(|it| it.wip.clone());
            assert!(wip.is_some(), "{at}: {kept:?}");
            let work = ["show", "refs/teamster/r/wip:work"];
            assert_eq!(place.repository.git(work), "of the agent", "{at}");
            let folder = next.root().parent().unwrap().join("runs");
            assert_eq!(fs::read_dir(folder).unwrap().count(), 0, "{at}");
        }
        is_killed
    });
    assert!(is_seen);
}
