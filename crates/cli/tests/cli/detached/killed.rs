//! Runner, agent, guard and reader killed at any moment, alone and all at once: nothing is lost, nothing is run
//! twice, nothing is left alive.
#![cfg(target_os = "linux")]

use std::fs;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use teamster_testkit::proc::{is_alive, wait_gone, wait_until};

use super::requests::{command, detach};
use crate::cli::chat::Agent;
use crate::cli::{LIMIT, Running, json_lines};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Victim {
    Runner,
    Agent,
    Guard,
    Reader,
}

use Victim::{Guard, Reader, Runner};

/// The processes that are killed together, in this order.
const PLANS: [&[Victim]; 7] = [
    &[Runner],
    &[Victim::Agent],
    &[Guard],
    &[Reader],
    &[Guard, Runner],
    &[Runner, Victim::Agent],
    &[Reader, Guard, Victim::Agent, Runner],
];

/// Delays between the start of the agent and the kill, in microseconds.
const DELAYS: [u64; 4] = [0, 1_500, 6_000, 40_000];

fn kill_pid(pid: u32) {
    // It may have ended with another one just now.
    let _ = kill(Pid::from_raw(pid.cast_signed()), Signal::SIGKILL);
}

/// The children of a process, with their arguments.
fn children(of: u32) -> Vec<(u32, String)> {
    let tasks = fs::read_dir(format!("/proc/{of}/task"))
        .into_iter()
        .flatten();
    let lists = tasks
        .flatten()
        .filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    let pids: Vec<u32> = lists
        .flat_map(|list| {
            let pids = list.split_whitespace().filter_map(|pid| pid.parse().ok());
            pids.collect::<Vec<_>>()
        })
        .collect();
    let about = |pid: u32| fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    pids.into_iter().map(|pid| (pid, about(pid))).collect()
}

fn log_of(agent: &Agent, id: &str) -> String {
    let runs = agent.path("state").join("teamster/runs");
    fs::read_to_string(runs.join(id).join("events.ndjson")).unwrap()
}

