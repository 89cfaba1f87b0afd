//! What the next loop does for one that was killed.

use std::fs;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use teamster_testkit::proc::{is_alive, wait_gone};
use teamster_testkit::stand_in::Act;

use super::Agent;
use crate::cli::{Running, json_lines, run};

fn ticks(agent: &Agent) -> Vec<Value> {
    json_lines(&fs::read_to_string(agent.path("ticks.jsonl")).unwrap_or_default())
}

#[test]
fn each_tick_has_its_record_and_the_loop_gives_signs_of_life() {
    let agent = Agent::new(|plan| plan.turn([Act::DidWork]));
    let ended = run(agent.command().args(["--ticks", "2"]).env("MIN_SLEEP", "0"));
    assert_eq!(ended.code, Some(0), "{}", ended.stdout);
    let ticks = ticks(&agent);
    let field = |name: &str| ticks.iter().map(|it| it[name].clone()).collect::<Vec<_>>();
    assert_eq!(field("tick"), [1, 2]);
    assert_eq!(field("prompt"), ["full", "light"]);
    assert_eq!(field("result"), ["completed", "completed"]);
    assert_eq!(ticks[0]["flags"], serde_json::json!(["did-work"]));
    let usage = json_lines(&fs::read_to_string(agent.path("usage.jsonl")).unwrap());
    for (tick, used) in ticks.iter().zip(&usage) {
        for name in [
            "session_id",
            "input_tokens",
            "output_tokens",
            "cost_usd",
            "cost_source",
        ] {
            assert_eq!(tick[name], used[name], "{name}: {tick}");
        }
        assert!(tick["begin"].as_str() < tick["end"].as_str(), "{tick}");
    }
    assert_eq!(usage.len(), 2);
    assert!(agent.json("heartbeat.json")["epoch_ms"].as_i64() > Some(0));
}

#[test]
fn leftovers_of_a_killed_loop_are_ended_and_its_tick_recorded() {
    let agent = Agent::new(|plan| plan.turn([Act::Child, Act::Hang]));
    let mut running = Running::start(&mut agent.command());
    let left = || agent.pids().len() >= 2;
    agent.waits_for("a child of the agent", left);
    let pids = agent.pids();
    // The guard first: it would do what the next loop is to do.
    let loop_pid = running.child.id();
    for guard in children(loop_pid) {
        let command = fs::read_to_string(format!("/proc/{guard}/cmdline")).unwrap_or_default();
        if command.contains("--teamster-guard") {
            kill(Pid::from_raw(guard.cast_signed()), Signal::SIGKILL).unwrap();
        }
    }
    running.signal(Signal::SIGKILL);
    running.wait();
    let child = *pids.last().unwrap();
    assert!(is_alive(child), "it is not ended with the loop");
    let ended = run(agent.command().args(["--ticks", "1"]));
    assert_eq!(ended.code, Some(0), "{}", ended.stdout);
    assert!(wait_gone(child, crate::cli::LIMIT), "{}", agent.log());
    let ticks = ticks(&agent);
    let results: Vec<_> = ticks
        .iter()
        .map(|it| it["result"].as_str().unwrap())
        .collect();
    assert_eq!(results[0], "killed");
    assert_eq!(ticks[0]["pid"], loop_pid);
    assert_eq!(results.len(), 2);
}

fn children(of: u32) -> Vec<u32> {
    let file = format!("/proc/{of}/task/{of}/children");
    let all: Vec<u32> = (fs::read_dir(format!("/proc/{of}/task"))
        .into_iter()
        .flatten()
        .flatten())
    .filter_map(|task| fs::read_to_string(task.path().join("children")).ok())
    .flat_map(|text| {
        text.split_whitespace()
            .map(|it| it.parse().unwrap())
            .collect::<Vec<_>>()
    })
    .collect();
    assert!(!all.is_empty(), "{file}");
    all
}

#[test]
fn a_session_can_be_kept_over_an_end_in_order() {
    for (keep, goes_on) in [("0", false), ("1", true)] {
        let agent = Agent::new(|plan| plan.turn([Act::DidWork]));
        let play = || {
            let mut command = agent.command();
            let ended = run(command.args(["--ticks", "1"]).env("KEEP_SESSION", keep));
            assert_eq!(ended.code, Some(0), "{}", ended.stdout);
        };
        play();
        assert_eq!(agent.path("session.json").exists(), goes_on);
        play();
        let ticks = ticks(&agent);
        let sessions: Vec<_> = ticks.iter().map(|it| &it["session_id"]).collect();
        assert_eq!(sessions[0] == sessions[1], goes_on, "{}", agent.log());
    }
}
