//! Starts, stops and crashes.

use std::fs;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use teamster_api::agents::{AgentState, Command, Event, Selection};
use teamster_process::{ProcessIdentity, ProcessSignal};
use teamster_testkit::proc::{is_alive, wait_gone, wait_until};

use crate::supervisor::LIMIT;
use crate::supervisor::company::{Company, GOOD, numbers, of, settings};

#[test]
fn a_loop_is_started_stopped_and_started_again() {
    let company = Company::new([("a", GOOD), ("b", GOOD)]);
    let supervisor = company.supervise();
    let first = company.running("a");
    let other = company.running("b");
    let last_start = fs::read_to_string(company.folder("a").join(".orchestrator/last-start.json"));
    let last_start: serde_json::Value = serde_json::from_str(&last_start.unwrap()).unwrap();
    let status = company.agent("a");
    assert_eq!(
        last_start,
        json!({"epoch_ms": status.started_at_ms.unwrap(), "pid": first})
    );

    company.ask(Command::Stop(of("a"))).unwrap();
    let status = company.wait("a", |it| it.state == AgentState::Stopped);
    assert_eq!((status.pid, status.enabled), (None, false));
    assert_eq!(status.reason.as_deref(), Some("stopped"));
    assert!(status.stopped_in_order);
    assert!(!is_alive(first));
    assert!(is_alive(other));

    company.ask(Command::Start(of("a"))).unwrap();
    let second = company.running("a");
    assert_eq!(company.starts("a"), [first, second]);

    company.ask(Command::Restart(of("a"))).unwrap();
    company.wait("a", |it| it.pid.is_some_and(|pid| pid != second));
    let third = company.running("a");
    assert!(!is_alive(second));
    assert_eq!(company.starts("b"), [other]);

    supervisor.end();
    assert!(!is_alive(third) && !is_alive(other));
    // The end of the supervisor is no requested stop.
    let state = company.state();
    assert_eq!(state["agents"]["a"]["enabled"], true);
    assert_eq!(state["agents"]["a"].get("process"), None);
    assert!(!company.own("supervisor.sock").exists());
}

#[test]
fn crashing_loop_is_restarted_after_growing_delays() {
    let company = Company::new([("a", "sleep 0.01; exit 3\n")]);
    let mut settings = settings();
    settings.policy.longest_delay = Duration::from_millis(200);
    let supervisor = company.supervise_with(&settings).unwrap();
    let began = Instant::now();
    assert!(wait_until(LIMIT, || company.starts("a").len() >= 4));
    // 50, 100 and 200 ms.
    assert!(began.elapsed() >= Duration::from_millis(350), "{began:?}");
    let status = company.wait("a", |it| it.state == AgentState::BackingOff);
    assert_eq!(status.reason.as_deref(), Some("exited with code 3"));
    assert!(
        status.restarts >= 3 && status.retry_at_ms.is_some(),
        "{status:?}"
    );
    supervisor.end();
    let starts = company.starts("a").len();
    // The loop's output and its exit are in one log.
    let log = fs::read_to_string(company.folder("a").join(".orchestrator/agent-loop.log")).unwrap();
    let reported = log
        .matches("supervisor: exited with code 3; restarting in")
        .count();
    assert!(reported >= 3 && starts >= 4, "{log}");
}

#[test]
fn killed_loop_is_restarted_without_leftovers() {
    let company = Company::new([(
        "a",
        "sleep 1000 &\necho $! >>children\nwhile :; do sleep 0.02; done\n",
    )]);
    let supervisor = company.supervise();
    let first = company.running("a");
    let children = company.folder("a").join("children");
    assert!(wait_until(LIMIT, || !numbers(&children).is_empty()));
    let child = numbers(&children)[0];
    let process = ProcessIdentity::of(first).unwrap();
    process.signal(ProcessSignal::Kill).unwrap();
    company.wait("a", |it| it.pid.is_some_and(|pid| pid != first));
    let second = company.running("a");
    assert!(!is_alive(child), "the group of the old one lives");
    let status = company.agent("a");
    assert_eq!(status.restarts, 1);
    assert_eq!(status.reason.as_deref(), Some("killed by SIGKILL"));
    assert_eq!(company.starts("a"), [first, second]);
    supervisor.end();
    assert!(!is_alive(second));
}