fn killed(plan: &[Victim], delay: Duration) {
    let when = format!("{plan:?} after {delay:?}");
    let agent = Agent::new();
    let id = detach(&agent, &["wait"]);
    let mut reader = Running::start(&mut agent.command(["attach", &id, "--json"]));
    // Its parent is written right after its start, by the agent itself.
    let started = || fs::read_to_string(agent.path("here")).is_ok_and(|it| it.ends_with('\n'));
    assert!(wait_until(LIMIT, started), "{when}");
    let begun = Instant::now();
    while begun.elapsed() < delay {
        std::hint::spin_loop();
    }
    let runner = agent.parent();
    let all = children(runner);
    let is_guard = |about: &str| about.contains("--teamster-guard");
    let guards: Vec<u32> = (all.iter().filter(|(_, about)| is_guard(about)))
        .map(|(pid, _)| *pid)
        .collect();
    let agents: Vec<u32> = (all.iter().filter(|(_, about)| !is_guard(about)))
        .map(|(pid, _)| *pid)
        .collect();
    assert!(!guards.is_empty() && !agents.is_empty(), "{when}: {all:?}");
    for victim in plan {
        match victim {
            Runner => kill_pid(runner),
            Victim::Agent => agents.iter().copied().for_each(kill_pid),
            Guard => guards.iter().copied().for_each(kill_pid),
            Reader => kill_pid(reader.child.id()),
        }
    }
    if !plan.contains(&Runner) && !plan.contains(&Victim::Agent) {
        // The run continues undisturbed.
        assert_eq!(
            command(&agent, &["cancel", &id, "--kill"]).code,
            Some(0),
            "{when}"
        );
    }
    let code = command(&agent, &["wait", &id]).code;
    let place = |victim| plan.iter().position(|it| *it == victim);
    let expected: &[i32] = match (place(Victim::Agent), place(Runner)) {
        // The runner may complete the log of the failed run before it is killed.
        (Some(agent), Some(runner)) if agent < runner => &[1, 5],
        (_, Some(_)) => &[5],
        (Some(_), None) => &[1],
        (None, None) => &[130],
    };
    let is_expected = code.is_some_and(|code| expected.contains(&code));
    assert!(is_expected, "{when}: {code:?}: {}", log_of(&agent, &id));

    let log = log_of(&agent, &id);
    super::assert_no_gaps(&log);
    let entries = json_lines(&log);
    let dones = entries.iter().filter(|entry| entry["type"] == "done");
    assert_eq!(dones.count(), 1, "{when}: {log}");
    // What a reader was shown is there.
    let shown = reader.end();
    assert!(log.starts_with(&shown.stdout), "{when}: {}", shown.stdout);
    if !plan.contains(&Reader) {
        assert_eq!((shown.code, &shown.stdout), (code, &log), "{when}");
    }
    // The prompt reached one agent, at most once.
    assert_eq!(agent.starts().len(), 1, "{when}");
    assert!(
        agent.received().matches(r#""content":"wait""#).count() <= 1,
        "{when}"
    );
    for pid in agents.into_iter().chain(guards).chain([runner]) {
        assert!(wait_gone(pid, LIMIT), "{when}: {pid} is left");
    }
    // Its session and its id are free, and the log can go.
    let forgotten = command(&agent, &["runs", "forget", &id]);
    assert_eq!(forgotten.code, Some(0), "{when}: {}", forgotten.stderr);
}

/// The guard would end it, but is killed as well.
#[test]
fn the_next_reader_ends_what_a_killed_agent_left() {
    let agent = Agent::new();
    let id = detach(&agent, &["child"]);
    let child = || fs::read_to_string(agent.path("child")).unwrap_or_default();
    assert!(wait_until(LIMIT, || child().ends_with('\n')));
    let child = child().trim_end().parse().unwrap();
    let runner = agent.parent();
    let (guards, agents): (Vec<_>, Vec<_>) = children(runner)
        .into_iter()
        .partition(|(_, about)| about.contains("--teamster-guard"));
    for (pid, _) in &guards {
        kill_pid(*pid);
    }
    kill_pid(runner);
    for (pid, _) in guards.iter().chain(&agents) {
        assert!(wait_gone(*pid, LIMIT));
    }
    assert!(is_alive(child));
    assert_eq!(command(&agent, &["wait", &id]).code, Some(5));
    assert!(wait_gone(child, LIMIT), "{child} is left");
}

/// A run that works, and a session at rest, whose log is empty.
#[test]
fn a_runner_whose_folder_is_removed_ends_with_its_agent() {
    let starts: [&[&str]; 2] = [
        &["run", "--detach", "--artifact=file", "claude", "wait"],
        &["chat", "--detach", "claude"],
    ];
    for start in starts {
        let agent = Agent::new();
        let started = command(&agent, start).ok();
        let runs = agent.path("state").join("teamster/runs");
        let run = runs.join(started.stdout.trim_end());
        let holder: Value = serde_json::from_slice(&fs::read(run.join("lock")).unwrap()).unwrap();
        let runner: u32 = holder["pid"].as_u64().unwrap().try_into().unwrap();
        assert!(is_alive(runner), "{start:?}");
        if start.contains(&"wait") {
            assert!(wait_until(LIMIT, || agent.received().contains("wait")));
        }
        let processes = children(runner);
        fs::remove_dir_all(&run).unwrap();
        for pid in processes.into_iter().map(|(pid, _)| pid).chain([runner]) {
            assert!(wait_gone(pid, LIMIT), "{start:?}: {pid} is left");
        }
        assert!(!run.exists(), "{start:?}");
    }
}

#[test]
fn killed_at_any_moment_nothing_is_lost_run_twice_or_left_alive() {
    std::thread::scope(|scope| {
        for delay in DELAYS {
            scope.spawn(move || {
                for plan in PLANS {
                    killed(plan, Duration::from_micros(delay));
                }
            });
        }
    });
}
