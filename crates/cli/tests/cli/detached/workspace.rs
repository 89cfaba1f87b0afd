//! Where a run works: `--worktree-from`, `--empty-dir`, and the worktree of a session key.

use std::fs;
use std::path::Path;

use super::worktree::Repository;
use crate::cli::{Ended, program, run};

/// Runs the agent in the repository.
fn ran(repository: &Repository, args: &[&str]) -> Ended {
    let ended = repository.command(args);
    assert_eq!(ended.code, Some(0), "{args:?}: {}", ended.stderr);
    ended
}

#[test]
fn the_runs_of_a_session_key_share_one_worktree() {
    let repository = Repository::new();
    // Made by hand: the least of Claude Code's output that makes a run.
    program(
        &repository.agent.path("claude"),
        r#"
case "$*" in *--version*) echo '2.1.330 (Claude Code)'; exit ;; esac
id=session-$$
case "$*" in *--resume*) id=$(cat session) ;; esac
printf %s $id > session
pwd
printf '{"type":"system","subtype":"init","session_id":"%s","model":"opus"}\n' $id
printf '{"type":"assistant","session_id":"%s","message":{"id":"m","role":"assistant","content":[{"type":"text","text":"%s %s"}]}}\n' $id $id "$PWD"
printf '{"type":"result","subtype":"success","is_error":false,"session_id":"%s","num_turns":1,"result":"","usage":{"input_tokens":10,"output_tokens":5}}\n' $id
"#,
    );
    let store = format!("--store={}", repository.agent.path("keys.db").display());
    let keyed = |args: &[&str]| {
        let run = ["run", "claude", "x", "--session-key=slack:U42", &store];
        repository.command(&[&run[..], args].concat())
    };
    let first = keyed(&["--worktree"]).ok();
    let kept = "1 changed file not committed, for the next run with the session key";
    first.stderr_has(kept);
    let (session, directory) = first.stdout.trim_end().split_once(' ').unwrap();
    // The same session, in the same place.
    let second = keyed(&["--worktree"]);
    assert_eq!(second.stdout, first.stdout, "{}", second.stderr);
    // Those without a key, or with another one, have their own.
    ran(&repository, &["run", "cmd:pwd", "x", "--worktree"]);
    assert_eq!(repository.left().len(), 1);
    // It is where the conversation can be continued, too.
    let there = keyed(&["--cwd", directory]);
    assert_eq!(there.stdout, first.stdout, "{}", there.stderr);

    let over = keyed(&["--worktree", "--new"]).ok();
    let (other_session, other) = over.stdout.trim_end().split_once(' ').unwrap();
    assert_ne!((other_session, other), (session, directory));
    assert_eq!(keyed(&["--worktree"]).stdout, over.stdout);
    // What was changed in the first one is not lost.
    assert!(fs::exists(format!("{directory}/session")).unwrap());

    // A folder that is gone is not advised.
    fs::remove_dir_all(other).unwrap();
    let refused = keyed(&["--worktree"]);
    refused.fails(2, "is gone");
    refused.stderr_has("--new");
    keyed(&["--worktree", "--new"]).ok();
}

