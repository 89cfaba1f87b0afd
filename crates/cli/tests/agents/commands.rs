//! Commands with and without a running supervisor.

use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use teamster_testkit::proc::{is_alive, wait_until};
use teamster_testkit::stand_in::Act;

use crate::agents::LIMIT;
use crate::agents::company::{Company, pid};

#[test]
fn start_stop_wake_restart() {
    let company = Company::new(["a", "b"], |plan| plan.turn([Act::DidWork]));
    let supervisor = company.supervise([]);
    let first = company.asleep("a");
    let other = company.asleep("b");

    let table = company.good(["agents", "status"]);
    let lines: Vec<_> = table.lines().collect();
    assert!(lines[0].starts_with("AGENT  ALIAS  STATE"), "{table}");
    assert!(
        lines[1].starts_with("a      @a     sleeping until "),
        "{table}"
    );
    assert!(lines[1].contains(&first.to_string()), "{table}");

    let ticks = |id: &str| company.log(id).matches(" begin (").count();
    assert_eq!(ticks("a"), 1);
    assert_eq!(company.good(["agents", "wake", "a"]), "a: woken\n");
    assert!(
        wait_until(LIMIT, || ticks("a") == 2),
        "{}",
        company.log("a")
    );
    assert_eq!(ticks("b"), 1);
    company.asleep("a");

    assert_eq!(company.good(["agents", "stop", "a"]), "a: stopped\n");
    assert!(!is_alive(first) && is_alive(other));
    let ended = company.run(["agents", "wake", "a"]);
    assert_eq!(ended.code, Some(1));
    assert_eq!(
        ended.stderr,
        "error: a is not running: start it with `teamster agents start`\n"
    );
    let started = company.good(["agents", "start", "a"]);
    let second = pid(&company.agent("a")).unwrap();
    assert_eq!(started, format!("a: runs, pid {second}\n"));
    // Starting a running agent is no error and changes nothing.
    assert_eq!(company.good(["agents", "start", "a"]), started);
    let restarted = company.good(["agents", "restart", "a", "b"]);
    let now = ["a", "b"].map(|id| pid(&company.agent(id)).unwrap());
    assert_eq!(
        restarted,
        format!("a: runs, pid {}\nb: runs, pid {}\n", now[0], now[1])
    );
    assert!(!is_alive(second) && !is_alive(other));

    let stopped = company.good(["agents", "stop", "--all"]);
    assert_eq!(stopped, "a: stopped\nb: stopped\n");
    // The switch outlives the supervisor.
    supervisor.stop();
    let supervisor = company.supervise([]);
    assert_eq!(company.agent("a")["state"], "stopped");
    let ended = company.run(["agents", "status"]);
    ended.stderr_begins("all agents are switched off");
    company.good(["agents", "start", "--all"]);
    for id in ["a", "b"] {
        company.asleep(id);
    }
    // The second configuration removes an agent, whose loop is still ending.
    let config = fs::read_to_string(company.config()).unwrap();
    let one = r#"{"agents": [{"id": "a", "runtime": "claude"}]}"#;
    for (config, agents) in [(&*config, "2 agents"), (one, "1 agent")] {
        fs::write(company.config(), config).unwrap();
        let printed = company.good(["agents", "reload"]);
        assert_eq!(printed, format!("configuration read again: {agents}\n"));
    }
    supervisor.stop();
}

#[test]
fn an_agent_that_fails_at_once_does_not_run() {
    let company = Company::new(["a"], |plan| plan.turn([Act::DidWork]));
    let supervisor = company.supervise([]);
    company.asleep("a");
    fs::write(company.folder("a").join(".env"), "MIN_SLEEP=soon\n").unwrap();
    for command in ["restart", "start"] {
        let ended = company.run(["agents", command, "a"]);
        assert_eq!(ended.code, Some(1), "{command}: {}", ended.stdout);
        assert!(
            ended
                .stdout
                .starts_with("a: cannot run: exited with code 2: "),
            "{command}: {}",
            ended.stdout
        );
    }
    supervisor.stop();
}

#[test]
fn status_without_a_supervisor_reads_files_and_commands_fail() {
    let company = Company::new(["a", "b"], |plan| plan);
    let ended = company.run(["agents", "status"]);
    // The agents are enabled but do not run.
    assert_eq!(ended.code, Some(1));
    ended.stderr_begins("no supervisor is running for ");
    ended.stdout_has("a      @a     not running");

    for command in ["start", "stop", "restart", "wake"] {
        let ended = company.run(["agents", command, "a"]);
        assert_eq!((ended.code, &*ended.stdout), (Some(1), ""), "{command}");
        ended.stderr_has("start one with `teamster supervise ");
        // Without an id.
        assert_eq!(company.run(["agents", command]).code, Some(2), "{command}");
    }
    for args in [["status", "x"], ["logs", "x"]] {
        let ended = company.run(["agents", args[0], args[1]]);
        ended.only_says(2, "unknown agent \"x\"; ");
        assert!(
            ended.stderr.ends_with("; available: a, b\n"),
            "{}",
            ended.stderr
        );
    }
    company
        .run(["agents", "logs", "a"])
        .fails(1, "no log of a yet");
}

#[test]
fn logs_prints_the_last_lines_and_follows() {
    let company = Company::new(["a"], |plan| plan);
    let folder = company.folder("a").join(".orchestrator");
    fs::create_dir(&folder).unwrap();
    let file = folder.join("agent-loop.log");
    fs::write(&file, "one\ntwo \u{1b}[31m\nthree\n").unwrap();
    // A pipe gets the log unchanged.
    assert_eq!(
        company.good(["agents", "logs", "a"]),
        "one\ntwo \u{1b}[31m\nthree\n"
    );
    assert_eq!(company.good(["agents", "logs", "a", "-n", "1"]), "three\n");

    let mut command = company.teamster(["agents", "logs", "a", "-n1", "--follow"]);
    let mut following = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(following.stdout.take().unwrap()).lines();
    let mut next = || lines.next().unwrap().unwrap();
    assert_eq!(next(), "three");
    let append = |text: &str| {
        let mut log = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&file)
            .unwrap();
        log.write_all(text.as_bytes()).unwrap();
    };
    append("four\n");
    assert_eq!(next(), "four");
    // The log is rotated as the loop does it.
    fs::rename(&file, folder.join("agent-loop.log.1")).unwrap();
    append("five\n");
    assert_eq!(next(), "five");
    append("six\n");
    assert_eq!(next(), "six");
    following.kill().unwrap();
    following.wait().unwrap();
    // The rest of the requested lines is in the previous file.
    let shown = company.good(["agents", "logs", "a", "-n", "4"]);
    assert_eq!(shown, "three\nfour\nfive\nsix\n");
}

#[test]
fn another_configuration_in_the_same_folder_is_refused() {
    let company = Company::new(["a"], |plan| plan.turn([Act::DidWork]));
    let supervisor = company.supervise([]);
    fs::write(company.path("other.json"), r#"{"agents": [{"id": "a"}]}"#).unwrap();
    company
        .run(["agents", "--config", "other.json", "stop", "a"])
        .only_says(2, "has the configuration ");
    let mut command = company.teamster(["agents", "status", "--json"]);
    command.env("AGENTS_CONFIG", "other.json");
    assert_eq!(command.output().unwrap().status.code(), Some(2));
    // An empty variable counts as unset.
    command.env("AGENTS_CONFIG", "");
    assert_eq!(command.output().unwrap().status.code(), Some(0));
    company.asleep("a");
    supervisor.stop();
}