#[test]
fn a_stubborn_loop_is_killed_with_its_group_when_its_time_is_up() {
    let company = Company::new([(
        "a",
        "trap '' TERM\nsleep 1000 &\necho $! >>children\nwhile :; do sleep 0.02; done\n",
    )]);
    let mut settings = settings();
    settings.policy.grace = Duration::from_millis(300);
    let supervisor = company.supervise_with(&settings).unwrap();
    let pid = company.running("a");
    let children = company.folder("a").join("children");
    assert!(wait_until(LIMIT, || !numbers(&children).is_empty()));
    let began = Instant::now();
    let status = company.ask(Command::Stop(of("a"))).unwrap();
    assert_eq!(status.agents[0].state, AgentState::Stopping);
    let status = company.wait("a", |it| it.state == AgentState::Stopped);
    assert!(began.elapsed() >= Duration::from_millis(300));
    assert_eq!(
        status.reason.as_deref(),
        Some("stopped; it had to be killed")
    );
    assert!(!status.stopped_in_order);
    assert!(!is_alive(pid));
    assert!(wait_gone(numbers(&children)[0], LIMIT));
    supervisor.end();
}

#[test]
fn the_second_request_to_end_does_not_wait() {
    let company = Company::new([("a", "trap '' TERM\nwhile :; do sleep 0.02; done\n")]);
    let mut settings = settings();
    settings.policy.grace = Duration::from_hours(1);
    let supervisor = company.supervise_with(&settings).unwrap();
    let pid = company.running("a");
    supervisor.handle.end();
    company.wait("a", |it| it.state == AgentState::Stopping);
    let error = company.ask(Command::Start(of("a"))).unwrap_err();
    assert_eq!(error.to_string(), "the supervisor is ending");
    supervisor.end();
    assert!(!is_alive(pid));
}

#[test]
fn a_clean_exit_and_an_unusable_loop_are_not_restarted() {
    let company = Company::new([("order", "exit 0\n"), ("unusable", "exit 2\n")]);
    let supervisor = company.supervise();
    let status = company.wait("order", |it| it.state == AgentState::Ended);
    assert_eq!(status.reason.as_deref(), Some("exited cleanly"));
    let status = company.wait("unusable", |it| it.state == AgentState::Failed);
    let reason = status.reason.unwrap();
    assert!(
        reason.starts_with("exited with code 2: its directory or a setting"),
        "{reason}"
    );
    supervisor.end();
    assert_eq!(company.starts("order").len(), 1);
    assert_eq!(company.starts("unusable").len(), 1);
    // The agents are still enabled, so the next supervisor starts them.
    let supervisor = company.supervise();
    assert!(wait_until(LIMIT, || company.starts("order").len() == 2));
    assert!(wait_until(LIMIT, || company.starts("unusable").len() == 2));
    supervisor.end();
}

#[test]
fn an_agent_without_instructions_is_refused_until_it_has_some() {
    let company = Company::new([("a", GOOD), ("b", GOOD)]);
    fs::remove_file(company.folder("a").join("AGENTS.md")).unwrap();
    let supervisor = company.supervise();
    company.running("b");
    let status = company.agent("a");
    assert_eq!(status.state, AgentState::Failed);
    let reason = status.reason.unwrap();
    assert!(
        reason.starts_with("the instructions file AGENTS.md is missing in "),
        "{reason}"
    );
    assert!(company.starts("a").is_empty());
    fs::write(company.folder("a").join("AGENTS.md"), "").unwrap();
    company.ask(Command::Start(of("a"))).unwrap();
    company.running("a");
    supervisor.end();
}

#[test]
fn a_directory_may_appear_late_and_vanish() {
    // A loop exits with 2 when its directory is gone.
    let script = "trap 'exit 0' TERM\nwhile [ -d ../a ]; do sleep 0.02; done\nexit 2\n";
    let company = Company::new([("a", script)]);
    let (folder, elsewhere) = (company.folder("a"), company.folder("elsewhere"));
    fs::rename(&folder, &elsewhere).unwrap();
    let mut settings = settings();
    settings.policy.look_again = Duration::from_millis(50);
    let supervisor = company.supervise_with(&settings).unwrap();
    let status = company.wait("a", |it| it.state == AgentState::Failed);
    let why = status.last_error.unwrap().message;
    assert!(why.contains("is missing: create it"), "{why}");
    assert!(status.retry_at_ms.is_some());
    fs::rename(&elsewhere, &folder).unwrap();
    company.running("a");
    fs::rename(&folder, &elsewhere).unwrap();
    let status = company.wait("a", |it| it.state == AgentState::Failed);
    let why = status.reason.unwrap();
    assert!(why.contains("is missing: create it"), "{why}");
    fs::rename(&elsewhere, &folder).unwrap();
    company.running("a");
    // A repeated obstacle is not reported again.
    let reported = supervisor.events.try_iter();
    let reported = reported.filter(|it| matches!(it, Event::Trouble { .. }));
    assert_eq!(reported.count(), 2);
    supervisor.end();
}

