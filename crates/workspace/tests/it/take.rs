use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use teamster_process::ProcessIdentity;
use teamster_workspace::{
    Finished, Incoming, Kept, NewWorktree, SILENCE, TakeError, Target, Worktree,
};
use tempfile::TempDir;

use super::repository::{Files, Repository, files_of, git};

/// What a run `r` has brought back: a commit, files that it has not committed, and both as a patch and a bundle.
struct Brought {
    repository: Repository,
    /// A clone of the repository as it was when the run began.
    clone: PathBuf,
    folder: TempDir,
    base: String,
    head: String,
    wip: String,
}

/// A worktree in which an agent was started.
fn worktree(root: &Path, repository: &Repository, id: &str) -> Worktree {
    let mut made = Worktree::create(root, id, &NewWorktree::of(repository.path())).unwrap();
    made.start().unwrap();
    made
}

impl Brought {
    fn new() -> Self {
        let repository = Repository::new();
        repository.write("moved", &"a line\n".repeat(10));
        repository.commit("second");
        let folder = tempfile::tempdir().unwrap();
        let clone = folder.path().join("clone");
        let source = repository.path().to_str().unwrap();
        git(
            folder.path(),
            ["clone", "--quiet", source, clone.to_str().unwrap()],
        );
        let root = folder.path().join("worktrees");
        let worktree = worktree(&root, &repository, "r");
        let path = worktree.directory().to_owned();
        fs::write(path.join("a.txt"), "two\n").unwrap();
        git(&path, ["mv", "moved", "renamed"]);
        git(&path, ["commit", "--quiet", "--all", "-m", "of the run"]);
        fs::create_dir_all(path.join("deep/er")).unwrap();
        fs::write(path.join("deep/er/new"), [0, 1, 0xff]).unwrap();
        fs::write(path.join(OsStr::from_bytes(b"\xff\n\"")), "odd").unwrap();
        fs::remove_file(path.join("sub/b.txt")).unwrap();
        let Finished { result, .. } = worktree.finish();
        let kept = Kept::find(&root, "r").unwrap().unwrap();
        kept.write_patch(&folder.path().join("patch")).unwrap();
        assert!(kept.write_bundle(&folder.path().join("bundle")).unwrap());
        Self {
            repository,
            clone,
            base: result.base,
            head: result.head.unwrap(),
            wip: result.wip.unwrap(),
            folder,
        }
    }

    fn target(&self) -> Target {
        Target::find(&self.clone).unwrap()
    }

    fn patch(&self) -> PathBuf {
        self.folder.path().join("patch")
    }

    fn bundle(&self) -> PathBuf {
        self.folder.path().join("bundle")
    }

    fn incoming(&self) -> Incoming<'_> {
        let mut incoming = Incoming::new("r", &self.base, &self.head);
        incoming.wip = Some(&self.wip);
        incoming
    }

    fn fetch(&self, branch: &str) -> Result<Option<String>, TakeError> {
        self.target()
            .fetch(Some(&self.bundle()), self.incoming(), branch)
    }

    /// Returns all files of the clone, and those of git that say what is where.
    fn state(&self) -> Files {
        files_of(&self.clone, |name| !name.starts_with(".git/objects"))
    }

    fn git<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> String {
        git(&self.clone, args)
    }
}

#[test]
fn changes_are_applied_to_files_and_to_the_index_on_request() {
    let brought = Brought::new();
    let index = || fs::read(brought.clone.join(".git/index")).unwrap();
    let before = index();
    assert_eq!(brought.target().apply(&brought.patch()).unwrap(), 6);
    assert_eq!(index(), before);
    assert_eq!(
        fs::read_to_string(brought.clone.join("a.txt")).unwrap(),
        "two\n"
    );
    assert_eq!(
        fs::read(brought.clone.join("deep/er/new")).unwrap(),
        [0, 1, 0xff]
    );
    brought.git(["add", "--all"]);
    let tree = brought
        .repository
        .git(["rev-parse", &format!("{}^{{tree}}", brought.wip)]);
    assert_eq!(brought.git(["write-tree"]), tree);

    let brought = Brought::new();
    // What git knows of the file is old, as it usually is.
    let file = fs::File::options()
        .write(true)
        .open(brought.clone.join("a.txt"));
    file.unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
    brought.target().apply_with_index(&brought.patch()).unwrap();
    assert_eq!(brought.git(["write-tree"]), tree);
    assert_eq!(brought.git(["diff", "--name-only"]), "");
    let own = brought.clone.join(".git/teamster-apply");
    assert!(!own.exists() && !brought.clone.join(".git/index.lock").exists());
}