#[test]
fn repository_is_fetched_once_at_the_commit_of_submission() {
    let repository = Repository::new();
    repository.git(&["tag", "-m", "One", "v1"]);
    fs::write(repository.path().join("sub/file"), "two\n").unwrap();
    repository.git(&["commit", "-qam", "Second"]);
    let url = format!("file://{}", repository.path().display());
    let elsewhere = repository.agent.path("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let here = elsewhere.to_str().unwrap();
    let before = repository.git(&["for-each-ref"]);
    let cat = "cmd:sh -c 'cat file; git remote get-url origin'";
    for (from, expected) in [(None, "two"), (Some("--worktree-from=v1"), "one")] {
        let mut args = vec!["run", cat, "x", "-C", "sub", "--repo", &url];
        args.extend(from);
        let ended = ran(&repository, &args);
        assert_eq!(
            ended.stdout,
            format!("{expected}\n{url}\n"),
            "{}",
            ended.stderr
        );
    }
    // What is there is not fetched again.
    fs::rename(repository.path(), repository.agent.path("away")).unwrap();
    fs::create_dir(repository.path()).unwrap();
    let away = repository.agent.path("away");
    let head = repository.git(&["-C", away.to_str().unwrap(), "rev-parse", "HEAD"]);
    let from = format!("--worktree-from={}", head.trim_end());
    let args = ["run", "-d", "cmd:touch new", "x", "--repo", &url, &from];
    let started = ran(&repository, &args);
    ran(&repository, &["wait", started.stdout.trim_end()]);
    assert!(repository.left()[0].join("repository/new").exists());
    fs::remove_dir(repository.path()).unwrap();
    fs::rename(&away, repository.path()).unwrap();
    assert_eq!(repository.git(&["for-each-ref"]), before);
    assert_eq!(repository.git(&["status", "--porcelain"]), "");

    let refused = |args: &[&str], expected: &str| {
        let ended = repository.command(&[&["run", "cmd:pwd", "x"], args].concat());
        assert_eq!((ended.code, &*ended.stdout), (Some(2), ""), "{args:?}");
        assert!(
            ended.stderr.contains(expected),
            "{args:?}: {}",
            ended.stderr
        );
        assert!(!ended.stderr.contains("s3cret"), "{}", ended.stderr);
    };
    refused(
        &["--repo", &url, "--worktree-from=v2"],
        "error: --worktree-from: the repository has no branch or tag \"v2\"",
    );
    let unknown = format!("--worktree-from={}", "1".repeat(40));
    refused(
        &["--repo", &url, &unknown],
        "error: --worktree-from: the repository does not have the commit 1111",
    );
    refused(&["--repo", here], "with --remote");
    refused(
        &["--repo", "https://me:s3cret@localhost/a.git"],
        "it has credentials",
    );
    refused(&["--repo", "ext::sh -c s3cret"], "starts a program");
    refused(
        &["--repo", &url, "-C", "nowhere"],
        "has no directory nowhere",
    );
    refused(&["--repo", &url, "-C", "../x"], "`subdirectory`");
    let gone = format!("file://{here}/none");
    refused(&["--repo", &gone], "--repo: git: ");
    assert_eq!(repository.left().len(), 1);
}

#[test]
fn a_git_that_is_too_old_is_named() {
    let repository = Repository::new();
    let bin = repository.agent.path("bin");
    fs::create_dir(&bin).unwrap();
    // Made by hand: what such a git does with an option that it does not know.
    program(
        &bin.join("git"),
        "PATH=/usr/local/bin:/usr/bin:/bin\ncase \"$*\" in version) echo 'git version 2.20.1' ;; \
         *'worktree add'*) echo 'error: unknown option' >&2; exit 129 ;; *) exec git \"$@\" ;; esac",
    );
    let path = format!("{}:/usr/local/bin:/usr/bin:/bin", bin.display());
    let args = ["run", "cmd:pwd", "x", "--worktree"];
    let ended = run(repository.prepare(&args).env("PATH", path));
    assert_eq!((ended.code, &*ended.stdout), (Some(2), ""));
    let expected =
        "--worktree: git 2.20 is too old: install 2.29 or a newer one: git: error: unknown option";
    ended.stderr_has(expected);
    assert!(repository.left().is_empty());
}

/// git tells a repository of another user by its owner, which a test can be asked to ignore for itself.
#[test]
fn repository_of_another_user_is_named_with_the_command() {
    let repository = Repository::new();
    let args = ["run", "cmd:pwd", "x", "--worktree"];
    let owned = [("GIT_TEST_ASSUME_DIFFERENT_OWNER", Path::new("1"))];
    let ended = repository.command_with(&args, &owned);
    assert_eq!((ended.code, &*ended.stdout), (Some(2), ""));
    let path = repository.path();
    let expected = format!(
        "the repository {0} belongs to another user, so git does not use it: if you trust it, run `git config --global --add safe.directory {0}`",
        path.display()
    );
    ended.stderr_has(&expected);
}
