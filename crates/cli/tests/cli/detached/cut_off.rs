//! Sessions whose runner is killed.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use teamster::{ErrorKind, RunStatus};
use teamster_testkit::proc::{wait_gone, wait_until};

use super::live::{detach, ended, is_state, log, say, wait_for};
use super::requests::command;
use crate::cli::chat::Agent;
use crate::cli::{LIMIT, Running, json_lines};

/// Killed while a turn is in progress, and between two turns.
#[test]
fn killed_runner_leaves_no_agent_and_its_log_ends_once() {
    for prompt in ["wait", "more"] {
        let agent = Agent::new();
        let id = detach(&agent, &[]);
        let first = say(&agent, &id, "pid", &[]);
        let process: u32 = first.stdout.trim_end().parse().unwrap();
        say(&agent, &id, prompt, &["--no-wait"]);
        let said = if prompt == "wait" { "waiting" } else { "more" };
        wait_for(&agent, &id, |entry| entry["text"] == said);
        if prompt == "more" {
            assert!(wait_until(LIMIT, || is_state(&agent, &id, "idle")));
        }
        let runner = agent.parent();
        kill(Pid::from_raw(runner.cast_signed()), Signal::SIGKILL).unwrap();
        // All notice at once.
        let mut readers: Vec<_> = (0..4)
            .map(|_| Running::start(&mut agent.command(["attach", &id, "--json"])))
            .collect();
        let logs: Vec<_> = readers.iter_mut().map(Running::end).collect();
        let log = log(&agent, &id);
        for ended in logs {
            assert_eq!((ended.code, &ended.stdout), (Some(5), &log));
        }
        assert!(wait_gone(process, LIMIT));
        let of_session = |entry: &&Value| entry["runId"] == *id;
        let all = json_lines(&log);
        let types: Vec<_> = (all.iter().filter(of_session))
            .map(|entry| entry["type"].as_str().unwrap())
            .collect();
        assert_eq!(types, ["error", "done"], "{log}");
        // The turn that was cut off has an end of its own.
        let turn = Value::from(format!("{id}.2"));
        let of_turn = all.iter().filter(|entry| entry["runId"] == turn);
        let ends: Vec<_> = of_turn
            .filter(|entry| entry["type"] == "error" || entry["type"] == "done")
            .collect();
        if prompt == "wait" {
            assert_eq!(ends.len(), 2, "{log}");
            assert_eq!(
                (&ends[0]["type"], &ends[0]["kind"]),
                (&"error".into(), &"interrupted".into())
            );
            assert_eq!(
                (&ends[1]["result"]["status"], &ends[1]["result"]["text"]),
                (&"incomplete".into(), &"waiting".into())
            );
        } else {
            assert_eq!(ends.len(), 1, "{log}");
        }
        let code = |turn: u32| command(&agent, &["wait", &format!("{id}.{turn}")]).code;
        assert_eq!(
            (code(1), code(2)),
            (Some(0), Some(if prompt == "wait" { 5 } else { 0 }))
        );
        let result = ended(&log);
        assert_eq!(result.status, RunStatus::Incomplete);
        assert_eq!(result.failure().unwrap().kind, ErrorKind::Interrupted);
        assert_eq!(result.num_turns, Some(2));
        // How to go on is known.
        assert_eq!(
            result.session_id.as_deref(),
            Some(&*format!("session-{process}"))
        );
        assert_eq!(
            result.total_cost_usd,
            Some(if prompt == "wait" { 1.25 } else { 2.25 })
        );
        let shown = command(&agent, &["attach", &id]);
        shown.stderr_has(&format!("--resume session-{process}"));
        assert_eq!(command(&agent, &["wait", &id]).code, Some(5));
    }
}
