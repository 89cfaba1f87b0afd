//! A stopped runner (`SIGSTOP`) affects the commands for its own run only, and only for seconds.
#![cfg(target_os = "linux")]

use std::fs;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use teamster_testkit::proc::{KillOnDrop, wait_gone, wait_until};

use super::requests::{command, detach, request};
use crate::cli::LIMIT;
use crate::cli::chat::Agent;

/// Returns whether all threads of the process are stopped.
fn is_stopped(pid: u32) -> bool {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    threads.flatten().all(|thread| {
        let status = fs::read_to_string(thread.path().join("status"));
        status.is_ok_and(|status| status.contains("State:\tT"))
    })
}

#[test]
fn stopped_runner_is_shown_and_killed_and_blocks_no_command() {
    let agent = Agent::new();
    let other = detach(&agent, &["write"]);
    let asked = request(&agent, &other);
    let id = detach(&agent, &["wait"]);
    let started = || agent.received().contains(r#""content":"wait""#);
    assert!(wait_until(LIMIT, started));
    let runner = agent.parent();
    let _runner = KillOnDrop::new(runner);
    kill(Pid::from_raw(runner.cast_signed()), Signal::SIGSTOP).unwrap();
    // A thread may still answer until another one has taken the signal.
    assert!(wait_until(LIMIT, || is_stopped(runner)));

    let not_answering = format!("run {id} does not answer (pid {runner}): the process is stopped");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let live = command(&agent, &["runs", "list", "--live"]).quiet();
            let line = |id: &str| live.stdout.lines().find(|line| line.starts_with(&id[..13]));
            let state = format!("does not answer (pid {runner})");
            assert!(line(&id).unwrap().contains(&state), "{}", live.stdout);
            assert!(
                line(&other).unwrap().contains("waits for an answer: Write"),
                "{}",
                live.stdout
            );
        });
        scope.spawn(|| {
            let requests = command(&agent, &["requests", "--json"]).ok();
            requests.stderr_has(&not_answering);
            let found = requests.json();
            assert_eq!(found["requestId"], asked["requestId"]);
        });
        for args in [
            ["wait", &id],
            ["cancel", &id],
            ["attach", &id],
            ["requests", &id],
        ] {
            let (agent, not_answering) = (&agent, &not_answering);
            scope.spawn(move || {
                let ended = command(agent, &args);
                assert_eq!(ended.code, Some(1), "{args:?}: {}", ended.stderr);
                assert!(
                    ended.stderr.contains(not_answering),
                    "{args:?}: {}",
                    ended.stderr
                );
            });
        }
    });

    command(&agent, &["cancel", "--kill", &id, &other]).quiet();
    assert!(wait_gone(runner, LIMIT));
    assert_eq!(command(&agent, &["wait", &id]).code, Some(5));
    let log = super::requests::log(&agent, &id);
    assert_eq!(log.matches(r#""type":"done""#).count(), 1, "{log}");
}
