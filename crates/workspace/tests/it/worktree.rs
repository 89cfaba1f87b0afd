//! Worktrees of runs.

use std::fs;
use std::path::{Path, PathBuf};

use teamster_workspace::{NewWorktree, Worktree, WorktreeKey};

use super::repository::{Repository, git};

fn root(repository: &Repository) -> PathBuf {
    // Beside the repository rather than in it: a folder that no test shares.
    let folder = repository.path().with_extension("state");
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// A repository and a folder for its worktrees, which is removed at the end.
struct Place {
    repository: Repository,
    root: PathBuf,
}

impl Place {
    fn new() -> Self {
        let repository = Repository::new();
        let root = root(&repository);
        Self { repository, root }
    }

    fn wanted(&self) -> NewWorktree {
        NewWorktree::of(self.repository.path())
    }

    fn create(&self, id: &str, change: impl FnOnce(&mut NewWorktree)) -> Result<Worktree, String> {
        let mut wanted = self.wanted();
        change(&mut wanted);
        Worktree::create(&self.root, id, &wanted).map_err(|error| format!("{error:#}"))
    }

    fn of_key(&self, id: &str, key: &str, over: bool) -> Result<Worktree, String> {
        let key = WorktreeKey::new(format!("{:x}", key.len()), key);
        let key = if over { key.start_over() } else { key };
        Worktree::of_key(&self.root, id, &self.wanted(), &key).map_err(|error| format!("{error:#}"))
    }

    /// The folders of worktrees.
    fn left(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.root).unwrap();
        let mut names: Vec<_> = entries
            .map(|it| it.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort_unstable();
        names
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.root);
        let _ = fs::remove_dir_all(self.root.with_extension("keys"));
    }
}

fn assert_unchanged(made: Worktree) {
    let report = made.finish().report;
    let removed = "worktree without changes removed";
    assert!(report.starts_with(removed), "{report}");
}

fn head(directory: &Path) -> String {
    git(directory, ["rev-parse", "HEAD"])
}

#[test]
fn a_worktree_starts_at_the_commit_that_is_named() {
    let place = Place::new();
    let first = head(place.repository.path());
    place.repository.write("a.txt", "two\n");
    place.repository.commit("second");
    place.repository.git(["tag", "old", &first]);
    for from in ["HEAD~1", "old", &first] {
        let made = place.create("r", |it| it.from = Some(from.into())).unwrap();
        assert_eq!(head(made.directory()), first, "{from}");
        assert_eq!(
            fs::read_to_string(made.directory().join("a.txt")).unwrap(),
            "one\n"
        );
    }
    let error = place
        .create("r", |it| it.from = Some("nowhere".into()))
        .unwrap_err();
    assert!(error.contains("has no commit \"nowhere\""), "{error}");
    assert!(place.left().is_empty());
}

#[test]
fn bare_repository_gets_a_worktree_for_the_run() {
    let place = Place::new();
    let first = head(place.repository.path());
    let project = place.root.with_extension("project");
    let bare = project.join(".bare");
    fs::create_dir_all(&project).unwrap();
    let source = place.repository.path().as_os_str();
    git(
        &project,
        ["clone", "--quiet", "--bare"]
            .map(AsRef::as_ref)
            .into_iter()
            .chain([source, bare.as_os_str()]),
    );
    fs::write(project.join(".git"), "gitdir: ./.bare\n").unwrap();
    git(&project, ["worktree", "add", "--quiet", "main"]);
    for directory in [project.clone(), bare.clone(), project.join("main")] {
        let made = Worktree::create(&place.root, "r", &NewWorktree::of(&directory)).unwrap();
        assert_eq!(head(made.directory()), first, "{}", directory.display());
        let name = made.directory().file_name().unwrap().to_owned();
        let expected = if directory.ends_with("main") {
            "main"
        } else {
            project.file_name().unwrap().to_str().unwrap()
        };
        assert_eq!(name, expected);
        drop(made);
        let list = git(&project, ["worktree", "list"]);
        assert_eq!(list.lines().count(), 2, "{list}");
        let branches = git(&project, ["branch", "--format=%(refname:short)"]);
        assert_eq!(branches, "main");
    }
    // The inside of a repository that has a worktree is none.
    let inside = NewWorktree::of(place.repository.path().join(".git"));
    let error = Worktree::create(&place.root, "r", &inside).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("the internal directory of a git"),
        "{error}"
    );
    fs::remove_dir_all(project).unwrap();
}

