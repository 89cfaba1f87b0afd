//! `--setup` and the set-up of `.teamster.toml`.

use std::fs;

use nix::sys::signal::Signal;
use teamster_testkit::proc::{wait_gone, wait_until};

use super::requests::log;
use super::worktree::Repository;
use crate::cli::{LIMIT, Running, json_lines};

/// Returns the entry `error` of a log.
fn error_of(log: &str) -> serde_json::Value {
    let mut entries = json_lines(log).into_iter();
    entries.find(|it| it["type"] == "error").unwrap()
}

#[test]
fn workspace_is_set_up_with_the_environment_of_its_agent() {
    let repository = Repository::new();
    let agent = "cmd:cat made";
    let git_dir = repository.path().join(".git");
    let setup = "echo ${GIT_DIR-none} $KEY ${TEAMSTER_SETUP_SCRIPT-unset} > made; echo '{model}'; echo two >&2";
    for detach in [None, Some("--detach")] {
        let mut args = vec![
            "run",
            agent,
            "x",
            "--worktree",
            "--env=KEY=value",
            "--setup",
            setup,
        ];
        args.extend(detach);
        let mut ended = repository
            .command_with(&args, &[("GIT_DIR", &*git_dir)])
            .ok();
        if detach.is_some() {
            let id = ended.stdout.trim_end();
            repository.command(&["wait", id]).ok();
            ended = repository.command(&["attach", id]);
        }
        assert_eq!(ended.stdout, "none value unset\n", "{}", ended.stderr);
        // Its output is in the log.
        ended.stderr_has("  {model}\n");
        ended.stderr_has("  two\n");
    }
    // A session too, in its first turn; and a directory that nothing is made for.
    let setup = "echo x >> made";
    let args = ["chat", "--detach", "claude", "-C", "sub", "--setup", setup];
    let started = repository.command(&args);
    let id = started.stdout.trim_end();
    for _ in 0..2 {
        repository.command(&["say", id, "more"]).ok();
    }
    let made = repository.path().join("sub/made");
    assert_eq!(fs::read_to_string(made).unwrap(), "x\n");
    repository.command(&["cancel", id]);
    repository.command(&["wait", id]);
}

