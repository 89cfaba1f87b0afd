//! Where a run works: `--worktree-from`, `--empty-dir`, and the worktree of a session key.

use std::fs;

use super::worktree::Repository;
use crate::cli::{Ended, program};

/// Runs the agent in the repository.
fn ran(repository: &Repository, args: &[&str]) -> Ended {
    let ended = repository.command(args);
    assert_eq!(ended.code, Some(0), "{args:?}: {}", ended.stderr);
    ended
}

#[test]
fn a_worktree_starts_at_the_commit_that_is_named() {
    let repository = Repository::new();
    repository.git(&["tag", "old"]);
    fs::write(repository.path().join("sub/file"), "two\n").unwrap();
    repository.git(&["commit", "-qam", "Second"]);
    let cat = "cmd:cat file";
    for detach in [None, Some("--detach")] {
        let mut args = vec!["run", cat, "x", "-C", "sub", "--worktree-from", "old"];
        args.extend(detach);
        let mut ended = ran(&repository, &args);
        if detach.is_some() {
            let id = ended.stdout.trim_end();
            ran(&repository, &["wait", id]);
            ended = ran(&repository, &["attach", id]);
        }
        assert_eq!(ended.stdout, "one\n");
    }
    let ended = ran(&repository, &["run", cat, "x", "-C", "sub", "--worktree"]);
    assert_eq!(ended.stdout, "two\n");
    let refused = repository.command(&["run", cat, "x", "--worktree-from=nowhere"]);
    assert_eq!((refused.code, &*refused.stdout), (Some(2), ""));
    let expected = "--worktree-from or --empty-dir: \"nowhere\" is no commit";
    assert!(refused.stderr.contains(expected), "{}", refused.stderr);
    assert!(repository.left().is_empty());
}

#[test]
fn an_empty_directory_is_kept_with_what_the_agent_has_made() {
    let repository = Repository::new();
    let ended = ran(&repository, &["run", "cmd:ls -A", "x", "--empty-dir"]);
    assert_eq!(ended.stdout, "");
    assert!(
        ended.stderr.contains("empty directory removed"),
        "{}",
        ended.stderr
    );
    assert!(repository.left().is_empty());
    let ended = ran(&repository, &["run", "cmd:touch made", "x", "--empty-dir"]);
    let made = repository.left()[0].join("files/made");
    assert!(made.exists());
    let expected = format!(
        "directory kept: it has files, in {}",
        made.parent().unwrap().display()
    );
    assert!(ended.stderr.contains(&expected), "{}", ended.stderr);
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
    let first = keyed(&["--worktree"]);
    assert_eq!(first.code, Some(0), "{}", first.stderr);
    let kept = "1 changed file not committed, for the next run with the session key";
    assert!(first.stderr.contains(kept), "{}", first.stderr);
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

    let over = keyed(&["--worktree", "--new"]);
    assert_eq!(over.code, Some(0), "{}", over.stderr);
    let (other_session, other) = over.stdout.trim_end().split_once(' ').unwrap();
    assert_ne!((other_session, other), (session, directory));
    assert_eq!(keyed(&["--worktree"]).stdout, over.stdout);
    // What was changed in the first one is not lost.
    assert!(fs::exists(format!("{directory}/session")).unwrap());

    // A folder that is gone is not advised.
    fs::remove_dir_all(other).unwrap();
    let refused = keyed(&["--worktree"]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("is gone"), "{}", refused.stderr);
    assert!(refused.stderr.contains("--new"), "{}", refused.stderr);
    assert_eq!(keyed(&["--worktree", "--new"]).code, Some(0));
}
