//! Repositories of other shapes than most.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};

use teamster_workspace::{NewWorktree, Source, Target, Worktree};

use super::repository::{Repository, git};

#[test]
fn fifty_thousand_files_are_checked_out_and_only_changes_count() {
    let repository = Repository::new();
    let mut stream = "commit refs/heads/main\ncommitter A <a@b> 1700000000 +0000\ndata 4\nmany\nfrom refs/heads/main^0\n".to_owned();
    for number in 0..50_000 {
        let text = number.to_string();
        let folder = number % 500;
        write!(
            stream,
            "M 100644 inline d{folder}/f{number}\ndata {}\n{text}\n",
            text.len()
        )
        .unwrap();
    }
    let mut import = Command::new("git")
        .arg("-C")
        .arg(repository.path())
        .args(["fast-import", "--quiet"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    import
        .stdin
        .take()
        .unwrap()
        .write_all(stream.as_bytes())
        .unwrap();
    assert!(import.wait().unwrap().success());
    repository.git(["reset", "--quiet", "--hard"]);
    let root = tempfile::tempdir().unwrap();
    let wanted = NewWorktree::of(repository.path());
    let mut made = Worktree::create(root.path(), "r", &wanted).unwrap();
    assert_eq!(made.take_warnings(), [""; 0]);
    made.start().unwrap();
    let there = made.directory().to_owned();
    assert_eq!(
        fs::read_to_string(there.join("d7/f49507")).unwrap(),
        "49507"
    );
    fs::write(there.join("d7/f49507"), "changed").unwrap();
    fs::write(there.join("d8/new"), "new").unwrap();
    fs::remove_file(there.join("d9/f9")).unwrap();
    let result = made.finish().result;
    assert_eq!((result.files_changed, result.error), (Some(3), None));
    // Of an upload, only what is not committed is looked at.
    repository.write("d7/f7", "changed");
    let packing = tempfile::tempdir().unwrap();
    let taken = Source::find(repository.path())
        .unwrap()
        .take(packing.path())
        .unwrap();
    assert_eq!(taken.uncommitted, 1);
}

#[test]
fn second_worktree_of_a_branch_is_independent() {
    let repository = Repository::new();
    let folder = tempfile::tempdir().unwrap();
    let second = folder.path().join("second");
    let path = second.to_str().unwrap();
    repository.git(["worktree", "add", "--quiet", "--force", path, "main"]);
    fs::write(second.join("mine"), "1\n").unwrap();
    let before = (repository.files(), git(&second, ["status", "--porcelain"]));
    let root = folder.path().join("worktrees");
    let mut wanted = NewWorktree::of(second.join("sub"));
    let mut made = Worktree::create(&root, "r", &wanted).unwrap();
    made.start().unwrap();
    assert!(made.directory().ends_with("second/sub"));
    fs::write(made.directory().join("new"), "2\n").unwrap();
    let result = made.finish().result;
    assert_eq!((result.commits, result.files_changed), (Some(0), Some(1)));
    let listed = repository.git(["worktree", "list", "--porcelain"]);
    assert_eq!(
        listed.matches("branch refs/heads/main").count(),
        2,
        "{listed}"
    );
    assert_eq!(git(&second, ["status", "--porcelain"]), before.1);
    // The branch of both is refused, for a worktree as for commits.
    wanted.branch = Some("main".to_owned());
    let refused = Worktree::create(&root, "s", &wanted)
        .unwrap_err()
        .to_string();
    assert!(
        refused.contains("a branch \"main\" exists already"),
        "{refused}"
    );
    assert!(Target::find(&second).unwrap().top().ends_with("second"));
}

#[test]
fn renames_in_case_and_line_ends_are_changes() {
    let repository = Repository::new();
    repository.write("lines.txt", "a\nb\n");
    repository.write(".gitattributes", "raw.txt -text\n");
    repository.write("raw.txt", "a\nb\n");
    repository.commit("lines");
    repository.git(["config", "core.autocrlf", "true"]);
    let root = tempfile::tempdir().unwrap();
    let wanted = NewWorktree::of(repository.path());
    let mut made = Worktree::create(root.path(), "r", &wanted).unwrap();
    made.start().unwrap();
    let there = made.directory().to_owned();
    git(&there, ["mv", "a.txt", "A.txt"]);
    git(&there, ["commit", "--quiet", "-m", "case"]);
    // git converts the first one, so it is as before.
    fs::write(there.join("lines.txt"), "a\r\nb\r\n").unwrap();
    fs::write(there.join("raw.txt"), "a\r\nb\r\n").unwrap();
    let result = made.finish().result;
    assert_eq!((result.commits, result.files_changed), (Some(1), Some(2)));
    let head = result.head.unwrap();
    let wip = result.wip.unwrap();
    let names = repository.git(["ls-tree", "--name-only", &head]);
    assert!(
        names.lines().any(|it| it == "A.txt") && !names.contains("a.txt"),
        "{names}"
    );
    let changed = repository.git(["diff", "--name-only", &head, &wip]);
    assert_eq!(changed, "raw.txt");
}