#[test]
fn files_become_folders_and_folders_become_files() {
    let repository = Repository::new();
    let folder = tempfile::tempdir().unwrap();
    let clone = folder.path().join("clone");
    let source = repository.path().to_str().unwrap();
    git(
        folder.path(),
        ["clone", "--quiet", source, clone.to_str().unwrap()],
    );
    let root = folder.path().join("worktrees");
    let worktree = worktree(&root, &repository, "r");
    let path = worktree.directory().to_owned();
    fs::remove_file(path.join("a.txt")).unwrap();
    fs::create_dir(path.join("a.txt")).unwrap();
    fs::write(path.join("a.txt/in"), "in\n").unwrap();
    fs::remove_dir_all(path.join("sub")).unwrap();
    symlink("/etc/passwd", path.join("sub")).unwrap();
    worktree.finish();
    let kept = Kept::find(&root, "r").unwrap().unwrap();
    let patch = folder.path().join("patch");
    kept.write_patch(&patch).unwrap();
    let before = files_of(&clone, |name| !name.starts_with(".git"));
    let target = Target::find(&clone).unwrap();
    // An untracked file in the way of a link: all stays.
    fs::write(clone.join("sub/mine"), "mine\n").unwrap();
    assert!(target.apply(&patch).is_err());
    fs::remove_file(clone.join("sub/mine")).unwrap();
    assert!(files_of(&clone, |name| !name.starts_with(".git")) == before);
    assert_eq!(target.apply_with_index(&patch).unwrap(), 4);
    assert_eq!(fs::read_to_string(clone.join("a.txt/in")).unwrap(), "in\n");
    assert_eq!(
        fs::read_link(clone.join("sub")).unwrap(),
        Path::new("/etc/passwd")
    );
    assert_eq!(
        git(&clone, ["status", "--porcelain", "--no-renames"]),
        "D  a.txt\nA  a.txt/in\nA  sub\nD  sub/b.txt"
    );
}

#[test]
fn patch_that_does_not_fit_changes_no_file_and_names_them() {
    let brought = Brought::new();
    fs::write(brought.clone.join("a.txt"), "mine\n").unwrap();
    fs::create_dir(brought.clone.join("deep")).unwrap();
    fs::create_dir(brought.clone.join("deep/er")).unwrap();
    fs::write(brought.clone.join("deep/er/new"), "in the way").unwrap();
    let odd = OsStr::from_bytes(b"\xff\n\"");
    fs::write(brought.clone.join(odd), "in the way").unwrap();
    let before = brought.state();
    let error = brought.target().apply(&brought.patch()).unwrap_err();
    let TakeError::Conflicts(mut files) = error else {
        panic!("{error:?}");
    };
    let odd = files.pop().unwrap();
    assert!(
        odd.starts_with('\u{fffd}') && odd.ends_with("\": already exists in working directory"),
        "{odd}"
    );
    assert_eq!(
        files,
        [
            "a.txt: patch does not apply",
            "deep/er/new: already exists in working directory"
        ]
    );
    assert!(brought.state() == before, "something was changed");
}

#[test]
fn invalid_patch_is_an_error_and_an_empty_one_changes_no_file() {
    let brought = Brought::new();
    let before = brought.state();
    let patch = brought.folder.path().join("other");
    fs::write(&patch, "no patch\n").unwrap();
    assert!(matches!(
        brought.target().apply(&patch),
        Err(TakeError::Git(_))
    ));
    let whole = fs::read(brought.patch()).unwrap();
    fs::write(&patch, &whole[..whole.len() - 40]).unwrap();
    assert!(brought.target().apply(&patch).is_err());
    fs::write(&patch, "").unwrap();
    assert_eq!(brought.target().apply(&patch).unwrap(), 0);
    assert!(brought.state() == before, "something was changed");
}

#[test]
fn a_failure_half_way_restores_the_files_and_the_index() {
    for index in [false, true] {
        let brought = Brought::new();
        fs::write(brought.clone.join("mine"), "not committed\n").unwrap();
        let before = brought.state();
        // A filter of the user's that fails for one of the files, after others were written.
        fs::write(
            brought.clone.join(".git/info/attributes"),
            "renamed filter=broken\n",
        )
        .unwrap();
        brought.git(["config", "filter.broken.smudge", "false"]);
        brought.git(["config", "filter.broken.required", "true"]);
        let before_with_filter = brought.state();
        assert!(before != before_with_filter);
        let target = brought.target();
        let applied = if index {
            target.apply_with_index(&brought.patch())
        } else {
            target.apply(&brought.patch())
        };
        let error = applied.unwrap_err();
        assert!(matches!(error, TakeError::Git(_)), "{error:?}");
        assert!(
            brought.state() == before_with_filter,
            "{index}: something was changed"
        );
    }
}

