//! The supervisor: its signals, its end, and its successor.

use std::fs;
use std::io::Write;

use nix::sys::signal::Signal;
use serde_json::json;
use teamster_testkit::proc::{is_alive, wait_until};
use teamster_testkit::stand_in::Act;

use crate::agents::LIMIT;
use crate::agents::company::{Company, pid};

#[test]
fn supervisor_stops_its_loops_and_ends() {
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let company = Company::new(["a", "b"], |plan| plan.turn([Act::DidWork]));
        let supervisor = company.supervise([]);
        let pids = [company.asleep("a"), company.asleep("b")];
        supervisor.signal(signal);
        assert_eq!(supervisor.end(), Some(0));
        assert!(pids.iter().all(|pid| !is_alive(*pid)));
        let left = || company.processes();
        assert!(wait_until(LIMIT, || left().is_empty()), "{:?}", left());
        for id in ["a", "b"] {
            let log = company.log(id);
            assert!(log.contains("agent-loop exit"), "in order: {log}");
            assert!(log.ends_with("supervisor: stopped\n"), "{log}");
            // The loop's stdout is the log, and each line is written once.
            assert_eq!(log.matches("agent-loop start").count(), 1, "{log}");
        }
    }
}

#[test]
fn agents_can_be_kept() {
    let company = Company::new(["a"], |plan| plan.turn([Act::DidWork]));
    let supervisor = company.supervise(["--keep-agents"]);
    let first = company.asleep("a");
    supervisor.stop();
    assert!(is_alive(first));
    let agent = company.agent("a");
    assert_eq!(
        (pid(&agent), &agent["state"]),
        (Some(first), &json!("running"))
    );
    let supervisor = company.supervise([]);
    let agent = company.agent("a");
    assert_eq!(
        (pid(&agent), &agent["adopted"]),
        (Some(first), &json!(true))
    );
    let found = format!("a: already running, pid {first}");
    assert!(company.output().contains(&found));
    assert_eq!(company.log("a").matches("agent-loop start").count(), 1);
    supervisor.stop();
    assert!(!is_alive(first));
}

#[test]
fn output_may_stay_unread() {
    use nix::fcntl::{FcntlArg, OFlag, fcntl};

    let company = Company::new(["a"], |plan| plan.turn([Act::DidWork]));
    let (_unread, mut full) = std::io::pipe().unwrap();
    fcntl(&full, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).unwrap();
    while full.write(&[b'x'; 512]).is_ok() {}
    fcntl(&full, FcntlArg::F_SETFL(OFlag::empty())).unwrap();
    let supervisor = company.supervise_into(full);
    let pid = company.asleep("a");
    assert_eq!(company.good(["agents", "stop", "a"]), "a: stopped\n");
    assert!(!is_alive(pid));
    supervisor.stop();
}

#[test]
fn sighup_reloads_the_configuration() {
    let company = Company::new(["a"], |plan| plan.turn([Act::DidWork]));
    let supervisor = company.supervise([]);
    let first = company.asleep("a");
    fs::create_dir(company.folder("b")).unwrap();
    fs::write(company.folder("b").join("AGENTS.md"), "").unwrap();
    let config = json!({"agents": [{"id": "a", "runtime": "claude"}, {"id": "b"}]});
    fs::write(company.config(), config.to_string()).unwrap();
    supervisor.signal(Signal::SIGHUP);
    assert!(wait_until(LIMIT, || {
        company
            .output()
            .contains("configuration read again: 2 agents")
    }));
    company.wait("b", |it| it["state"] == "running");
    assert_eq!(pid(&company.agent("a")), Some(first));
    supervisor.stop();
}

#[test]
fn a_broken_configuration_does_not_prevent_a_stop() {
    let company = Company::new(["a"], |plan| plan.turn([Act::DidWork]));
    let supervisor = company.supervise([]);
    let loop_pid = company.asleep("a");
    fs::write(company.config(), "{").unwrap();
    company
        .run(["agents", "reload"])
        .fails(2, "agents.config.json:1: invalid JSON");
    assert_eq!(pid(&company.agent("a")), Some(loop_pid));
    assert!(
        company
            .good(["agents", "logs", "a"])
            .contains("agent-loop start")
    );
    assert_eq!(company.good(["agents", "stop", "a"]), "a: stopped\n");
    supervisor.stop();
}

#[test]
fn an_unusable_configuration_or_folder_is_refused() {
    let company = Company::new(["a"], |plan| plan.turn([Act::DidWork]));
    let supervisor = company.supervise([]);
    let ended = company.run(["supervise"]);
    assert_eq!(ended.code, Some(2));
    let pid = supervisor.pid();
    ended.stderr_has(
        &format!(
            "already running in {}, pid {pid}",
            company.path("").display()
        )
        .replace("/,", ","),
    );
    supervisor.stop();

    fs::write(company.config(), "{\"agents\": [\n").unwrap();
    company.run(["supervise"]).only_says(2, ":2: invalid JSON");
    assert_eq!(company.run(["agents", "status"]).code, Some(2));
}