#[test]
fn an_unborn_branch_is_named_as_the_problem() {
    let place = Place::new();
    place
        .repository
        .git(["checkout", "--quiet", "--orphan", "fresh"]);
    let error = place.create("r", |_| {}).unwrap_err();
    assert!(error.contains("has no commit yet"), "{error}");
    let made = place.create("r", |it| it.from = Some("main".into()));
    assert!(made.unwrap().directory().join("a.txt").exists());
}

#[test]
fn an_empty_directory_is_removed_unless_it_has_files() {
    let place = Place::new();
    let made = Worktree::empty(&place.root, "r").unwrap();
    assert_eq!(made.branch(), None);
    assert_eq!(fs::read_dir(made.directory()).unwrap().count(), 0);
    assert_eq!(made.finish().report, "empty directory removed");
    assert!(place.left().is_empty());
    let made = Worktree::empty(&place.root, "r").unwrap();
    let file = made.directory().join("file");
    fs::write(&file, "x").unwrap();
    let report = made.finish().report;
    assert!(
        report.starts_with("directory kept: it has files, in "),
        "{report}"
    );
    // The next process keeps it too.
    drop(place.create("s", |_| {}).unwrap());
    assert!(file.exists());
}

#[test]
fn the_runs_of_a_key_share_a_worktree_that_stays() {
    let place = Place::new();
    let mut first = place.of_key("a", "k", false).unwrap();
    first.start().unwrap();
    let directory = first.directory().to_owned();
    // At the same time.
    let mut second = place.of_key("b", "k", false).unwrap();
    second.start().unwrap();
    assert_eq!(second.directory(), directory);
    assert_eq!(second.branch(), Some("teamster/a"));
    let report = first.finish().report;
    assert!(
        report.contains("for the next run with the session key"),
        "{report}"
    );
    drop(second);
    // Processes that clean up let it be.
    drop(place.create("c", |_| {}).unwrap());
    assert_eq!(place.left(), ["a"]);
    let other = place.of_key("d", "kk", false).unwrap();
    assert_ne!(other.directory(), directory);
    drop(other);
    assert_eq!(
        place.of_key("e", "k", false).unwrap().directory(),
        directory
    );
    assert_eq!(place.left(), ["a"]);
}

#[test]
fn a_key_that_starts_over_leaves_its_worktree() {
    let place = Place::new();
    for has_changes in [false, true] {
        let mut first = place.of_key("a", "k", false).unwrap();
        first.start().unwrap();
        if has_changes {
            fs::write(first.directory().join("new"), "x").unwrap();
        }
        drop(first);
        // One that is refused changes nothing.
        drop(place.of_key("b", "k", true).unwrap());
        assert_eq!(place.left(), ["a"]);
        let mut over = place.of_key("b", "k", true).unwrap();
        over.start().unwrap();
        let directory = over.directory().to_owned();
        drop(over);
        let next = place.of_key("c", "k", false).unwrap();
        assert_eq!(next.directory(), directory);
        drop(next);
        let left: &[_] = if has_changes { &["a", "b"] } else { &["b"] };
        assert_eq!(place.left(), left);
        let mut last = place.of_key("d", "k", true).unwrap();
        last.start().unwrap();
        drop(last);
        fs::remove_dir_all(place.root.join("d")).unwrap();
        place.repository.git(["worktree", "prune"]);
        place
            .repository
            .git(["branch", "--quiet", "-D", "teamster/d"]);
    }
}

#[test]
fn a_worktree_of_a_key_that_is_gone_is_made_again() {
    let place = Place::new();
    let mut first = place.of_key("a", "k", false).unwrap();
    first.start().unwrap();
    let directory = first.directory().to_owned();
    drop(first);
    fs::remove_dir_all(&directory).unwrap();
    let again = place.of_key("b", "k", false).unwrap();
    assert!(again.directory().join("a.txt").exists());
    assert_eq!(again.branch(), Some("teamster/b"));
    drop(again);
    assert!(place.left().is_empty());
}

#[test]
fn a_worktree_that_is_gone_before_the_agent_starts_is_an_error() {
    let place = Place::new();
    let mut made = place.create("r", |_| {}).unwrap();
    fs::remove_dir_all(made.directory()).unwrap();
    let error = made.start().unwrap_err().to_string();
    assert!(error.contains("is not there any more"), "{error}");
}