#[test]
fn a_branch_is_made_and_what_was_not_committed_is_a_ref() {
    let brought = Brought::new();
    let before = brought.git(["status", "--porcelain=v2", "--branch"]);
    let wip = brought.fetch("fix").unwrap();
    assert_eq!(wip.as_deref(), Some("refs/teamster/r/wip"));
    assert_eq!(brought.git(["rev-parse", "fix"]), brought.head);
    assert_eq!(
        brought.git(["rev-parse", "refs/teamster/r/wip"]),
        brought.wip
    );
    assert_eq!(
        brought.git(["status", "--porcelain=v2", "--branch"]),
        before
    );
    assert!(!brought.clone.join(".git/FETCH_HEAD").exists());
    let refs = brought.git(["for-each-ref", "--format=%(refname)", "refs/teamster"]);
    assert_eq!(refs, "refs/teamster/r/wip");
    // Again, and a branch that is behind.
    brought.fetch("fix").unwrap();
    brought.git(["branch", "behind", &brought.base]);
    brought.fetch("behind").unwrap();
    assert_eq!(brought.git(["rev-parse", "behind"]), brought.head);
}

#[test]
fn branch_with_other_commits_or_in_use_is_not_moved() {
    let brought = Brought::new();
    brought.git(["checkout", "--quiet", "-b", "mine"]);
    let commit = "-c user.name=A -c user.email=a@b commit --quiet --allow-empty -m mine";
    brought.git(commit.split(' '));
    brought.git(["checkout", "--quiet", "main"]);
    let before = brought.state();
    let error = brought.fetch("mine").unwrap_err();
    assert!(
        matches!(&error, TakeError::OtherCommits(branch) if branch == "mine"),
        "{error:?}"
    );
    let error = brought.fetch("main").unwrap_err();
    let real = brought.clone.canonicalize().unwrap();
    assert!(
        matches!(&error, TakeError::CheckedOut(_, folder) if *folder == real),
        "{error:?}"
    );
    assert!(matches!(brought.fetch("-x"), Err(TakeError::Git(_))));
    assert!(brought.state() == before, "something was changed");
}

#[test]
fn a_bundle_that_was_tampered_with_changes_nothing() {
    let brought = Brought::new();
    let before = brought.state();
    let whole = fs::read(brought.bundle()).unwrap();
    // In the header, in the pack, in its checksum.
    for at in [30, whole.len() / 2, whole.len() - 5] {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        fs::write(brought.bundle(), bytes).unwrap();
        assert!(brought.fetch("fix").is_err(), "byte {at}");
        assert!(
            brought.state() == before,
            "byte {at}: something was changed"
        );
    }
    fs::write(brought.bundle(), &whole[..whole.len() / 2]).unwrap();
    assert!(brought.fetch("fix").is_err());
    assert!(brought.state() == before, "something was changed");
}

#[test]
fn a_repository_without_the_base_is_named() {
    let brought = Brought::new();
    let other = Repository::new();
    let target = Target::find(other.path()).unwrap();
    let error = target
        .fetch(Some(&brought.bundle()), brought.incoming(), "fix")
        .unwrap_err();
    assert!(
        matches!(&error, TakeError::MissingBase(base) if *base == brought.base),
        "{error:?}"
    );
    let outside = tempfile::tempdir().unwrap();
    let error = Target::find(outside.path()).unwrap_err().to_string();
    assert!(error.contains("is not in a git worktree"), "{error}");
}

#[test]
fn push_never_forces_and_a_refusal_changes_no_ref() {
    let repository = Repository::new();
    let root = tempfile::tempdir().unwrap();
    let worktrees = root.path().join("worktrees");
    let remote = root.path().join("remote.git");
    git(
        root.path(),
        ["init", "--quiet", "--bare", remote.to_str().unwrap()],
    );
    repository.git(["remote", "add", "origin", remote.to_str().unwrap()]);
    let make = |id: &str, text: &str| {
        let worktree = worktree(&worktrees, &repository, id);
        let path = worktree.directory().to_owned();
        fs::write(path.join("a.txt"), text).unwrap();
        git(&path, ["commit", "--quiet", "--all", "-m", text]);
        let head = worktree.finish().result.head.unwrap();
        (Kept::find(&worktrees, id).unwrap().unwrap(), head)
    };
    let (mut first, head) = make("first", "1");
    assert_eq!(
        first.push("origin", None, SILENCE).unwrap(),
        "origin:teamster/first"
    );
    assert_eq!(
        first.push("origin", Some("fix"), SILENCE).unwrap(),
        "origin:fix"
    );
    assert_eq!(
        git(&remote, ["rev-parse", "fix", "teamster/first"]),
        format!("{head}\n{head}")
    );
    let kept = Kept::find(&worktrees, "first").unwrap().unwrap();
    assert_eq!(kept.result().unwrap().pushed.as_deref(), Some("origin:fix"));

    let (mut second, _) = make("second", "2");
    let error = second
        .push("origin", Some("fix"), SILENCE)
        .unwrap_err()
        .to_string();
    assert!(error.contains("rejected"), "{error}");
    assert_eq!(git(&remote, ["rev-parse", "fix"]), head);
    let path = remote.to_str().unwrap();
    for (remote, branch, problem) in [
        ("nowhere", None, "no remote \"nowhere\""),
        ("--all", None, "no remote \"--all\""),
        (path, None, "no remote"),
        ("origin", Some("a..b"), "not a valid branch name"),
    ] {
        let error = second.push(remote, branch, SILENCE).unwrap_err();
        assert!(error.to_string().contains(problem), "{error}");
    }
}

