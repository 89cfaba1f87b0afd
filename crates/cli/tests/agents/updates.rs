//! Updates from a supervisor, and loops that it did not start.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use teamster_testkit::proc::{is_alive, wait_until};
use teamster_testkit::stand_in::Act;

use crate::agents::LIMIT;
use crate::agents::company::Company;

#[test]
fn subscribers_get_each_change_and_the_history_is_stored() {
    let company = Company::new(["a"], |plan| plan.turn([Act::DidWork, Act::Status]));
    let supervisor = company.supervise([]);
    let loop_pid = company.asleep("a");
    let agent = company.agent("a");
    assert_eq!(agent["lastTick"]["result"], "completed");
    assert_eq!(agent["lastTick"]["pid"], loop_pid);
    assert!(agent["status"].is_object(), "{agent}");
    let started = agent["startedAtMs"].as_u64().unwrap();
    assert!(agent["heartbeatMs"].as_u64().unwrap() >= started, "{agent}");

    let mut command = company.teamster(["agents", "watch", "--json"]);
    let mut watching = command.stdout(Stdio::piped()).spawn().unwrap();
    let updates = BufReader::new(watching.stdout.take().unwrap()).lines();
    let mut updates = updates.map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
    // The first update is the current state.
    assert_eq!(updates.next().unwrap()["status"]["id"], "a");
    company.good(["agents", "wake", "a"]);
    let is_tick = |update: &Value| {
        update["update"] == "agent" && update["status"]["lastTick"]["tick"].as_u64() > Some(1)
    };
    assert!(updates.any(|update| is_tick(&update)));
    assert_eq!(company.good(["agents", "stop", "a"]), "a: stopped\n");
    let stopped = json!({"event": "stopped", "agent": "a"});
    assert!(updates.any(|update| update["happened"] == stopped));
    supervisor.stop();
    assert!(updates.any(|update| update["happened"]["event"] == "ending"));
    assert!(watching.wait().unwrap().success());

    let history = fs::read_to_string(company.path(".teamster/history.jsonl")).unwrap();
    let history: Vec<Value> = (history.lines())
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let events: Vec<_> = history
        .iter()
        .map(|it| it["event"].as_str().unwrap())
        .collect();
    assert_eq!(events, ["listening", "started", "stopped", "ending"]);
    assert_eq!(history[1]["pid"], loop_pid);
}

#[test]
fn last_start_is_restored_after_a_refused_attempt() {
    let company = Company::new(["a"], |plan| plan.turn([Act::DidWork]));
    let supervisor = company.supervise([]);
    let loop_pid = company.asleep("a");
    let file = company.folder("a").join(".orchestrator/last-start.json");
    let right = fs::read_to_string(&file).unwrap();
    // A dashboard starts a loop and writes this file.
    let mut second = company.teamster(["loop"]);
    let mut second = second
        .arg(company.folder("a"))
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let attempt = json!({"epoch_ms": 1, "pid": second.id()}).to_string();
    fs::write(&file, attempt).unwrap();
    assert_eq!(second.wait().unwrap().code(), Some(2));
    assert!(wait_until(LIMIT, || fs::read_to_string(&file).unwrap() == right));
    assert!(is_alive(loop_pid));
    kill(Pid::from_raw(loop_pid.cast_signed()), Signal::SIGUSR1).unwrap();
    assert!(wait_until(LIMIT, || company.log("a").contains("tick 2 ok")));
    supervisor.stop();
}