#[test]
fn a_hook_that_fails_leaves_a_worktree_and_a_warning() {
    use std::os::unix::fs::PermissionsExt;

    let place = Place::new();
    let hooks = place.repository.path().join("hooks");
    fs::create_dir(&hooks).unwrap();
    let hook = hooks.join("post-checkout");
    fs::write(&hook, "#!/bin/sh\necho not today >&2\nexit 3\n").unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    let hooks = hooks.to_str().unwrap();
    place.repository.git(["config", "core.hooksPath", hooks]);
    let mut made = place.create("r", |_| {}).unwrap();
    let warnings = made.take_warnings().join("\n");
    assert!(warnings.contains("post-checkout"), "{warnings}");
    assert!(warnings.contains("not today"), "{warnings}");
    assert!(made.directory().join("a.txt").exists());
}

#[test]
fn files_that_are_included_are_copied_where_git_ignores_them() {
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::{PermissionsExt, symlink};

    let place = Place::new();
    let repository = &place.repository;
    repository.write(".gitignore", ".env*\nsecrets/\nlink*\n*.odd\n");
    repository.write(
        ".worktreeinclude",
        "# of this machine\n.env*\n!.env.old\nsecrets/keys/*.pem\na.txt\nloose\nlink*\n*.odd\n",
    );
    repository.commit("include");
    repository.write(".env", "A=1\n");
    repository.write(".env.old", "A=0\n");
    repository.write("sub/.env", "B=1\n");
    repository.write("secrets/keys/a.pem", "key\n");
    repository.write("secrets/other", "no\n");
    // Not ignored: it would become a part of a commit.
    repository.write("loose", "no\n");
    let odd = std::ffi::OsStr::from_bytes(b"n\n\xff.odd");
    repository.write(odd, "odd\n");
    let pem = repository.path().join("secrets/keys/a.pem");
    fs::set_permissions(pem, fs::Permissions::from_mode(0o600)).unwrap();
    symlink("a.txt", repository.path().join("link")).unwrap();
    symlink("/etc/passwd", repository.path().join("link-out")).unwrap();

    let mut made = place.create("r", |_| {}).unwrap();
    let warnings = made.take_warnings().join("\n");
    assert!(
        warnings.contains("link-out (a link that leads out of the repository)"),
        "{warnings}"
    );
    let there = made.directory().to_owned();
    let read = |name: &str| fs::read_to_string(there.join(name)).ok();
    assert_eq!(read(".env").as_deref(), Some("A=1\n"));
    assert_eq!(read("sub/.env").as_deref(), Some("B=1\n"));
    assert_eq!(read("link").as_deref(), Some("one\n"));
    let pem = there.join("secrets/keys/a.pem");
    assert_eq!(
        fs::metadata(pem).unwrap().permissions().mode() & 0o777,
        0o600
    );
    assert!(there.join(odd).exists());
    for left_out in [".env.old", "secrets/other", "loose", "link-out"] {
        assert!(
            fs::symlink_metadata(there.join(left_out)).is_err(),
            "{left_out}"
        );
    }
    assert_unchanged(made);

    // A commit without the ignore rules, where a folder is a link that leads elsewhere.
    let elsewhere = tempfile::tempdir().unwrap();
    repository.git(["checkout", "--quiet", "-b", "other", "HEAD~1"]);
    symlink(elsewhere.path(), repository.path().join("linked")).unwrap();
    repository.write(".gitignore", "linked/\n");
    repository.git(["add", "--force", "linked", ".gitignore"]);
    repository.git(["commit", "--quiet", "-m", "other"]);
    repository.git(["checkout", "--quiet", "main"]);
    repository.write(".gitignore", "linked/\n.env\n");
    repository.write(".worktreeinclude", "linked/\n.env\n");
    repository.write("linked/file", "x");
    let made = place
        .create("r", |it| it.from = Some("other".into()))
        .unwrap();
    assert!(made.directory().join("linked").is_symlink());
    assert!(!made.directory().join(".env").exists());
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
}