#[test]
fn an_image_may_be_made_by_the_set_up() {
    let repository = Repository::new();
    let image = repository.agent.path("made.png").display().to_string();
    let run = |setup: &str| {
        let args = [
            "run", "-d", "claude", "x", "--image", &image, "--setup", setup,
        ];
        let started = repository.command(&args).ok();
        let id = started.stdout.trim_end().to_owned();
        repository.command(&["wait", &id]);
        id
    };
    let error = error_of(&log(&repository.agent, &run("true")));
    assert!(
        error["message"].as_str().unwrap().contains("made.png"),
        "{error}"
    );
    run(&format!("printf x > '{image}'"));
    // In base64.
    let received = repository.agent.received();
    assert!(received.contains(r#""eA==""#), "{received}");
}

#[test]
fn a_set_up_that_fails_ends_the_run_before_its_agent() {
    let repository = Repository::new();
    for (setup, limit, expected) in [
        ("echo no license; exit 3", "10m", "failed with exit code 3"),
        ("sleep 600", "100ms", "it took longer than 0.1 s"),
    ] {
        let limit = format!("--setup-timeout={limit}");
        let args = [
            "run",
            "-d",
            "claude",
            "x",
            "--worktree",
            "--retries=3",
            "--setup",
            setup,
            &limit,
        ];
        let ended = repository.command(&args);
        let id = ended.stdout.trim_end();
        assert_eq!(repository.command(&["wait", id]).code, Some(1));
        let log = log(&repository.agent, id);
        let error = error_of(&log);
        assert_eq!(error["code"], "SETUP_FAILED", "{log}");
        assert_eq!(error["kind"], "setup", "{log}");
        assert!(log.contains(expected), "{log}");
        assert_eq!(log.matches(r#""type":"done""#).count(), 1, "{log}");
    }
    assert_eq!(repository.agent.starts(), [""; 0]);
    assert!(repository.left().is_empty());
}

#[test]
fn a_set_up_is_stopped_with_its_run() {
    let repository = Repository::new();
    let pid = repository.agent.path("pid");
    let setup = format!("setsid sleep 600 & echo $! > {}; wait", pid.display());
    let args = ["run", "claude", "x", "--worktree", "--setup", &setup];
    let mut run = Running::start(&mut repository.prepare(&args));
    let started = || fs::read_to_string(&pid).is_ok_and(|it| it.ends_with('\n'));
    assert!(wait_until(LIMIT, started));
    run.signal(Signal::SIGINT);
    assert_eq!(run.end().code, Some(130));
    let sleeping = fs::read_to_string(&pid)
        .unwrap()
        .trim_end()
        .parse()
        .unwrap();
    assert!(wait_gone(sleeping, LIMIT));
    assert_eq!(repository.agent.starts(), [""; 0]);
    assert!(repository.left().is_empty());
}

#[test]
fn the_set_up_of_a_repository_runs_once_it_is_trusted() {
    let repository = Repository::new();
    let file = repository.path().join(".teamster.toml");
    let commit = |text: &str| {
        fs::write(&file, text).unwrap();
        repository.git(&["add", "."]);
        repository.git(&["commit", "-qm", "Set-up"]);
    };
    commit("setup = [\"echo one > made\", \"cat sub/file >> made\"]\n");
    let run = ["run", "cmd:cat ../made", "x", "--worktree", "-C", "sub"];
    let refused = repository.command(&run);
    refused.only_says(2, "are not trusted on this machine");
    refused.stderr_has("teamster trust");
    assert!(repository.left().is_empty());
    // Without a workspace of its own, nothing of the repository runs.
    assert_eq!(repository.command(&["run", "cmd:ls", "x"]).stdout, "sub\n");
    let without = repository.command(&["run", "cmd:ls", "x", "--worktree", "--setup=off"]);
    assert_eq!(without.stdout, "sub\n", "{}", without.stderr);

    let none = repository.command(&["trust", "--list"]);
    none.only_says(0, "no set-up commands are trusted");
    let trusted = repository.command(&["trust", "sub"]).ok();
    trusted.stdout_has("\n  echo one > made\n  cat sub/file >> made\n");
    assert_eq!(
        repository.command(&["trust", "--list"]).stdout,
        trusted.stdout
    );
    let list = repository.agent.path("state/teamster/trust.json");
    let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(list).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    let ended = repository.command(&run);
    assert_eq!(ended.stdout, "one\none\n", "{}", ended.stderr);

    // Only that content, and only there.
    commit("setup = \"echo two > made\"\n");
    assert_eq!(repository.command(&run).code, Some(2));
    let old = [&run[..], &["--worktree-from=HEAD~1"]].concat();
    assert_eq!(repository.command(&old).stdout, "one\none\n");
    let copy = repository.agent.path("copy");
    let copy = copy.to_str().unwrap();
    repository.git(&["clone", "-q", ".", copy]);
    let there = [
        "run",
        "cmd:true",
        "x",
        "--worktree",
        "--worktree-from=HEAD~1",
        "-C",
        copy,
    ];
    assert_eq!(repository.command(&there).code, Some(2));
    repository.command(&["trust", "--from", "HEAD"]).ok();
    assert_eq!(repository.command(&run).stdout, "two\n");

    let removed = repository.command(&["trust", "--remove"]);
    assert!(
        removed.stdout.starts_with("2 set-ups of "),
        "{}",
        removed.stdout
    );
    assert_eq!(repository.command(&run).code, Some(2));
    commit("set_up = 1\n");
    repository.command(&run).fails(2, "set_up");
    assert_eq!(repository.command(&["trust"]).code, Some(2));
}
