//! A server that is killed and started again: watchers go on behind the last entry that they have.

use std::fs;

use nix::sys::signal::Signal;

use super::Machine;
use crate::cli::serve::client::Served;
use crate::cli::serve::silent;
use crate::cli::{Claude, Running, run};

#[test]
fn a_watcher_goes_on_where_it_was_when_the_server_was_killed() {
    let claude = Claude::new(&silent());
    let mut machine = Machine::new(claude.path("").as_path(), &claude.path("claude"));
    let started = run(&mut machine.remote(["run", "-d", "claude", "x"]));
    let id = started.stdout.trim_end().to_owned();

    let mut watcher = Running::start(&mut machine.remote(["attach", &id, "--json"]));
    let mut seen = watcher.line();
    // The connection is there.
    while !seen.contains(r#""type":"text""#) {
        seen += &watcher.line();
    }
    machine.served.running.signal(Signal::SIGKILL);
    machine.served.running.wait();
    let address = machine.served.address.clone();
    let environment = machine.environment.clone();
    machine.served = Served::start_at(&address, &machine.state, |command| {
        command.envs(environment.clone());
    });
    let cancelled = run(&mut machine.remote(["cancel", &id]));
    assert_eq!(cancelled.code, Some(0), "{}", cancelled.stderr);
    let ended = watcher.end();
    assert_eq!((ended.code, &*ended.stderr), (Some(130), ""));
    seen += &ended.stdout;
    let log = machine
        .state
        .join(format!("teamster/runs/{id}/events.ndjson"));
    assert_eq!(seen, fs::read_to_string(log).unwrap());
}