#[test]
fn large_files_without_their_content_are_named() {
    let place = Place::new();
    let repository = &place.repository;
    repository.write(
        ".gitattributes",
        "*.bin filter=lfs diff=lfs merge=lfs -text\n",
    );
    repository.write(
        "large.bin",
        "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n",
    );
    repository.write("small.bin", "content");
    repository.commit("large");
    // As `git lfs install` leaves it, without the program. Where that is installed, it is used.
    let is_installed = super::lfs::is_installed();
    let settings = [&[][..], &["process", "smudge", "clean"]];
    for settings in settings.iter().take(if is_installed { 1 } else { 2 }) {
        for name in *settings {
            let name = format!("filter.lfs.{name}");
            repository.git(["config", &name, "git-lfs-that-is-not-there"]);
            repository.git(["config", "filter.lfs.required", "true"]);
        }
        let mut made = place.create("r", |_| {}).unwrap();
        let warnings = made.take_warnings().join("\n");
        assert!(warnings.contains("1 file of Git LFS"), "{warnings}");
        assert!(made.directory().join("large.bin").exists());
        assert_unchanged(made);
    }
}

#[test]
fn a_sparse_checkout_stays_sparse_and_a_shallow_one_works() {
    let place = Place::new();
    place.repository.write("wide/c.txt", "c\n");
    place.repository.commit("wide");
    place.repository.git(["sparse-checkout", "set", "sub"]);
    let made = place.create("r", |_| {}).unwrap();
    assert!(made.directory().join("sub/b.txt").exists());
    assert!(!made.directory().join("wide").exists());
    assert_unchanged(made);

    let shallow = tempfile::tempdir().unwrap();
    let url = format!("file://{}", place.repository.path().display());
    git(shallow.path(), ["clone", "--quiet", "--depth=1", &url, "."]);
    git(shallow.path(), ["checkout", "--quiet", "--detach"]);
    let made = Worktree::create(&place.root, "s", &NewWorktree::of(shallow.path())).unwrap();
    assert!(made.directory().join("wide/c.txt").exists());
    assert_unchanged(made);
}

/// Line ends, signatures, case-only renames and links that lead elsewhere are no changes.
#[test]
fn settings_and_odd_files_of_a_repository_are_no_changes() {
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::symlink;

    let place = Place::new();
    let repository = &place.repository;
    repository.write("crlf.txt", "a\r\nb\r\n");
    repository.write(std::ffi::OsStr::from_bytes(b"q\"\n\xff"), "odd\n");
    repository.write("Name.txt", "name\n");
    symlink("/etc/passwd", repository.path().join("out")).unwrap();
    repository.commit("odd");
    repository.git(["mv", "Name.txt", "name.txt"]);
    repository.git(["commit", "--quiet", "-m", "renamed"]);
    repository.git(["config", "core.autocrlf", "true"]);
    repository.git(["config", "commit.gpgsign", "true"]);
    repository.git(["config", "gpg.program", "/bin/false"]);
    let before = repository.files();
    let made = place.create("r", |_| {}).unwrap();
    assert!(made.directory().join("name.txt").exists());
    assert!(made.directory().join("out").is_symlink());
    assert_eq!(
        fs::read_to_string(made.directory().join("a.txt")).unwrap(),
        "one\r\n"
    );
    assert_eq!(
        made.finish().report,
        "worktree without changes removed, with its branch teamster/r"
    );
    assert_eq!(repository.files(), before);
}

#[test]
fn other_worktrees_that_are_missing_for_a_while_are_kept() {
    let place = Place::new();
    let repository = &place.repository;
    let disk = tempfile::tempdir().unwrap();
    let (there, away) = (disk.path().join("there"), disk.path().join("away"));
    let add = [
        "worktree",
        "add",
        "--quiet",
        "-b",
        "other",
        there.to_str().unwrap(),
    ];
    repository.git(add);
    fs::rename(&there, &away).unwrap();
    let mut made = place.create("r", |_| {}).unwrap();
    assert_eq!(made.take_warnings(), Vec::<String>::new());
    assert!(made.finish().report.contains("removed"));
    // One whose own folder is gone is forgotten, and only that.
    let gone = place.create("gone", |_| {}).unwrap();
    fs::remove_dir_all(gone.directory()).unwrap();
    drop(gone);
    let listed = repository.git(["worktree", "list", "--porcelain"]);
    let listed = listed.lines().filter(|line| line.starts_with("worktree "));
    assert_eq!(listed.count(), 2);
    fs::rename(&away, &there).unwrap();
    assert_eq!(git(&there, ["status", "--porcelain"]), "");
}

#[test]
fn repository_named_like_a_file_beside_it_has_a_worktree() {
    let place = Place::new();
    for name in ["lock", "worktree.json", "set-up"] {
        let made = place
            .create(name, |it| it.name = Some(name.into()))
            .unwrap();
        assert!(made.directory().ends_with("repository"));
        assert!(made.directory().join("a.txt").exists());
    }
}
