//! `--worktree` in a repository with submodules.

use std::fs;

use super::worktree::Repository;

#[test]
fn submodules_are_checked_out_from_present_repositories() {
    let repository = Repository::new();
    let allow = ["-c", "protocol.file.allow=always"];
    // A submodule with one of its own.
    for name in ["inner", "outer"] {
        let path = repository.agent.path(name);
        fs::create_dir(&path).unwrap();
        let path = path.to_str().unwrap();
        repository.git(&["init", "-q", "-b", "main", path]);
        fs::write(format!("{path}/{name}.txt"), "1\n").unwrap();
        if name == "outer" {
            let add = ["-C", path, "submodule", "-q", "add", "../inner", "inner"];
            repository.git(&[&allow[..], &add].concat());
        }
        repository.git(&["-C", path, "add", "."]);
        repository.git(&["-C", path, "commit", "-q", "-m", "First"]);
    }
    let outer = repository.agent.path("outer").display().to_string();
    for path in ["libs/a", "libs/b"] {
        let add = ["submodule", "-q", "add", &outer, path];
        repository.git(&[&allow[..], &add].concat());
    }
    let update = ["submodule", "-q", "update", "--init", "--recursive"];
    repository.git(&[&allow[..], &update].concat());
    repository.git(&["commit", "-q", "-m", "Modules"]);
    // Nothing is fetched: the places that they came from are gone.
    for name in ["inner", "outer"] {
        fs::rename(
            repository.agent.path(name),
            repository.agent.path(name).with_extension("away"),
        )
        .unwrap();
    }

    let list = "cmd:sh -c 'cat libs/*/outer.txt libs/*/inner/inner.txt; git -C libs/a remote get-url origin'";
    let ended = repository.command(&["run", list, "x", "--worktree"]).ok();
    assert_eq!(ended.stdout, format!("1\n1\n1\n1\n{outer}\n"));
    assert!(!ended.stderr.contains("warning"), "{}", ended.stderr);
    assert!(repository.left().is_empty(), "{}", ended.stderr);
    assert_eq!(repository.git(&["status", "--porcelain"]), "");
    assert!(
        repository
            .git(&["submodule", "foreach", "-q", "git remote get-url origin"])
            .contains(&outer)
    );

    // A change in one is a change of the worktree.
    let change = "cmd:sh -c 'echo 2 > libs/a/outer.txt'";
    let ended = repository.command(&["run", change, "x", "--worktree"]);
    ended.stderr_has("worktree kept: 1 changed file");

    // One that cannot be checked out is named, and the run continues.
    let head = repository.path().join(".git/modules/libs/b/HEAD");
    fs::write(head, "nothing").unwrap();
    let ended = repository.command(&["run", "cmd:cat libs/a/outer.txt", "x", "--worktree"]);
    assert_eq!(
        (ended.code, &*ended.stdout),
        (Some(0), "1\n"),
        "{}",
        ended.stderr
    );
    let expected = "warning: --worktree: the submodule libs/b is empty: git: ";
    ended.stderr_has(expected);
}

#[test]
fn a_worktree_is_kept_for_work_that_only_a_submodule_has() {
    let repository = Repository::new();
    let module = repository.agent.path("module").display().to_string();
    repository.git(&["init", "-q", "-b", "main", &module]);
    fs::write(format!("{module}/file"), "1\n").unwrap();
    repository.git(&["-C", &module, "add", "."]);
    repository.git(&["-C", &module, "commit", "-q", "-m", "First"]);
    let allow = "protocol.file.allow=always";
    repository.git(&["-c", allow, "submodule", "-q", "add", &module, "libs/a"]);
    repository.git(&["commit", "-q", "-m", "Module"]);

    let commit = "$git checkout -qb side && $git commit -q --allow-empty -m Side";
    let back = "$git checkout -q -";
    for (work, expected) in [
        (
            format!("{commit} && {back}"),
            "worktree kept: 1 commit in the submodule libs/a on branch",
        ),
        (
            format!("{commit} && {back} && git submodule -q deinit -f libs/a"),
            "worktree kept: 1 commit in the submodule libs/a on branch",
        ),
        (
            "echo 2 > libs/a/file && $git stash -q".to_owned(),
            "worktree kept: 1 stash in the submodule libs/a on branch",
        ),
        (
            "echo 2 > libs/a/file".to_owned(),
            "worktree kept: 1 changed file not committed in the submodule libs/a on branch",
        ),
        (
            format!("{commit} && $git push -q origin side && {back}"),
            "worktree without changes removed",
        ),
    ] {
        let git = "git='git -C libs/a -c user.email=a@example.com -c user.name=A'";
        let agent = repository.script("worker", &format!("{git}; {work}"));
        let ended = repository.command(&["run", &agent, "x", "--worktree"]);
        assert_eq!(ended.code, Some(0), "{work}: {}", ended.stderr);
        assert!(ended.stderr.contains(expected), "{work}: {}", ended.stderr);
    }
}
