//! The scripts of `docs/migration-agent-loop.md`, started like a dashboard starts them.

use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use teamster_testkit::proc::{self, is_alive, wait_until};
use teamster_testkit::stand_in::Act;

use crate::agents::LIMIT;
use crate::agents::company::{Company, pid};

const PAGE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../docs/migration-agent-loop.md"
);

/// Installs the script of the page whose second line contains `mark`.
fn script(company: &Company, mark: &str) {
    let page = fs::read_to_string(PAGE).unwrap();
    let mut scripts = page.split("```sh\n").skip(1);
    let script = scripts.find(|it| it.lines().nth(1).unwrap().contains(mark));
    let (script, _) = script.unwrap().split_once("```").unwrap();
    let bin = company.path("bin");
    write(&bin.join("agent-loop.sh"), script);
    let teamster = env!("CARGO_BIN_EXE_teamster");
    write(
        &bin.join("teamster"),
        &format!("#!/bin/sh\nexec '{teamster}' \"$@\"\n"),
    );
}

fn write(path: &Path, script: &str) {
    proc::write_program(path, script).unwrap();
}

/// Starts the script as a dashboard does, which keeps the process id.
fn start(company: &Company, id: &str) -> Child {
    let environment = company.teamster([]);
    let mut command = std::process::Command::new(company.path("bin/agent-loop.sh"));
    command.arg(company.folder(id)).env_clear();
    for (name, value) in environment.get_envs() {
        command.env(name, value.unwrap());
    }
    command.env("AGENT_LOOP_POLL", "0.1");
    command.stdout(Stdio::null()).spawn().unwrap()
}

fn signal(child: &Child, signal: Signal) {
    kill(Pid::from_raw(child.id().cast_signed()), signal).unwrap();
}

/// Returns whether the process handles SIGUSR1.
fn listens(pid: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let caught = status.lines().find_map(|it| it.strip_prefix("SigCgt:"));
    let caught = u64::from_str_radix(caught.unwrap().trim(), 16).unwrap();
    caught & 1 << (Signal::SIGUSR1 as u32 - 1) != 0
}

fn ticks(company: &Company, count: usize) {
    let log = || company.log("a");
    assert!(
        wait_until(LIMIT, || log().matches(" ok in ").count() == count),
        "{}",
        log()
    );
}

#[test]
fn the_script_that_is_the_loop() {
    let company = Company::new(["a"], |plan| plan.turn([Act::DidWork]));
    script(&company, "teamster is the loop");
    let mut dashboard = start(&company, "a");
    assert_eq!(company.asleep("a"), dashboard.id());
    signal(&dashboard, Signal::SIGUSR1);
    ticks(&company, 2);
    // A second loop is refused and does not affect the first one.
    assert_eq!(start(&company, "a").wait().unwrap().code(), Some(2));
    assert!(is_alive(dashboard.id()));
    signal(&dashboard, Signal::SIGTERM);
    assert_eq!(dashboard.wait().unwrap().code(), Some(0));
}

#[test]
fn the_script_that_hands_over() {
    let company = Company::new(["a"], |plan| plan.turn([Act::DidWork]));
    script(&company, "hands over to the supervisor");
    let supervisor = company.supervise([]);
    let loop_pid = company.asleep("a");
    let mut dashboard = start(&company, "a");
    assert!(wait_until(LIMIT, || listens(dashboard.id())));
    signal(&dashboard, Signal::SIGUSR1);
    ticks(&company, 2);
    assert_eq!(pid(&company.agent("a")), Some(loop_pid));
    signal(&dashboard, Signal::SIGTERM);
    assert_eq!(dashboard.wait().unwrap().code(), Some(0));
    assert_eq!(company.agent("a")["state"], "stopped");
    let mut dashboard = start(&company, "a");
    // A dashboard writes this file.
    let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_millis();
    let last_start = format!("{{\"epoch_ms\": {now}, \"pid\": {}}}", dashboard.id());
    let file = company.folder("a").join(".orchestrator/last-start.json");
    fs::write(file, last_start).unwrap();
    let second = company.asleep("a");
    assert!(second != loop_pid && second != dashboard.id());
    // The script ends with the agent.
    assert_eq!(company.good(["agents", "stop", "a"]), "a: stopped\n");
    dashboard.wait().unwrap();
    supervisor.stop();
}
