//! What a run leaves in its worktree.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use teamster_workspace::Kept;

use super::ended::{Run, worktrees};
use super::repository::{Repository, files_of, git};

#[test]
fn uncommitted_work_is_a_second_commit_and_the_worktree_stays() {
    let run = Run::new();
    run.write("a.txt", "one\ntwo\n");
    let head = run.commit("second");
    run.write(".gitignore", "ignored\n");
    run.write("a.txt", "staged\n");
    run.git(["add", "a.txt"]);
    run.write("a.txt", "staged, then changed\n");
    fs::remove_file(run.path().join("sub/b.txt")).unwrap();
    run.write("ignored", "secret");
    run.write("run.sh", "#!/bin/sh\n");
    fs::set_permissions(run.path().join("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    symlink("/etc/passwd", run.path().join("link")).unwrap();
    run.write(OsStr::from_bytes(b"new\n\"\xff"), [0xff, 0, 1]);
    let path = run.path();
    let base = run.repository.git(["rev-parse", "HEAD"]);
    let users = run.repository.git(["status", "--porcelain"]);

    let ended = run.end();

    let result = &ended.result;
    assert_eq!(result.error, None);
    assert_eq!((&*result.base, result.head.as_ref()), (&*base, Some(&head)));
    assert_eq!(result.directory.as_deref(), path.to_str());
    assert_eq!(result.branch.as_deref(), Some("teamster/r"));
    assert_eq!(result.dirty, Some(true));
    assert_eq!(ended.figures(), [Some(1), Some(6), Some(4), Some(2)]);
    let wip = result.wip.as_deref().unwrap();
    assert_eq!(
        ended.repository.git(["rev-parse", "refs/teamster/r/wip"]),
        wip
    );
    assert_eq!(
        ended.repository.git(["rev-parse", &format!("{wip}^")]),
        head
    );
    let about = ["log", "-1", "--format=%an <%ae> %cn %G?", wip];
    assert_eq!(
        ended.repository.git(about),
        "teamster <teamster@localhost> teamster N"
    );
    // The files, with their modes, as those on the disk.
    let tree = ended.tree(wip);
    let files: Vec<_> = (tree.split_terminator('\0'))
        .map(|entry| (&entry[..6], entry.split_once('\t').unwrap().1))
        .collect();
    assert_eq!(
        files,
        [
            ("100644", ".gitignore"),
            ("100644", "a.txt"),
            ("120000", "link"),
            ("100644", "new\n\"\u{fffd}"),
            ("100755", "run.sh"),
        ]
    );
    let text = ended.repository.git(["show", &format!("{wip}:a.txt")]);
    assert_eq!(text, "staged, then changed");
    assert_eq!(ended.repository.git(["rev-parse", "teamster/r"]), head);
    assert_eq!(ended.repository.git(["status", "--porcelain"]), users);
}

#[test]
fn result_does_not_touch_files_index_and_repository() {
    let run = Run::new();
    run.write("staged", "1\n");
    run.git(["add", "staged"]);
    run.write("a.txt", "changed\n");
    run.write("new", "new\n");
    let path = run.path();
    let git_dir = PathBuf::from(run.git(["rev-parse", "--absolute-git-dir"]));
    let state = |repository: &Repository| {
        let is_users = |name: &Path| {
            let name = name.to_str().unwrap();
            !name.starts_with(".git/objects") && !name.starts_with(".git/refs/teamster")
        };
        let users = files_of(repository.path(), is_users);
        (
            files_of(&path, |_| true),
            files_of(&git_dir, |_| true),
            users,
        )
    };
    let before = state(&run.repository);
    let ended = run.end();
    assert!(ended.result.wip.is_some());
    assert!(before == state(&ended.repository), "something was changed");
    // Neither the temporary index nor its lock is left.
    let mut left: Vec<_> = fs::read_dir(worktrees(&ended.root).join("r"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    left.sort();
    let name = ended
        .repository
        .path()
        .file_name()
        .unwrap()
        .to_str()
        .unwrap();
    let mut expected = [name, "lock", "worktree.json"];
    expected.sort_unstable();
    assert_eq!(left, expected);
}

#[test]
fn a_worktree_without_changes_is_gone_and_its_result_says_so() {
    let run = Run::new();
    let base = run.repository.git(["rev-parse", "HEAD"]);
    let ended = run.end();
    let result = &ended.result;
    assert_eq!(
        (&result.head, &result.directory, &result.branch),
        (&Some(base), &None, &None)
    );
    assert_eq!(ended.figures(), [Some(0); 4]);
    assert_eq!((result.dirty, &result.wip), (Some(false), &None));
    assert!(Kept::find(&worktrees(&ended.root), "r").unwrap().is_none());
    assert_eq!(ended.repository.git(["for-each-ref", "refs/teamster"]), "");
}

#[test]
fn missing_name_signing_and_hooks_do_not_prevent_keeping_work() {
    let run = Run::new();
    let hooks = run.root.path().join("hooks");
    fs::create_dir(&hooks).unwrap();
    let witness = run.root.path().join("witness");
    for hook in ["pre-commit", "reference-transaction", "post-index-change"] {
        let hook = hooks.join(hook);
        fs::write(
            &hook,
            format!("#!/bin/sh\necho \"$0\" >> {}\nexit 1\n", witness.display()),
        )
        .unwrap();
        fs::set_permissions(hook, fs::Permissions::from_mode(0o755)).unwrap();
    }
    run.write("new", "new\n");
    let hooks_path = hooks.to_str().unwrap();
    for setting in [
        ["core.hooksPath", hooks_path],
        ["commit.gpgSign", "true"],
        ["gpg.program", "/no/such/program"],
        ["user.useConfigOnly", "true"],
    ] {
        run.repository.git(["config"].into_iter().chain(setting));
    }
    run.repository.git(["config", "--unset", "user.name"]);
    run.repository.git(["config", "--unset", "user.email"]);
    let ended = run.end();
    assert_eq!(ended.result.error, None);
    assert!(ended.result.wip.is_some());
    assert!(
        !witness.exists(),
        "{}",
        fs::read_to_string(witness).unwrap()
    );
}

#[test]
fn branch_changes_by_the_agent_lose_no_work() {
    type Act = fn(&Run);
    let cases: [(&str, Act, Option<&str>); 6] = [
        (
            "detached",
            |run| drop(run.git(["checkout", "--quiet", "--detach"])),
            Some("teamster/r"),
        ),
        (
            "renamed",
            |run| drop(run.git(["branch", "-m", "mine"])),
            Some("mine"),
        ),
        (
            "deleted",
            |run| {
                run.git(["checkout", "--quiet", "--detach"]);
                run.git(["branch", "-D", "teamster/r"]);
            },
            None,
        ),
        (
            "moved",
            |run| {
                run.git(["checkout", "--quiet", "-b", "other"]);
                run.git(["branch", "--force", "teamster/r", "HEAD~1"]);
            },
            Some("other"),
        ),
        (
            "index.lock",
            |run| {
                let lock = run.git(["rev-parse", "--git-path", "index.lock"]);
                fs::write(run.path().join(lock), "").unwrap();
            },
            Some("teamster/r"),
        ),
        (
            "merge",
            |run| {
                run.git(["checkout", "--quiet", "-b", "theirs", "HEAD~1"]);
                run.write("a.txt", "theirs\n");
                run.commit("theirs");
                run.git(["checkout", "--quiet", "teamster/r"]);
                let merged = std::process::Command::new("git")
                    .args(["merge", "--quiet", "theirs"])
                    .current_dir(run.path())
                    .output()
                    .unwrap();
                assert!(!merged.status.success());
            },
            Some("teamster/r"),
        ),
    ];
    for (case, act, branch) in cases {
        let run = Run::new();
        run.write("a.txt", "mine\n");
        let head = run.commit("mine");
        act(&run);
        run.write("new", "new\n");
        let ended = run.end();
        let result = &ended.result;
        assert_eq!(result.error, None, "{case}");
        assert_eq!(result.head.as_ref(), Some(&head), "{case}");
        assert_eq!(result.branch.as_deref(), branch, "{case}");
        assert_eq!(result.commits, Some(1), "{case}");
        let wip = result.wip.as_ref().unwrap();
        assert!(ended.tree(wip).contains("\tnew"), "{case}");
        // Also without the worktree and its branches, all is in the repository.
        assert_eq!(
            ended.repository.git(["rev-parse", "refs/teamster/r/head"]),
            head,
            "{case}"
        );
    }
}

#[test]
fn a_change_in_the_moment_of_a_commit_is_seen() {
    let run = Run::new();
    run.write("a.txt", "two\n");
    run.commit("second");
    // As fast as the clock of the file system: the same size and times, and an index that is not newer.
    let path = run.path().join("a.txt");
    let index = run
        .path()
        .join(run.git(["rev-parse", "--git-path", "index"]));
    let at = fs::metadata(&path).unwrap().modified().unwrap();
    let set = |path: &Path| {
        let file = fs::File::options().write(true).open(path).unwrap();
        file.set_modified(at).unwrap();
    };
    run.git(["config", "core.trustctime", "false"]);
    fs::write(&path, "six\n").unwrap();
    set(&path);
    set(&index);
    let ended = run.end();
    let wip = ended.result.wip.as_ref().unwrap();
    let text = ended.repository.git(["show", &format!("{wip}:a.txt")]);
    assert_eq!(text, "six");
}

#[test]
fn a_rebase_in_progress_and_a_branch_without_commits_are_kept() {
    let run = Run::new();
    run.write("a.txt", "mine\n");
    run.commit("mine");
    run.git(["checkout", "--quiet", "-b", "theirs", "HEAD~1"]);
    run.write("a.txt", "theirs\n");
    let theirs = run.commit("theirs");
    run.git(["checkout", "--quiet", "teamster/r"]);
    let rebase = ["-c", "core.editor=true", "rebase", "--quiet", "theirs"];
    let rebased = std::process::Command::new("git")
        .args(rebase)
        .current_dir(run.path())
        .output();
    assert!(!rebased.unwrap().status.success());
    let ended = run.end();
    assert_eq!(ended.result.head.as_ref(), Some(&theirs));
    let wip = ended.result.wip.as_ref().unwrap();
    let text = ended.repository.git(["show", &format!("{wip}:a.txt")]);
    assert!(text.contains("<<<<<<<") && text.contains("mine"), "{text}");

    let run = Run::new();
    run.git(["checkout", "--quiet", "--orphan", "new"]);
    run.write("only", "only\n");
    let ended = run.end();
    assert_eq!(
        (
            ended.result.error.as_deref(),
            ended.result.branch.as_deref()
        ),
        (None, Some("new"))
    );
    let wip = ended.result.wip.as_ref().unwrap();
    assert!(ended.tree(wip).contains("\tonly"));
}

#[test]
fn files_that_cannot_be_kept_are_named() {
    let run = Run::new();
    run.write("new", "new\n");
    let inner = run.path().join("vendor/x");
    fs::create_dir_all(&inner).unwrap();
    git(&inner, ["init", "--quiet"]);
    let commit = "-c user.name=x -c user.email=x commit --quiet --allow-empty -m x";
    git(&inner, commit.split(' '));
    let ended = run.end();
    assert_eq!(
        ended.result.unsaved,
        ["vendor/x, which is a repository of its own"]
    );
    assert!(ended.result.directory.is_some());
    let wip = ended.result.wip.as_ref().unwrap();
    assert!(!ended.tree(wip).contains("160000"));
    assert!(ended.tree(wip).contains("\tnew"));
}

#[test]
fn a_folder_that_was_deleted_leaves_its_commits() {
    let run = Run::new();
    run.write("a.txt", "mine\n");
    let head = run.commit("mine");
    run.write("new", "lost\n");
    fs::remove_dir_all(run.path()).unwrap();
    let ended = run.end();
    let result = &ended.result;
    assert_eq!(
        (result.head.as_ref(), &result.directory),
        (Some(&head), &None)
    );
    assert_eq!(ended.figures(), [Some(1), Some(1), Some(1), Some(1)]);
    let error = result.error.as_deref().unwrap();
    assert!(error.contains("was deleted before the end"), "{error}");
    assert_eq!(ended.diff().files[0].path, "a.txt");

    let run = Run::new();
    fs::remove_dir_all(run.path()).unwrap();
    let ended = run.end();
    assert!(
        ended.report.contains("worktree without changes removed"),
        "{}",
        ended.report
    );
    assert_eq!(ended.repository.git(["branch", "--list", "teamster/*"]), "");
}

#[test]
fn a_repository_that_is_gone_is_an_error_and_the_files_stay() {
    let run = Run::new();
    run.write("new", "new\n");
    fs::remove_dir_all(run.repository.path()).unwrap();
    let path = run.path();
    let ended = run.end();
    assert!(
        ended.report.contains("git cannot read it"),
        "{}",
        ended.report
    );
    assert!(ended.result.error.is_some() && ended.result.files_changed.is_none());
    assert_eq!(fs::read_to_string(path.join("new")).unwrap(), "new\n");
}

#[test]
fn a_full_disk_leaves_the_files_in_the_folder_and_an_error() {
    let run = Run::new();
    // Larger than the limit below, and not compressible.
    let noise: Vec<u8> = (0_u64..300_000)
        .map(|it| (it.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 33).to_le_bytes()[0])
        .collect();
    run.write("noise", &noise);
    let objects = run.repository.path().join(".git/objects");
    let mode = |mode| fs::set_permissions(&objects, fs::Permissions::from_mode(mode)).unwrap();
    if is_root() {
        // Root writes everywhere: there is a file in place of each folder of objects.
        for name in 0..256 {
            let folder = objects.join(format!("{name:02x}"));
            if !folder.exists() {
                fs::write(folder, "").unwrap();
            }
        }
    } else {
        mode(0o555);
    }
    let path = run.path();
    let ended = run.end();
    mode(0o755);
    let error = ended.result.error.as_deref().unwrap();
    assert!(
        error.starts_with("what is not committed is only in the worktree's folder"),
        "{error}"
    );
    assert_eq!((ended.result.dirty, &ended.result.wip), (Some(true), &None));
    assert_eq!(ended.result.directory.as_deref(), path.to_str());
    assert_eq!(fs::read(path.join("noise")).unwrap(), noise);
}

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;

    fs::metadata("/proc/self").is_ok_and(|it| it.uid() == 0)
}
