//! A tick is a run: with a log, a row in the history, retries, fallbacks and limits.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use nix::sys::signal::Signal;
use serde_json::Value;
use teamster::ExecuteParams;
use teamster_runner::SessionLocks;
use teamster_testkit::proc::wait_until;
use teamster_testkit::stand_in::Act;

use super::Agent;
use crate::cli::{Ended, LIMIT, Running, json_lines, run, run_id, teamster};

impl Agent {
    /// Another command of the same user.
    fn other<'a>(&self, args: impl IntoIterator<Item = &'a str>) -> Command {
        let mut command = teamster(args);
        command.env("HOME", self.root.path().join("home"));
        command
    }

    fn about<'a>(&self, args: impl IntoIterator<Item = &'a str>) -> Ended {
        run(&mut self.other(args))
    }

    fn runs(&self) -> PathBuf {
        self.root.path().join("home/.local/state/teamster/runs")
    }

    fn lines(&self, name: &str) -> Vec<Value> {
        json_lines(&fs::read_to_string(self.path(name)).unwrap_or_default())
    }

    /// The entries of a run's log.
    fn entries(&self, run_id: &str) -> Vec<Value> {
        let file = self.runs().join(run_id).join("events.ndjson");
        json_lines(&fs::read_to_string(file).unwrap())
    }
}

fn types(entries: &[Value]) -> Vec<&str> {
    let types = entries.iter().filter_map(|entry| entry["type"].as_str());
    types.collect()
}

fn count(entries: &[Value], name: &str) -> usize {
    types(entries).iter().filter(|it| **it == name).count()
}

