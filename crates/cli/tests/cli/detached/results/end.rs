//! What becomes of results: they are pushed, and go with their runs.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use teamster_testkit::proc::wait_until;

use super::{attached, command, command_with, worker};
use crate::cli::detached::worktree::Repository;

#[test]
fn a_push_is_a_step_of_its_own() {
    let repository = Repository::new();
    let remote = repository.agent.path("remote.git").display().to_string();
    repository.git(&["init", "-q", "--bare", &remote]);
    repository.git(&["remote", "add", "origin", &remote]);
    let (_, workspace) = attached(&repository, &["--push", "origin:fix"]);
    assert_eq!(workspace["pushed"], "origin:fix");
    let pushed = repository.git(&["ls-remote", "origin", "refs/heads/fix"]);
    assert!(
        pushed.starts_with(workspace["head"].as_str().unwrap()),
        "{pushed}"
    );

    let worker = worker(&repository);
    let args = ["run", &*worker, "x", "--worktree", "--push", "nowhere"];
    let ended = command(&repository, &args).ok();
    ended.stderr_has("not pushed, the commits are kept here");
    // One that hangs is ended.
    repository.git(&["remote", "add", "hung", "ext::sh -c exec% sleep% 1000"]);
    repository.git(&["config", "protocol.ext.allow", "always"]);
    let args = ["run", &*worker, "x", "--worktree", "--push", "hung"];
    let limit = [("TEAMSTER_GIT_SILENCE", Path::new("1s"))];
    let ended = command_with(&repository, &args, &limit).ok();
    let expected = "not pushed, the commits are kept here: git printed nothing for 1 s";
    ended.stderr_has(expected);
    let refused = command(&repository, &["run", &worker, "x", "--push", "origin"]);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
}

#[test]
fn collected_files_go_with_the_logs_and_commits_on_command() {
    let repository = Repository::new();
    let (id, _) = attached(&repository, &["--artifact", "new.txt"]);
    let (young, _) = attached(&repository, &[]);
    let results = repository.agent.path("state/teamster/worktrees.results");
    let results = results.join(&id);
    assert!(results.join("files/new.txt").exists());
    let long_ago = SystemTime::now() - Duration::from_hours(100 * 24);
    fs::File::open(&results)
        .unwrap()
        .set_modified(long_ago)
        .unwrap();
    let worker = worker(&repository);
    let later = command(&repository, &["run", &worker, "x", "--detach"]).ok();
    command(&repository, &["wait", later.stdout.trim_end()]).ok();
    // The runner removes the collected files after the end of its run. What is in the user's repository stays.
    let files = results.join("files");
    assert!(wait_until(Duration::from_mins(1), || !files.exists()));
    let refs = || repository.git(&["for-each-ref", "--format=%(refname)", "refs/teamster"]);
    assert!(
        refs().contains(&id) && refs().contains(&young),
        "{}",
        refs()
    );
    command(&repository, &["runs", "forget", &id]).ok();
    assert!(!results.exists());
    assert!(
        !refs().contains(&id) && refs().contains(&young),
        "{}",
        refs()
    );
    // The files are the user's.
    assert_eq!(repository.left().len(), 2);
}

#[test]
fn a_filter_that_hangs_holds_no_run() {
    let repository = Repository::new();
    let mark = repository.agent.path("mark");
    let hang = format!(
        "sh -c 'if [ -e {} ]; then sleep 1000; fi; cat'",
        mark.display()
    );
    repository.git(&["config", "filter.slow.clean", &hang]);
    repository.git(&["config", "filter.slow.smudge", &hang]);
    fs::write(
        repository.path().join(".gitattributes"),
        "*.txt filter=slow\n",
    )
    .unwrap();
    fs::write(repository.path().join("a.txt"), "1\n").unwrap();
    repository.git(&["add", "."]);
    repository.git(&["commit", "-qm", "Filtered"]);
    let limit = [("TEAMSTER_GIT_SILENCE", Path::new("1s"))];
    // At its end: what git cannot read is named, and stays.
    let script = format!("echo 22 > a.txt; touch {}", mark.display());
    let agent = repository.script("slowed", &script);
    let args = ["run", &*agent, "x", "--worktree", "--json"];
    let ended = command_with(&repository, &args, &limit).ok();
    let stuck = "git did nothing for 1 s, so it was ended: a filter";
    ended.stdout_has(stuck);
    let left = repository.left();
    let [folder] = &left[..] else {
        panic!("{left:?}");
    };
    let kept = folder.join("repository/a.txt");
    assert_eq!(fs::read_to_string(kept).unwrap(), "22\n");
    // At its start: refused, and nothing is left of it.
    command_with(&repository, &args, &limit).fails(2, stuck);
    assert_eq!(repository.left().len(), 1);
}
