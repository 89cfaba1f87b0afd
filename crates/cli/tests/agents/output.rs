//! Status and logs of agents.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use teamster_testkit::stand_in::Act;

use crate::agents::company::Company;

#[test]
fn follow_waits_for_a_missing_log() {
    let company = Company::new(["a"], |plan| plan);
    let mut command = company.teamster(["agents", "logs", "a", "--follow"]);
    let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut following = command.spawn().unwrap();
    let printed = BufReader::new(following.stderr.take().unwrap()).lines();
    let is_waiting = |line: &String| line.ends_with("waiting for it");
    assert!(printed.map(Result::unwrap).any(|line| is_waiting(&line)));
    let folder = company.folder("a").join(".orchestrator");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("agent-loop.log"), "one\n").unwrap();
    let mut lines = BufReader::new(following.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "one");
    following.kill().unwrap();
    following.wait().unwrap();
}

#[test]
fn a_write_error_is_an_error() {
    let company = Company::new(["a"], |plan| plan);
    for more in [None, Some("--json")] {
        let args = ["agents", "status"].into_iter().chain(more);
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let ended = company.teamster(args).stdout(full).output().unwrap();
        let printed = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(ended.status.code(), Some(1), "{printed}");
        assert!(
            printed.ends_with("cannot write the output: No space left on device (os error 28)\n"),
            "{printed}"
        );
    }
}

#[test]
fn a_loop_that_was_started_by_hand_is_shown() {
    let company = Company::new(["a"], |plan| plan.turn([Act::DidWork]));
    let folder = company.folder("a");
    let mut by_hand = company.teamster(["loop"]);
    let mut by_hand = by_hand.arg(folder).stdout(Stdio::null()).spawn().unwrap();
    let seen = company.asleep("a");
    assert_eq!(seen, by_hand.id());
    by_hand.kill().unwrap();
    by_hand.wait().unwrap();
    assert_eq!(company.agent("a")["state"], "stopped");
}

#[test]
fn why_an_agent_does_nothing_is_reported() {
    let company = Company::new(["a", "b"], |plan| plan.turn([Act::DidWork]));
    fs::write(company.folder("b").join(".env"), "MIN_SLEEP=soon\n").unwrap();
    fs::remove_file(company.path("bin").join("claude")).unwrap();
    let supervisor = company.supervise([]);
    let agent = company.wait("a", |it| it["activity"]["state"] == "sleeping");
    let reason = agent["activity"]["reason"].as_str().unwrap();
    assert!(reason.starts_with("waiting after "), "{reason}");
    assert!(reason.contains("; the last error: "), "{reason}");
    assert!(reason.contains("`claude`"), "{reason}");
    assert_eq!(agent["state"], "failing");
    assert_eq!(agent["lastError"]["kind"], "not_found");
    let shown = company.run(["agents", "status", "a"]);
    assert_eq!(shown.code, Some(1));
    let (head, row) = shown.stdout.split_once('\n').unwrap();
    let column = |name: &str| head.find(name).unwrap();
    assert!(row[column("STATE")..].starts_with("failing, "), "{row}");
    assert!(row[column("LAST ERROR")..].contains("`claude`"), "{row}");
    let agent = company.wait("b", |it| it["state"] == "failed");
    assert_eq!(
        agent["reason"],
        "exited with code 2: MIN_SLEEP: expected a whole number of seconds, not `soon`"
    );
    supervisor.stop();
}
