//! Runs in a container, whose engine is a stand-in that runs the agent on this machine.

use std::fs;
use std::process::Command;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use teamster::RunStatus;
use teamster_testkit::proc::{KillOnDrop, wait_gone, wait_until};

use crate::cli::{Claude, LIMIT, Running, done, run, teamster};

const STAND_IN: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../testkit/tests/engine/docker.sh"
);

/// Adds the engine `docker` with the image `agents:1`, in which the agent is on `PATH`.
fn engine(claude: &Claude) {
    let folder = claude.path("engine");
    fs::create_dir(&folder).unwrap();
    fs::create_dir(claude.path("work")).unwrap();
    fs::write(folder.join("image"), "").unwrap();
    std::os::unix::fs::symlink(STAND_IN, folder.join("docker")).unwrap();
}

fn contained(claude: &Claude, args: &[&str]) -> Command {
    let folder = claude.path("engine");
    let dir = claude.dir.path().display();
    let mut command = claude.run(args.iter().copied());
    command
        .env("PATH", format!("{}:{dir}:/usr/bin:/bin", folder.display()))
        // A program of this machine.
        .env("TEAMSTER_CLAUDE_BIN", "/no/such/program")
        .current_dir(claude.path("work"));
    command
}

fn calls(claude: &Claude) -> String {
    fs::read_to_string(claude.path("engine/calls")).unwrap_or_default()
}

#[test]
fn run_in_a_container_has_an_answer_and_leaves_no_container() {
    let claude = Claude::plays("text", 0);
    engine(&claude);
    let args = [
        "x",
        "--in=docker:agents:1",
        "--env=A_KEY=a-secret",
        "--json",
    ];
    let ended = run(&mut contained(&claude, &args)).quiet();
    assert_eq!(done(&ended.stdout).status, RunStatus::Completed);
    assert_eq!(claude.report().env["A_KEY"], "a-secret");
    let calls = calls(&claude);
    assert!(
        calls.contains("\n--entrypoint\nclaude\nagents:1\n"),
        "{calls}"
    );
    assert!(calls.contains("\nrm\n--force\nteamster-"), "{calls}");
    assert!(!calls.contains("a-secret"), "{calls}");
    // Its session is gone with it.
    let ended = run(&mut contained(&claude, &args[..2]));
    ended.stderr_has("completed");
    assert!(!ended.stderr.contains("resume with"), "{}", ended.stderr);
}

#[test]
fn container_of_the_owner_is_that_of_every_run() {
    let claude = Claude::plays("text", 0);
    engine(&claude);
    let mut command = contained(&claude, &["x", "--json"]);
    let login = claude.path("work");
    run(command.env(
        "TEAMSTER_IN",
        format!("docker:agents:1 {}:/login:ro", login.display()),
    ))
    .quiet();
    let calls = calls(&claude);
    assert!(calls.contains(",target=/login,readonly\n"), "{calls}");

    // Its session is gone with it, unless a mount may have it.
    let mut command = contained(&claude, &["x"]);
    let ended = run(command.env("TEAMSTER_IN", "docker:agents:1"));
    ended.stderr_has("completed");
    assert!(!ended.stderr.contains("resume with"), "{}", ended.stderr);
    let mut command = contained(&claude, &["x"]);
    let ended = run(command.env(
        "TEAMSTER_IN",
        format!("docker:agents:1 {}:/login", login.display()),
    ));
    ended.stderr_has("resume with");

    let mut command = contained(&claude, &["x"]);
    let ended = run(command.env("TEAMSTER_IN", "agents:1"));
    ended.fails(2, "TEAMSTER_IN: ");
    ended.stderr_has("expected docker:IMAGE or podman:IMAGE");
}

#[test]
fn loop_in_a_container_without_a_mount_is_refused() {
    let claude = Claude::plays("text", 0);
    engine(&claude);
    let work = claude.path("work");
    fs::write(work.join("CLAUDE.md"), "x").unwrap();
    let mut command = teamster(["loop", work.to_str().unwrap()]);
    run(command.env("TEAMSTER_IN", "docker:agents:1"))
        .fails(2, "TEAMSTER_IN: a loop resumes its session");
    assert!(!claude.path("engine/calls").exists());
}

/// The container outlives its client, as that of a real engine does.
#[test]
fn killed_teamster_leaves_no_container() {
    let claude = Claude::silent();
    engine(&claude);
    let mut teamster = Running::start(&mut contained(
        &claude,
        &["x", "--in=docker:agents:1", "--json"],
    ));
    teamster.line();
    let agent = KillOnDrop::new(claude.report().pid);
    teamster.signal(Signal::SIGKILL);
    teamster.wait();
    assert!(wait_gone(agent.pid(), LIMIT));
    let is_removed = || calls(&claude).contains("\nrm\n--force\nteamster-");
    assert!(wait_until(LIMIT, is_removed), "{}", calls(&claude));
}

#[test]
fn killed_runner_leaves_no_container() {
    let claude = Claude::silent();
    engine(&claude);
    let args = ["x", "--in=docker:agents:1", "--detach", "--ask-timeout=0"];
    let mut command = contained(&claude, &args);
    run(command.env("XDG_STATE_HOME", claude.path("state"))).quiet();
    let agent = KillOnDrop::new(claude.report().pid);
    let runner = fs::read_to_string(claude.path("engine/owner")).unwrap();
    let runner = Pid::from_raw(runner.trim_end().parse().unwrap());
    kill(runner, Signal::SIGKILL).unwrap();
    assert!(wait_gone(agent.pid(), LIMIT));
    let is_removed = || calls(&claude).contains("\nrm\n--force\nteamster-");
    assert!(wait_until(LIMIT, is_removed), "{}", calls(&claude));
}

#[test]
fn missing_engine_is_an_error_with_the_next_step() {
    let claude = Claude::plays("text", 0);
    let mut command = claude.run(["x", "--in=docker:agents:1"]);
    let ended = run(command.env("PATH", claude.dir.path()));
    ended.only_says(2, "--in: the program `docker` was not found");
    ended.stderr_has("install Docker, or run the agent without a container");
    assert!(!claude.path("report.json").exists());

    run(&mut claude.run(["x", "--in=agents:1"]))
        .fails(2, "expected docker:IMAGE or podman:IMAGE, got \"agents:1\"");
    run(&mut claude.run(["x", "--in-mount=/a:/b"])).fails(2, "--in <ENGINE:IMAGE>");
    run(&mut teamster([
        "run",
        "embedded",
        "x",
        "--in=docker:agents:1",
    ]))
    .fails(2, "--in: ");
}
