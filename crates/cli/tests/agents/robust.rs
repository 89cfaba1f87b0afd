//! Mistakes in the configuration, agents that cannot run, and a removed or busy socket.

use std::fs;
use std::os::unix::net::UnixStream;

use serde_json::json;
use teamster_testkit::proc::wait_until;
use teamster_testkit::stand_in::Act;

use crate::agents::LIMIT;
use crate::agents::company::{Company, pid};

#[test]
fn an_agent_wakes_another_from_its_own_directory() {
    let company = Company::new(["a", "b"], |plan| plan.turn([Act::DidWork]));
    let supervisor = company.supervise([]);
    let loop_pid = company.asleep("a");
    company.asleep("b");
    let environment = fs::read(format!("/proc/{loop_pid}/environ")).unwrap();
    let environment = String::from_utf8(environment).unwrap();
    let config = environment
        .split('\0')
        .find_map(|it| it.strip_prefix("AGENTS_CONFIG="));
    let mut command = company.teamster(["agents", "wake", "b"]);
    command.env("AGENTS_CONFIG", config.unwrap());
    let woken = command.current_dir(company.folder("a")).output().unwrap();
    assert_eq!(String::from_utf8(woken.stdout).unwrap(), "b: woken\n");
    let ticks = || company.log("b").matches(" begin (").count();
    assert!(wait_until(LIMIT, || ticks() == 2), "{}", company.log("b"));
    supervisor.stop();
}

#[test]
fn an_unknown_runtime_is_refused_by_the_name_of_its_agent() {
    let company = Company::new(["a"], |plan| plan.turn([Act::DidWork]));
    fs::create_dir(company.folder("c")).unwrap();
    fs::write(company.folder("c").join("AGENTS.md"), "").unwrap();
    let supervisor = company.supervise([]);
    let before = company.asleep("a");
    let config = json!({"agents": [
        {"id": "a", "runtime": "cluade"},
        {"id": "c", "runtime": "cobilot"}
    ]});
    fs::write(company.config(), config.to_string()).unwrap();
    let ended = company.run(["agents", "reload"]);
    assert_eq!((ended.code, &*ended.stdout), (Some(1), ""));
    for why in [
        "a: runtime: unknown provider `cluade`",
        "c: runtime: unknown provider `cobilot`",
    ] {
        ended.stderr_has(why);
    }
    // The running agent continues, and the other one is not started.
    assert_eq!(pid(&company.agent("a")), Some(before));
    let refused = company.wait("c", |it| it["state"] == "failed");
    let reason = refused["reason"].as_str().unwrap();
    assert!(reason.starts_with("runtime: unknown provider `cobilot`"));
    let config = json!({"agents": [
        {"id": "a", "runtime": "Claude"},
        {"id": "c", "runtime": "claude"}
    ]});
    fs::write(company.config(), config.to_string()).unwrap();
    fs::write(company.folder("c").join("CLAUDE.md"), "").unwrap();
    company.good(["agents", "reload"]);
    company.asleep("c");
    supervisor.stop();
}

#[test]
fn removed_socket_is_recreated_and_idle_clients_block_no_others() {
    let company = Company::new(["a"], |plan| plan.turn([Act::DidWork]));
    let supervisor = company.supervise([]);
    let loop_pid = company.asleep("a");
    let socket = company.path(".teamster/supervisor.sock");
    let mut idle = Vec::new();
    for _ in 0..300 {
        idle.push(UnixStream::connect(&socket).unwrap());
    }
    assert_eq!(pid(&company.agent("a")), Some(loop_pid));
    fs::remove_file(&socket).unwrap();
    assert!(wait_until(LIMIT, || socket.exists()));
    assert_eq!(company.good(["agents", "wake", "a"]), "a: woken\n");
    // The whole folder, too.
    fs::remove_dir_all(company.path(".teamster")).unwrap();
    assert!(wait_until(LIMIT, || socket.exists()));
    assert_eq!(company.good(["agents", "stop", "a"]), "a: stopped\n");
    supervisor.stop();
}