#[test]
fn a_tick_has_a_log_and_a_row_in_the_history() {
    let agent = Agent::new(|plan| plan.turn([Act::DidWork]));
    let store = agent.root.path().join("store.db");
    let store = store.to_str().unwrap();
    let mut command = agent.command();
    command.args(["--ticks", "2", "--store", store]);
    run(command.env("MIN_SLEEP", "0")).ok();

    let ticks = agent.lines("ticks.jsonl");
    let ids: Vec<&str> = ticks
        .iter()
        .filter_map(|tick| tick["run_id"].as_str())
        .collect();
    assert_eq!(ids.len(), 2);
    let directory = agent.directory().canonicalize().unwrap();
    let directory = directory.to_str().unwrap();
    for id in &ids {
        let entries = agent.entries(id);
        let numbers: Vec<_> = entries.iter().filter_map(|it| it["seq"].as_u64()).collect();
        assert_eq!(numbers, (1..=entries.len() as u64).collect::<Vec<_>>());
        assert_eq!(types(&entries).first(), Some(&"run:start"));
        assert_eq!(types(&entries).last(), Some(&"done"));
        let info = fs::read(agent.runs().join(id).join("run.json")).unwrap();
        let info: Value = serde_json::from_slice(&info).unwrap();
        assert_eq!(
            (&info["kind"], &info["directory"]),
            (&"tick".into(), &directory.into())
        );
    }

    // By its directory the agent's last tick is meant, where none is played.
    let shown = agent.about(["attach", directory, "--json"]).ok();
    shown.stderr_has("showing its last one, tick 2");
    assert_eq!(run_id(&shown.stdout), ids[1]);

    let listed = |args: &[&str]| {
        let mut command = agent.other(["runs", "list", "--json", "--store", store]);
        let ended = run(command.args(args)).ok();
        let rows = ended.json_lines().into_iter();
        rows.map(|row| row["runId"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(listed(&["--cwd", directory]), [ids[1], ids[0]]);
    assert_eq!(listed(&["--cwd", "/nowhere"]), [""; 0]);
}

#[test]
fn an_attached_reader_sees_the_tick_while_it_is_played() {
    let agent = Agent::new(|plan| plan.turn([Act::Child, Act::Hang]));
    let mut running = Running::start(&mut agent.command());
    agent.waits_for("the tick", || agent.pids().len() == 2);
    let directory = agent.directory();
    let seen = agent.root.path().join("seen");
    let mut attached = agent
        .other(["attach", directory.to_str().unwrap(), "--json"])
        .stdout(fs::File::create(&seen).unwrap())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let read = || fs::read_to_string(&seen).unwrap_or_default();
    let has_begun = wait_until(LIMIT, || read().contains(r#""type":"session""#));
    assert!(has_begun, "{}", read());
    assert!(!read().contains(r#""type":"done""#), "{}", read());
    let live = agent.about(["runs", "list", "--live", "--json"]).json();
    assert_eq!(live["kind"], "tick");
    running.stop();
    assert_eq!(attached.wait().unwrap().code(), Some(130), "{}", read());
    assert!(read().contains(r#""type":"done""#), "{}", read());
    agent.nothing_is_left();
}

#[test]
fn a_cancelled_tick_is_no_failure_and_the_loop_continues() {
    let agent = Agent::new(|plan| plan.turn([Act::Child, Act::Hang]).turn([Act::DidWork]));
    let mut command = agent.command();
    command.env("IDLE_STEP", "0").env("MIN_SLEEP", "0");
    let mut running = Running::start(command.args(["--ticks", "2"]));
    agent.waits_for("the tick", || agent.pids().len() == 2);
    agent
        .about(["cancel", agent.directory().to_str().unwrap()])
        .ok();
    assert_eq!(running.wait().code(), Some(0), "{}", agent.log());
    let ticks = agent.lines("ticks.jsonl");
    let results: Vec<_> = ticks.iter().map(|it| it["result"].as_str()).collect();
    assert_eq!(
        results,
        [Some("stopped"), Some("completed")],
        "{}",
        agent.log()
    );
    assert_eq!(ticks[0]["error_kind"], Value::Null);
    assert!(
        agent.log().contains("tick 1 aborted after"),
        "{}",
        agent.log()
    );
}

#[test]
fn a_loop_gives_the_log_of_the_killed_one_its_end() {
    let agent = Agent::new(|plan| plan.turn([Act::Tools, Act::Hang]).turn([Act::DidWork]));
    let mut running = Running::start(&mut agent.command());
    let logged = || {
        let runs = fs::read_dir(agent.runs()).into_iter().flatten().flatten();
        let mut logs = runs.map(|run| fs::read_to_string(run.path().join("events.ndjson")));
        logs.any(|log| log.is_ok_and(|log| log.contains(r#""type":"usage""#)))
    };
    agent.waits_for("usage in the log of the tick", logged);
    running.signal(Signal::SIGKILL);
    running.wait();
    // As if the CLI had been killed before it wrote its own record.
    fs::remove_dir_all(agent.root.path().join("home/.claude/projects")).unwrap();
    let ended = run(agent.command().args(["--ticks", "1"]));
    assert_eq!(ended.code, Some(0), "{}", agent.log());
    let ticks = agent.lines("ticks.jsonl");
    let entries = agent.entries(ticks[0]["run_id"].as_str().unwrap());
    assert_eq!(
        (count(&entries, "done"), types(&entries).last()),
        (1, Some(&"done"))
    );
    assert_eq!(ticks[0]["result"], "killed");
    for record in [&ticks[0], &agent.lines("usage.jsonl")[0]] {
        // Only the log has them.
        assert_eq!(record["input_tokens"], 1000, "{record}");
        assert_eq!(record["cache_read_tokens"], 5, "{record}");
        assert_eq!(record["cost_source"], "estimated", "{record}");
        assert_eq!(
            record["session_id"],
            entries.last().unwrap()["result"]["sessionId"]
        );
    }
}

#[test]
fn only_the_logs_of_the_last_ticks_are_kept() {
    let agent = Agent::new(|plan| plan.turn([Act::DidWork]));
    for _ in 0..2 {
        let mut command = agent.command();
        // The later ticks do nothing.
        command.env("MIN_SLEEP", "0").env("IDLE_STEP", "0");
        command.env("TICK_LOGS", "2");
        run(command.args(["--ticks", "2"])).ok();
    }
    let kept = |name: &str| agent.runs().join(name).exists();
    let ticks = agent.lines("ticks.jsonl");
    let kept: Vec<_> = ticks
        .iter()
        .map(|it| kept(it["run_id"].as_str().unwrap()))
        .collect();
    assert_eq!(kept, [false, false, true, true]);
    run(agent.command().env("TICK_LOGS", "0").args(["--ticks", "1"])).ok();
    let last = agent.lines("ticks.jsonl").pop().unwrap();
    assert!(!agent.runs().join(last["run_id"].as_str().unwrap()).exists());
}

#[test]
fn a_tick_is_retried_as_a_run_is() {
    let agent = Agent::new(|plan| plan.turn([Act::Die]).turn([Act::DidWork]));
    let mut command = agent.command();
    let ended = run(command.env("RETRIES", "1").args(["--ticks", "1"]));
    assert_eq!(ended.code, Some(0), "{}", agent.log());
    let ticks = agent.lines("ticks.jsonl");
    assert_eq!(ticks[0]["result"], "completed", "{}", agent.log());
    let entries = agent.entries(ticks[0]["run_id"].as_str().unwrap());
    assert_eq!(count(&entries, "run:attempt"), 2);
    assert_eq!(count(&entries, "run:retry"), 1);
    assert!(agent.log().contains("] attempt 2 in "), "{}", agent.log());
}

#[test]
fn a_fallback_plays_a_tick_and_the_next_is_the_agents_again() {
    let agent = Agent::new(|plan| plan.turn([Act::Die]).turn([Act::DidWork]));
    agent.copilot("");
    let mut command = agent.command();
    command.envs([
        ("FALLBACK", "copilot"),
        ("MIN_SLEEP", "0"),
        ("IDLE_STEP", "0"),
    ]);
    let ended = run(command.args(["--ticks", "2"]));
    assert_eq!(ended.code, Some(0), "{}", agent.log());
    let ticks = agent.lines("ticks.jsonl");
    let field = |name: &str| ticks.iter().map(|it| it[name].clone()).collect::<Vec<_>>();
    assert_eq!(
        field("result"),
        ["completed", "completed"],
        "{}",
        agent.log()
    );
    // The agent has not heard the first one.
    assert_eq!(field("prompt"), ["full", "full"]);
    assert!(
        agent.log().contains("] falling back to copilot: "),
        "{}",
        agent.log()
    );
    let entries = agent.entries(ticks[0]["run_id"].as_str().unwrap());
    let providers: Vec<_> = entries
        .iter()
        .filter(|it| it["type"] == "run:attempt")
        .filter_map(|it| it["provider"].as_str())
        .collect();
    assert_eq!(providers, ["claude", "copilot"]);
    let entries = agent.entries(ticks[1]["run_id"].as_str().unwrap());
    assert_eq!(count(&entries, "run:attempt"), 1);
}

#[test]
fn a_limit_of_tokens_ends_a_tick() {
    let agent = Agent::new(|plan| plan.turn([Act::DidWork]));
    let mut command = agent.command();
    let ended = run(command.env("MAX_TOKENS", "10").args(["--ticks", "1"]));
    assert_eq!(ended.code, Some(1), "{}", agent.log());
    let ticks = agent.lines("ticks.jsonl");
    assert_eq!(ticks[0]["error_kind"], "budget", "{}", agent.log());
}

#[test]
fn a_loop_waits_for_a_session_that_another_process_works_with() {
    let agent = Agent::new(|plan| plan.turn([Act::DidWork]));
    let keep = || {
        let mut command = agent.command();
        command.args(["--ticks", "1"]).env("KEEP_SESSION", "1");
        command
    };
    run(&mut keep()).ok();
    let session = agent.json("session.json")["session_id"].clone();
    let locks = agent
        .root
        .path()
        .join("home/.local/state/teamster/sessions");
    let mut other = SessionLocks::at(locks).writer("claude");
    let mut params = ExecuteParams::new("x");
    params.session_id = session.as_str().map(str::to_owned);
    other.begin(&params).unwrap();

    let mut running = Running::start(&mut keep());
    agent.waits_for("its turn", || agent.log().contains("works with session"));
    assert_eq!(agent.lines("ticks.jsonl").len(), 1);
    drop(other);
    running.signal(Signal::SIGUSR1);
    assert_eq!(running.wait().code(), Some(0), "{}", agent.log());
    let ticks = agent.lines("ticks.jsonl");
    assert_eq!(ticks.len(), 2);
    assert_eq!(ticks[1]["session_id"], session);
}

/// A tick by the name of its agent, where there is a configuration with one.
#[test]
fn an_agent_is_attached_to_by_its_name() {
    let agent = Agent::new(|plan| plan.turn([Act::DidWork]));
    run(agent.command().args(["--ticks", "1"])).ok();
    let config = agent.root.path().join("agents.config.json");
    let text = r#"{"agents": [{"id": "triage", "workingDir": "agent"}]}"#;
    fs::write(&config, text).unwrap();
    let attach = |name: &str| {
        let mut command = agent.other(["attach", name, "--json"]);
        run(command.current_dir(agent.root.path()))
    };
    let shown = attach("triage").ok();
    assert_eq!(shown.stdout, attach("agent").stdout);
    attach("other").fails(1, "other");
}

#[cfg(feature = "otlp")]
#[test]
fn each_tick_is_a_trace() {
    let collector = crate::cli::otlp::collector::Collector::start();
    let agent = Agent::new(|plan| plan.turn([Act::DidWork]));
    let mut command = agent.command();
    command
        .args(["--ticks", "2"])
        .env("MIN_SLEEP", "0")
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url());
    run(&mut command).ok();
    let ticks = agent.lines("ticks.jsonl");
    let ids: Vec<_> = ticks
        .iter()
        .filter_map(|it| it["run_id"].as_str())
        .collect();
    assert_eq!(ids.len(), 2);
    let spans = collector.spans();
    let roots: Vec<_> = (spans.iter())
        .filter_map(|span| span.attributes.get("teamster.run.id"))
        .collect();
    assert_eq!(roots, ids);
}
