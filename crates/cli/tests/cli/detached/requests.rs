//! Permission requests of detached runs: `requests`, `answer`, and `attach` at a terminal.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use teamster::{AgentEvent, Decision};
use teamster_testkit::proc::{wait_gone, wait_until};

use crate::cli::chat::Agent;
use crate::cli::{Ended, LIMIT, done, events, run};

/// A command with the agent's environment.
pub(super) fn command(agent: &Agent, args: &[&str]) -> Ended {
    run(&mut agent.command(args.iter().copied()))
}

/// Starts a run and returns its id.
pub(super) fn detach(agent: &Agent, args: &[&str]) -> String {
    let args = [&["run", "--detach", "claude"], args].concat();
    command(agent, &args).quiet().id()
}

/// Waits for the request of a run that asks for one thing.
pub(super) fn request(agent: &Agent, id: &str) -> Value {
    let mut found = None;
    assert!(wait_until(LIMIT, || {
        let ended = command(agent, &["requests", id, "--json"]).ok();
        found = serde_json::from_str(&ended.stdout).ok();
        found.is_some()
    }));
    found.unwrap()
}

/// The run's log, once it has ended.
pub(super) fn log(agent: &Agent, id: &str) -> String {
    let ended = command(agent, &["attach", id, "--json"]);
    super::assert_no_gaps(&ended.stdout);
    ended.stdout
}

/// Returns the decisions of a log, each with its request id.
fn decisions(log: &str) -> Vec<(Decision, Option<String>)> {
    let permission = |event| match event {
        AgentEvent::Permission(permission) => Some((permission.decision, permission.request_id)),
        _ => None,
    };
    events(log).into_iter().filter_map(permission).collect()
}

#[test]
fn the_tool_runs_when_its_request_is_allowed() {
    let agent = Agent::new();
    let store = agent.path("store.db").display().to_string();
    let id = detach(&agent, &["write", "--store", &store]);
    let request = request(&agent, &id);
    let own = format!("{id}/1");
    assert_eq!(
        (
            &request["requestId"],
            &request["toolName"],
            &request["input"]["content"]
        ),
        (&own.clone().into(), &"Write".into(), &"one".into())
    );
    let left = request["expiresAt"].as_u64().unwrap() - request["askedAt"].as_u64().unwrap();
    assert!((3_599_000..=3_600_000).contains(&left), "{left}");
    let short = format!("{}/{}", &id[..13], own.rsplit('/').next().unwrap());
    // The lists of all runs have it a moment later than the run.
    let has = |list: &[&str], part: &str| command(&agent, list).stdout.contains(part);
    for (list, part) in [
        (&["requests"][..], &*short),
        (&["requests"][..], "/x/a.txt"),
        (&["runs", "list", "--live"][..], "an answer: Write"),
        (
            &["runs", "show", &id, "--store", &store][..],
            "running, waits for an answer: Write",
        ),
    ] {
        assert!(wait_until(LIMIT, || has(list, part)), "{list:?}: {part}");
    }
    assert_eq!(
        command(&agent, &["requests", &id]).stdout,
        format!(
            "{short}\nAllow Write?\n  file_path: /x/a.txt\n    +one\n    \\ No newline at end of file\n"
        )
    );

    command(&agent, &["answer", &id, "2", "allow"]).only_says(1, "no pending request");
    command(&agent, &["answer", &own, "perhaps"]).only_says(1, "expected allow, always or deny");
    command(&agent, &["answer", &own, "allow", "--reason", "x"]).only_says(1, "--reason");
    command(&agent, &["answer", &own, "1", "allow"]).only_says(1, "once");
    command(&agent, &["answer", &id[..13], "allow"]).quiet();
    command(&agent, &["wait", &id]).ok();
    // Also while the runner still answers itself.
    for target in [&own, &id] {
        command(&agent, &["answer", target, "deny"]).only_says(1, "has ended");
    }

    let log = log(&agent, &id);
    assert_eq!(done(&log).text, "allowed");
    assert_eq!(
        decisions(&log),
        [
            (Decision::Requested, Some(own.clone())),
            (Decision::Allowed, Some(own))
        ]
    );
}

