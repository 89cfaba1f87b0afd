//! The output of a loop at its start and its end.

use std::fs;

use teamster_testkit::stand_in::Act;

use super::Agent;
use crate::cli::{Running, TEAMSTER, run};

#[test]
fn the_log_has_the_process_of_the_cli_and_why_the_loop_ended() {
    let agent = Agent::new(|plan| plan.turn([Act::DidWork]));
    let mut command = agent.command();
    let mut running = Running::start(command.env("SECRET_TOKEN", "hush-hush"));
    agent.waits_for("its sleep", || agent.sleeps());
    running.stop();
    let log = agent.log();
    let pid = agent.pids()[0];
    let line = log
        .lines()
        .find(|line| line.contains(&format!("claude pid={pid}: ")));
    let line = line.unwrap_or_else(|| panic!("{log}"));
    assert!(
        line.contains("/claude ") && line.contains("--settings"),
        "{line}"
    );
    assert!(!log.contains("hush-hush"), "{log}");
    assert!(
        log.contains("] ending the agent: received SIGTERM\n"),
        "{log}"
    );
    assert!(log.contains("warning: no instructions: create CLAUDE.md or AGENTS.md in "));
}

#[test]
fn a_file_without_an_end_is_not_read_for_ever() {
    let agent = Agent::new(|plan| plan);
    std::os::unix::fs::symlink("/dev/zero", agent.directory().join(".env")).unwrap();
    run(&mut agent.command()).fails(2, "neither a file nor a pipe");
}

#[test]
fn an_agent_is_not_bound_to_the_git_repository_of_a_hook() {
    let agent = Agent::new(|plan| plan.turn([Act::DidWork]));
    // A stand-in that records what it has of git's variables.
    let seen = agent.root.path().join("git");
    let record = format!(
        "/bin/sh -c 'printf \"<%s>\" \"$GIT_INDEX_FILE\" > \"{}\"; exec \"$@\"' sh '{TEAMSTER}' fake-agent",
        seen.display()
    );
    let bin = agent.root.path().join("bin");
    agent.plan.install(&bin, &record).unwrap();
    let mut command = agent.command();
    let index = std::env::current_dir().unwrap().join("index");
    let mut running = Running::start(command.env("GIT_INDEX_FILE", index));
    agent.waits_for("its sleep", || agent.sleeps());
    running.stop();
    assert_eq!(fs::read_to_string(seen).unwrap(), "<>");
}