#[test]
fn a_push_asks_for_nothing() {
    let repository = Repository::new();
    let root = tempfile::tempdir().unwrap();
    let worktrees = root.path().join("worktrees");
    let witness = root.path().join("witness");
    let ask = root.path().join("ask");
    fs::write(&ask, format!("#!/bin/sh\ntouch {}\n", witness.display())).unwrap();
    fs::set_permissions(&ask, fs::Permissions::from_mode(0o755)).unwrap();
    repository.git(["config", "core.askPass", ask.to_str().unwrap()]);
    // Nothing listens there; what counts is that it ends with an error, without a question.
    repository.git(["remote", "add", "origin", "http://127.0.0.1:9/x.git"]);
    let worktree = worktree(&worktrees, &repository, "r");
    let path: &Path = worktree.directory();
    fs::write(path.join("a.txt"), "1").unwrap();
    git(path, ["commit", "--quiet", "--all", "-m", "1"]);
    worktree.finish();
    let mut kept = Kept::find(&worktrees, "r").unwrap().unwrap();
    assert!(kept.push("origin", None, SILENCE).is_err());
    assert!(!witness.exists());
}

#[test]
fn hanging_push_ends_with_its_children_and_keeps_the_result() {
    let repository = Repository::new();
    let root = tempfile::tempdir().unwrap();
    let worktrees = root.path().join("worktrees");
    let note = root.path().join("pid");
    let hang = format!("ext::sh -c echo% $$% >{};exec% sleep% 1000", note.display());
    repository.git(["remote", "add", "origin", &hang]);
    repository.git(["config", "protocol.ext.allow", "always"]);
    let worktree = worktree(&worktrees, &repository, "r");
    let path: &Path = worktree.directory();
    fs::write(path.join("a.txt"), "1").unwrap();
    git(path, ["commit", "--quiet", "--all", "-m", "1"]);
    let head = worktree.finish().result.head;
    let mut kept = Kept::find(&worktrees, "r").unwrap().unwrap();
    let error = kept
        .push("origin", None, Duration::from_secs(3))
        .unwrap_err();
    let error = error.to_string();
    assert!(error.starts_with("git printed nothing for 3 s"), "{error}");
    let pid: u32 = fs::read_to_string(note).unwrap().trim().parse().unwrap();
    assert!(!ProcessIdentity::of(pid).is_some_and(ProcessIdentity::is_running));
    let kept = Kept::find(&worktrees, "r").unwrap().unwrap();
    let result = kept.result().unwrap();
    assert_eq!((&result.head, &result.pushed), (&head, &None));
}

#[test]
fn changes_are_applied_across_file_systems() {
    let brought = Brought::new();
    let memory = Path::new("/dev/shm");
    let device = |path: &Path| fs::metadata(path).map(|it| it.dev()).ok();
    if device(memory).is_none_or(|it| Some(it) == device(&brought.clone)) {
        // There is only one here.
        return;
    }
    let elsewhere = TempDir::new_in(memory).unwrap();
    let (own, top) = (
        elsewhere.path().join("git"),
        brought.folder.path().join("top"),
    );
    git(
        brought.folder.path(),
        [
            "clone",
            "--quiet",
            "--separate-git-dir",
            own.to_str().unwrap(),
            brought.clone.to_str().unwrap(),
            top.to_str().unwrap(),
        ],
    );
    let files = Target::find(&top).unwrap().apply(&brought.patch()).unwrap();
    assert!(files > 0);
    assert_eq!(fs::read_to_string(top.join("a.txt")).unwrap(), "two\n");
    assert!(!top.join(".teamster-apply").exists());
}