#[test]
fn agent_without_requests_runs_without_them_unless_required() {
    let agent = Agent::new();
    let record = agent.path("recording").display().to_string();
    let args = ["write", "--record", &*record];
    command(
        &agent,
        &[&["run", "-d", "claude", "--ask-timeout", "1h"], &args[..]].concat(),
    )
    .only_says(2, "--ask-timeout: claude cannot ask");
    let id = detach(&agent, &args);
    command(&agent, &["wait", &id]);
    assert_eq!(decisions(&log(&agent, &id)), []);
    // With retries, the limit is passed on by the orchestrator.
    for retries in [&[][..], &["--retries", "1"]] {
        let budget = [&["write", "--max-budget-usd", "1"], retries].concat();
        let id = detach(&agent, &budget);
        command(&agent, &["wait", &id]);
        let starts = agent.starts();
        let last = starts.last().unwrap();
        assert!(last.contains("--max-budget-usd=1"), "{last}");
        assert!(!last.contains("--permission-prompt-tool"), "{last}");
    }
    let attached = command(&agent, &["run", "claude", "write", "--ask-timeout", "1h"]);
    assert_eq!(attached.code, Some(2));
}

#[test]
fn a_request_ends_with_its_run() {
    let agent = Agent::new();
    let id = detach(&agent, &["write"]);
    request(&agent, &id);
    command(&agent, &["cancel", &id]).ok();
    assert_eq!(command(&agent, &["requests"]).stdout, "");
    command(&agent, &["answer", &id, "allow"]).only_says(1, "has ended");

    // Killed, with the request open.
    let id = detach(&agent, &["write"]);
    request(&agent, &id);
    let runner = agent.parent();
    kill(Pid::from_raw(runner.cast_signed()), Signal::SIGKILL).unwrap();
    assert!(wait_gone(runner, LIMIT));
    assert_eq!(command(&agent, &["requests", &id]).stdout, "");
    command(&agent, &["answer", &id, "1", "allow"]).only_says(1, "has ended");
    assert_eq!(command(&agent, &["wait", &id]).code, Some(5));
    assert_eq!(
        decisions(&log(&agent, &id)),
        [(Decision::Requested, Some(format!("{id}/1")))]
    );
}

// `setsid --ctty` gives them their terminals.
#[cfg(target_os = "linux")]
#[test]
fn at_terminals_one_answers_and_the_other_sees_it() {
    use crate::cli::chat::terminal::Terminal;

    let agent = Agent::new();
    let id = detach(&agent, &["write"]);
    request(&agent, &id);
    let [mut one, mut other] = [(); 2].map(|()| Terminal::of(&agent, &["attach", &id, "-v"]));
    for terminal in [&mut one, &mut other] {
        terminal.see("Allow Write?");
        terminal.see("+one");
        terminal.see("n REASON");
    }
    one.press("yes please\r");
    one.see("n REASON");
    one.press("y\r");
    for terminal in [&mut one, &mut other] {
        // How else it could be answered is not shown where it is asked.
        assert!(!terminal.all().contains("asks for permission"));
        terminal.see("permission given");
        terminal.see("completed");
        assert_eq!(terminal.end(), Some(0));
    }
    // What was decided is not asked again.
    let mut late = Terminal::of(&agent, &["attach", &id]);
    late.see("completed");
    assert_eq!(late.end(), Some(0));

    // Ctrl-C ends the view, and not the wait.
    let id = detach(&agent, &["write"]);
    let mut view = Terminal::of(&agent, &["attach", &id]);
    view.see("Allow Write?");
    view.press("\u{3}");
    view.see("the run continues");
    assert_eq!(view.end(), Some(130));
    request(&agent, &id);
    command(&agent, &["answer", &id, "deny"]).ok();
    command(&agent, &["wait", &id]);
}

#[test]
fn an_answer_without_a_request_says_so() {
    let agent = Agent::new();
    let id = detach(&agent, &["wait"]);
    assert!(wait_until(LIMIT, || agent.received().contains("wait")));
    let expected = format!(
        "error: run {id} has no pending request: `teamster requests` lists those of all runs\n"
    );
    let ended = command(&agent, &["answer", &id, "allow"]);
    assert_eq!((ended.code, &*ended.stderr), (Some(1), &*expected));
    command(&agent, &["cancel", &id]).ok();
}