#[test]
fn a_crash_looping_agent_is_failing() {
    let company = Company::new([("a", "[ $(wc -l <starts) -gt 2 ] || exit 1\nsleep 1000\n")]);
    let supervisor = company.supervise();
    let status = company.wait("a", |it| it.pid.is_some() && it.restarts == 2);
    assert_eq!(status.state, AgentState::Failing);
    assert!(status.state.is_running());
    let error = status.last_error.unwrap();
    assert_eq!((&*error.message, error.kind), ("exited with code 1", None));
    assert!(error.at_ms > 0);
    supervisor.end();
}

#[test]
fn stops_are_remembered() {
    let company = Company::new([("a", GOOD), ("b", GOOD), ("c", GOOD)]);
    let supervisor = company.supervise();
    company.running("c");
    company.ask(Command::Stop(of("a"))).unwrap();
    supervisor.end();
    let starts = company.starts("a").len();

    let supervisor = company.supervise();
    company.running("b");
    assert_eq!(company.agent("a").state, AgentState::Stopped);
    company.ask(Command::Stop(Selection::all())).unwrap();
    supervisor.end();
    assert_eq!(company.starts("a").len(), starts);
    let others = (company.starts("b").len(), company.starts("c").len());

    let supervisor = company.supervise();
    let status = company.ask(Command::Status).unwrap();
    assert!(!status.enabled);
    let stopped = |it: &teamster_api::agents::AgentStatus| {
        it.state == AgentState::Stopped && it.pid.is_none()
    };
    assert!(status.agents.iter().all(stopped), "{status:?}");
    // With the master switch off, a start enables only that agent.
    company.ask(Command::Start(of("b"))).unwrap();
    company.running("b");
    let status = company.ask(Command::Status).unwrap();
    assert!(status.enabled && stopped(&status.agents[0]) && stopped(&status.agents[2]));
    assert_eq!(company.starts("c").len(), others.1);
    company.ask(Command::Start(Selection::all())).unwrap();
    for id in ["a", "b", "c"] {
        company.running(id);
    }
    supervisor.end();
}

#[test]
fn concurrent_commands_never_start_two_loops() {
    const CLIENTS: usize = 4;

    let company = Company::new([("a", GOOD)]);
    let supervisor = company.supervise();
    company.running("a");
    let until = Instant::now() + Duration::from_millis(1500);
    let two = AtomicBool::new(false);
    let sent = AtomicUsize::new(0);
    std::thread::scope(|threads| {
        for client in 0..CLIENTS {
            let (company, sent) = (&company, &sent);
            threads.spawn(move || {
                for round in client.. {
                    if Instant::now() >= until {
                        return;
                    }
                    let command = match round % 3 {
                        0 => Command::Start(of("a")),
                        1 => Command::Restart(of("a")),
                        _ => Command::Stop(of("a")),
                    };
                    company.ask(command).unwrap();
                    sent.fetch_add(1, Ordering::Relaxed);
                    std::thread::sleep(Duration::from_millis(7));
                }
            });
        }
        while Instant::now() < until {
            // Loops that have begun and have not been reaped.
            let mut alive = company.starts("a");
            alive.retain(|pid| is_alive(*pid));
            two.fetch_or(alive.len() > 1, Ordering::Relaxed);
        }
    });
    assert!(!two.into_inner());
    assert!(sent.into_inner() > 3 * CLIENTS);
    company.ask(Command::Start(of("a"))).unwrap();
    let pid = company.running("a");
    let starts = company.starts("a");
    assert!(starts.len() >= 2, "{starts:?}");
    supervisor.end();
    assert!(!is_alive(pid));
}
