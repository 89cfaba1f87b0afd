//! Turns as runs: history, budget, fallback and recording.

use std::fs;

use serde_json::{Value, json};
use teamster::RunStatus;

use super::{Agent, OpenChat};
use crate::cli::program;

#[test]
fn a_turn_has_a_row_in_the_history_and_all_have_one_budget() {
    let agent = Agent::new();
    let store = agent.path("store.db").display().to_string();
    // A turn uses 15 tokens.
    let ended = agent.run_chat(
        "more\nagain\nover\n",
        &["--store", &store, "--max-tokens", "30"],
    );
    assert_eq!(ended.stdout, "more\nagain\n");
    ended.stderr_has("error: the budget of this session is spent (tokens): no turn can begin\n");
    assert_eq!(ended.code, Some(1));
    let mut list = agent.command(["runs", "list", "--json", "--store", &store]);
    let rows = crate::cli::run(&mut list).json_lines();
    assert_eq!(rows.len(), 2);
    let ids: Vec<_> = rows
        .iter()
        .map(|row| row["runId"].as_str().unwrap())
        .collect();
    let session = ids[0].strip_suffix(".2").unwrap();
    assert_eq!(ids[1], format!("{session}.1"));
    assert!(rows.iter().all(|row| row["status"] == "success"));
}

#[test]
fn a_fallback_takes_over_in_the_first_turn_and_stays() {
    let agent = Agent::new();
    let mut command = agent.command(["chat", "gemini", "--fallback", "claude", "--json"]);
    program(&agent.path("gemini"), "echo 'no such luck' >&2; exit 7");
    let mut chat = OpenChat::start(command.env("TEAMSTER_GEMINI_BIN", agent.path("gemini")));
    chat.send("more");
    assert_eq!(chat.done().status, RunStatus::Completed);
    chat.send("die");
    assert_eq!(chat.done().status, RunStatus::Failed);
    chat.send("again");
    assert_eq!(chat.done().text, "again");
    chat.end().ok();
}

/// Claude Code reports the cost of a turn at its end.
#[test]
fn no_turn_begins_once_the_budget_is_spent() {
    let agent = Agent::new();
    // The first turn costs $1.25, and is not cut off.
    let ended = agent.run_chat("one\ntwo\n", &["--max-budget-usd", "1"]);
    assert_eq!(ended.stdout, "one\n");
    ended.stderr_has("spent (USD)");
    assert_ne!(ended.code, Some(0));
    assert!(!agent.received().contains("two"), "{}", agent.received());
}

#[test]
fn each_process_of_a_session_is_recorded() {
    let agent = Agent::new();
    let dir = agent.path("here");
    let record = ["--record", dir.to_str().unwrap()];
    agent.run_chat("one\ndie\ntwo\n", &record).ok();
    for (number, answers) in [("1", vec!["one"]), ("2", vec!["two"])] {
        let lines = fs::read_to_string(dir.join(number).join("stdout.ndjson")).unwrap();
        for answer in answers {
            assert!(lines.contains(answer), "{number}: {lines}");
        }
        let meta = fs::read(dir.join(number).join("meta.json")).unwrap();
        let meta: Value = serde_json::from_slice(&meta).unwrap();
        assert_eq!(
            (&meta["cli"], &meta["prompt"]),
            (&json!("claude"), &json!(""))
        );
    }
    assert!(!dir.join("3").exists());

    // Nothing is overwritten.
    let ended = agent.run_chat("one\n", &record);
    ended.stderr_has("overwrites nothing");
}
