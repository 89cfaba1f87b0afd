//! Runs that `teamster supervise` starts at times.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;
use teamster_testkit::proc::wait_until;

use crate::cli::again::Agents;
use crate::cli::{LIMIT, run, teamster};

#[test]
fn schedule_starts_a_run_that_outlives_the_supervisor() {
    let agents = Agents::new().codex(&[("text", 0), ("text", 0)]);
    let config = agents.path("agents.config.json");
    // The recorded output is that of a run which cannot ask.
    let run_spec =
        json!({"provider": "codex", "prompt": "Look", "workingDirectory": ".", "askTimeoutMs": 0});
    let schedule = json!({
        "id": "poll", "every": "2s", "run": run_spec,
    });
    let text = json!({"agents": [], "schedules": [schedule]}).to_string();
    fs::write(&config, text).unwrap();
    let env = |command: &mut std::process::Command| {
        command
            .env("HOME", agents.path("home"))
            .env("XDG_STATE_HOME", agents.path("state"))
            .env("TEAMSTER_CODEX_BIN", agents.path("codex"))
            .env("TEAMSTER_STORE", agents.path("store.db"));
    };
    let mut command = teamster(["supervise", config.to_str().unwrap()]);
    env(&mut command);
    let mut supervisor = (command.stderr(Stdio::piped())).spawn().unwrap();
    let mut output = BufReader::new(supervisor.stderr.take().unwrap()).lines();
    // Reported once the run is accepted, and not by a supervisor that is stopped before.
    let started = output.any(|line| line.unwrap().contains("schedule poll: started run "));
    kill(
        Pid::from_raw(supervisor.id().try_into().unwrap()),
        Signal::SIGTERM,
    )
    .unwrap();
    let rest: Vec<String> = output.map(Result::unwrap).collect();
    supervisor.wait().unwrap();
    assert!(started, "{rest:?}");

    let listed = || {
        let mut list = teamster(["runs", "list", "--json"]);
        env(&mut list);
        run(&mut list).json_lines()
    };
    let ended = wait_until(LIMIT, || {
        let runs = listed();
        !runs.is_empty() && runs.iter().all(|run| run["status"] == "success")
    });
    assert!(ended, "{:?}", listed());
    // Its CLI has no names of sessions.
    assert_eq!(listed()[0]["title"], "poll");
}

#[test]
fn schedule_that_is_wrong_is_refused_with_its_line() {
    let agents = Agents::new();
    let config = agents.path("agents.config.json");
    let text = "{\"agents\": [],\n\"schedules\": [\n{\"id\": \"a\", \"cron\": \"61 * * * *\", \
                \"run\": {\"provider\": \"claude\", \"prompt\": \"x\"}}]}";
    fs::write(&config, text).unwrap();
    run(&mut teamster(["supervise", config.to_str().unwrap()]))
        .fails(2, "agents.config.json:3: schedule \"a\": cron: ");
}

#[test]
fn schedule_that_cannot_start_is_a_warning_at_the_start() {
    let agents = Agents::new();
    let config = agents.path("agents.config.json");
    let run = json!({"provider": "nobody", "prompt": "x"});
    let schedule = json!({"id": "rare", "every": "24h", "run": run});
    let text = json!({"agents": [], "schedules": [schedule]}).to_string();
    fs::write(&config, text).unwrap();
    let mut command = teamster(["supervise", config.to_str().unwrap()]);
    command.env("XDG_STATE_HOME", agents.path("state"));
    let mut supervisor = (command.stderr(Stdio::piped())).spawn().unwrap();
    let mut output = BufReader::new(supervisor.stderr.take().unwrap()).lines();
    let first = output.next().unwrap().unwrap();
    assert!(
        first.starts_with("0 agents, 1 schedule; listening on "),
        "{first}"
    );
    let warning = output.next().unwrap().unwrap();
    let expected = "warning: schedule rare: as it is now, it cannot start: ";
    assert!(
        warning.starts_with(expected) && warning.contains("nobody"),
        "{warning}"
    );
    let pid = Pid::from_raw(supervisor.id().try_into().unwrap());
    kill(pid, Signal::SIGTERM).unwrap();
    drop(output);
    supervisor.wait().unwrap();
}
