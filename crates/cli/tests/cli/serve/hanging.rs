//! A runner that is stopped (`SIGSTOP`), in the lists of the server.

use std::fs;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use teamster_testkit::proc::wait_until;

use super::client::Served;
use crate::cli::{Claude, LIMIT};

#[test]
fn stopped_runner_is_listed_until_it_continues_or_is_killed() {
    let claude = Claude::silent();
    let served = Served::of(&claude, &[]);
    let id = served.detach();
    let runs = claude.path("state").join("teamster/runs");
    let holder = fs::read(runs.join(&id).join("lock")).unwrap();
    let holder: Value = serde_json::from_slice(&holder).unwrap();
    let runner = Pid::from_raw(holder["pid"].as_i64().unwrap().try_into().unwrap());
    let live = || served.get("/v1/runs?live=true").json()["runs"][0]["live"].clone();
    let is_state = |state: &str| wait_until(LIMIT, || live()["state"] == state);
    assert!(is_state("running"));
    kill(runner, Signal::SIGSTOP).unwrap();
    assert!(is_state("not_answering"));
    assert_eq!(live()["pid"], runner.as_raw());
    kill(runner, Signal::SIGCONT).unwrap();
    assert!(is_state("running"));
    kill(runner, Signal::SIGSTOP).unwrap();
    // Its threads do not stop at once, and one of them could still accept the next command.
    assert!(is_state("not_answering"));
    let killed = served.post(&format!("/v1/runs/{id}/cancel"), &json!({"kill": true}));
    assert_eq!(killed.status, 202, "{}", killed.body);
    assert_eq!(served.ended(&id)["status"], "incomplete");
}
