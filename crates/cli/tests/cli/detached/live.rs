//! Sessions that outlive the terminal: `chat --detach`, `say`, and `attach` from several terminals.

use std::fs;
use std::path::PathBuf;

use nix::sys::signal::Signal;
use serde_json::Value;
use teamster::{RunResult, RunStatus};
use teamster_testkit::proc::{is_alive, wait_gone, wait_until};

use super::requests::command;
use crate::cli::chat::Agent;
use crate::cli::chat::terminal::Terminal;
use crate::cli::{Ended, LIMIT, Running, done, json_lines};

/// Starts a session and returns its id.
pub(super) fn detach(agent: &Agent, args: &[&str]) -> String {
    let args = [&["chat", "--detach", "claude"], args].concat();
    command(agent, &args).quiet().id()
}

pub(super) fn say(agent: &Agent, id: &str, prompt: &str, args: &[&str]) -> Ended {
    command(agent, &[&["say", id, prompt], args].concat())
}

fn log_file(agent: &Agent, id: &str) -> PathBuf {
    let folder = agent.path("state").join("teamster/runs").join(id);
    folder.join("events.ndjson")
}

/// The log, also of a live session.
pub(super) fn log(agent: &Agent, id: &str) -> String {
    let mut log = fs::read_to_string(log_file(agent, id)).unwrap();
    // The last line may be in the writing.
    log.truncate(log.rfind('\n').map_or(0, |end| end + 1));
    super::assert_no_gaps(&log);
    log
}

/// Returns the result of an ended session.
pub(super) fn ended(log: &str) -> RunResult {
    done(log.split_inclusive('\n').next_back().unwrap())
}

/// Waits until an entry of the log is like this.
pub(super) fn wait_for(agent: &Agent, id: &str, found: impl Fn(&Value) -> bool) {
    let there = || json_lines(&log(agent, id)).iter().any(&found);
    assert!(wait_until(LIMIT, there), "{}", log(agent, id));
}

/// The session in the list of what is running.
fn live(agent: &Agent, id: &str) -> Option<Value> {
    let ended = command(agent, &["runs", "list", "--live", "--json"]).ok();
    json_lines(&ended.stdout)
        .into_iter()
        .find(|run| run["runId"] == id)
}

pub(super) fn is_state(agent: &Agent, id: &str, state: &str) -> bool {
    live(agent, id).is_some_and(|run| run["status"]["state"] == state)
}

#[cfg(target_os = "linux")]
#[test]
fn a_session_at_rest_releases_the_pages_of_its_program() {
    let agent = Agent::new();
    let id = detach(&agent, &[]);
    say(&agent, &id, "one", &[]).ok();
    let status = format!("/proc/{}/status", agent.parent());
    let kib = |name: &str| -> u64 {
        let status = fs::read_to_string(&status).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let size = line.and_then(|line| line.split_whitespace().next());
        size.unwrap().parse().unwrap()
    };
    let released = || kib("RssFile:") < kib("VmHWM:") / 2;
    assert!(wait_until(LIMIT, released), "{} KiB", kib("RssFile:"));
    // They are mapped again as they are needed.
    let second = say(&agent, &id, "two", &[]);
    assert_eq!((second.code, &*second.stdout), (Some(0), "two\n"));
    command(&agent, &["cancel", &id]).ok();
}

#[test]
fn a_session_takes_turns_from_everybody_until_it_is_ended() {
    let agent = Agent::new();
    let id = detach(&agent, &[]);
    // Nothing is started before the first turn.
    assert_eq!(agent.starts().len(), 0);
    assert!(is_state(&agent, &id, "idle"));

    let first = say(&agent, &id, "pid", &[]).ok();
    let process: u32 = first.stdout.trim_end().parse().unwrap();
    let second = say(&agent, &id[..8], "pid", &["--json"]).quiet();
    let turn = format!("{id}.2");
    for entry in json_lines(&second.stdout) {
        assert_eq!(entry["runId"], *turn, "{entry}");
    }
    let result = done(&second.stdout);
    assert_eq!(
        (&*result.text, result.num_turns),
        (&*process.to_string(), Some(1))
    );
    assert_eq!(agent.starts().len(), 1);

    let run = live(&agent, &id).unwrap();
    assert_eq!(run["kind"], "session");
    assert_eq!(run["status"]["state"], "idle");
    assert_eq!(run["status"]["turns"], 2);
    assert_eq!(run["status"]["costUsd"], 2.25);
    assert_eq!(run["status"]["usage"]["inputTokens"], 20);
    let table = command(&agent, &["runs", "list", "--live"]);
    for word in [&id[..13], "2 turns", "idle", "$2.25"] {
        table.stdout_has(word);
    }

    let mut waiting = Running::start(&mut agent.command(["wait", &id]));
    command(&agent, &["cancel", &id]).ok();
    // It was ended in order, between two turns.
    waiting.end().ok();
    assert!(wait_gone(process, LIMIT));
    assert!(agent.received().contains("end_session"));
    let log = log(&agent, &id);
    let last = json_lines(&log).pop().unwrap();
    assert_eq!(
        (&last["type"], &last["runId"]),
        (&"done".into(), &(*id).into())
    );
    let result = ended(&log);
    assert_eq!(result.status, RunStatus::Completed);
    assert_eq!(
        (result.num_turns, result.total_cost_usd),
        (Some(2), Some(2.25))
    );
    assert_eq!(
        result.session_id.as_deref(),
        Some(&*format!("session-{process}"))
    );
    say(&agent, &id, "more", &[]).only_says(1, "has ended");
    assert_eq!(live(&agent, &id), None);
}

#[test]
fn second_speaker_is_refused_during_a_turn() {
    let agent = Agent::new();
    let id = detach(&agent, &[]);
    let mut speaking = Running::start(&mut agent.command(["say", &id, "wait"]));
    wait_for(&agent, &id, |entry| entry["text"] == "waiting");
    assert!(is_state(&agent, &id, "running"));
    let second = say(&agent, &id, "more", &[]);
    assert_eq!((second.code, &*second.stdout), (Some(1), ""));
    for word in ["teamster say, process", "began a turn", "--queue"] {
        second.stderr_has(word);
    }
    let mut queued = Running::start(&mut agent.command(["say", &id, "more", "--queue"]));
    // Ctrl-C ends the turn, and the session continues.
    speaking.signal(Signal::SIGINT);
    assert_eq!(speaking.end().code, Some(130));
    let ended = queued.end();
    assert_eq!((ended.code, &*ended.stdout), (Some(0), "more\n"));
    assert_eq!(agent.starts().len(), 1);
    command(&agent, &["cancel", &id]).ok();
}

#[test]
fn a_session_ends_by_itself_when_nothing_is_said() {
    let agent = Agent::new();
    let id = detach(&agent, &["--end-idle", "1s"]);
    say(&agent, &id, "more", &[]).ok();
    command(&agent, &["wait", &id]).ok();
    assert!(log(&agent, &id).contains("it had no turn for 1s"));
}

#[test]
fn a_turn_has_a_row_in_the_history() {
    let agent = Agent::new();
    let store = agent.path("store.db").display().to_string();
    let id = detach(&agent, &["--store", &store]);
    say(&agent, &id, "more", &[]);
    say(&agent, &id, "die", &[]);
    command(&agent, &["cancel", &id]);
    let list = command(&agent, &["runs", "list", "--json", "--store", &store]);
    let rows: Vec<_> = json_lines(&list.stdout)
        .into_iter()
        .map(|row| (row["runId"].clone(), row["status"].clone()))
        .collect();
    assert_eq!(
        rows,
        [
            (format!("{id}.2").into(), Value::from("error")),
            (format!("{id}.1").into(), "success".into())
        ]
    );

    // Ids of turns are shortened as those of sessions are.
    let turn = |number: u32| format!("{}.{number}", &id[..8]);
    let shown = command(&agent, &["runs", "show", &turn(2), "--store", &store]);
    shown.stdout_has(&format!("{id}.2"));
    shown.stdout_has("prompt        die\n");
    command(&agent, &["wait", &turn(1)]).ok();
    assert_eq!(command(&agent, &["wait", &turn(2)]).code, Some(1));
    command(&agent, &["wait", &turn(3)]).fails(1, "ended without a turn");
    let whole = command(&agent, &["attach", &turn(1), "--json"]);
    assert_eq!(whole.stdout, log(&agent, &id));
}

#[test]
#[cfg(target_os = "linux")]
fn two_terminals_speak_in_turn() {
    let agent = Agent::new();
    let id = detach(&agent, &[]);
    let mut one = Terminal::of(&agent, &["attach", &id]);
    let mut two = Terminal::of(&agent, &["attach", &id]);
    for terminal in [&mut one, &mut two] {
        terminal.see("claude> ");
    }
    one.press("pid\r");
    let shown = |log: &str| {
        let pid = json_lines(log)
            .into_iter()
            .find(|entry| entry["type"] == "text");
        pid.map(|entry| entry["text"].as_str().unwrap().to_owned())
    };
    assert!(wait_until(LIMIT, || shown(&log(&agent, &id)).is_some()));
    let process = shown(&log(&agent, &id)).unwrap();
    one.see(&process);
    // The other one sees who speaks, and what comes of it.
    two.see("> pid");
    two.see("terminal pts/");
    two.see(&process);
    for terminal in [&mut one, &mut two] {
        terminal.see("claude> ");
    }

    let image = agent.path("a.png");
    fs::write(&image, b"png").unwrap();
    two.press(&format!("/image {}\r", image.display()));
    two.see("goes with the next message");
    two.see("claude> ");

    // What is typed while another speaks is not sent.
    two.press("mor");
    two.see("mor");
    one.press("wait\r");
    one.see("waiting");
    two.press("e\r");
    two.see("not sent: terminal pts/");
    two.see("1 image kept for the next message: `/image` removes all");
    two.see("waiting");
    // Either can interrupt the turn.
    two.press("\x03");
    one.see("interrupted");
    one.see("claude> ");
    two.see("claude> ");
    // At rest it ends the view only.
    two.press("\x03");
    assert_eq!(two.end(), Some(0));
    two.see("the session continues");
    assert!(is_alive(process.parse().unwrap()));
    one.press("/cost\r");
    one.see("2 turns");
    one.press("/end\r");
    one.see("the session ended after 2 turns");
    assert_eq!(one.end(), Some(0));
}

#[test]
#[cfg(target_os = "linux")]
fn interrupt_at_a_question_keeps_the_keys_for_the_next_message() {
    let agent = Agent::new();
    let id = detach(&agent, &[]);
    let mut terminal = Terminal::of(&agent, &["attach", &id]);
    terminal.see("claude> ");
    terminal.press("write\r");
    terminal.see("and why > ");
    terminal.press("\x03");
    terminal.see("interrupted");
    terminal.see("claude> ");
    terminal.press("typed\r");
    wait_for(&agent, &id, |entry| entry["text"] == "typed");
    terminal.see("claude> ");
    terminal.press("/end\r");
    assert_eq!(terminal.end(), Some(0));
}

/// A late view has all of it, and the events of each turn once.
#[test]
fn a_session_is_shown_from_its_beginning() {
    let agent = Agent::new();
    let id = detach(&agent, &[]);
    say(&agent, &id, "one", &[]);
    say(&agent, &id, "two", &[]);
    command(&agent, &["cancel", &id]);
    let shown = command(&agent, &["attach", &id]);
    assert_eq!((shown.code, &*shown.stdout), (Some(0), "one\ntwo\n"));
    for text in [
        "> one",
        "> two",
        "teamster say",
        "the session ended after 2 turns",
    ] {
        shown.stderr_has(text);
    }
    let log = log(&agent, &id);
    assert_eq!(command(&agent, &["attach", &id, "--json"]).stdout, log);
}

#[test]
fn a_turn_that_waits_for_an_answer_is_shown_so() {
    let agent = Agent::new();
    let store = agent.path("store.db").display().to_string();
    let id = detach(&agent, &["--store", &store]);
    say(&agent, &id, "more", &[]);
    say(&agent, &id, "write", &["--no-wait"]);
    let shown = |turn: u32| {
        let turn = format!("{id}.{turn}");
        command(&agent, &["runs", "show", &turn, "--store", &store]).stdout
    };
    let waits = "running, waits for an answer: Write";
    assert!(
        wait_until(LIMIT, || shown(2).contains(waits)),
        "{}",
        shown(2)
    );
    assert!(shown(2).contains("prompt        write\n"), "{}", shown(2));
    assert!(!shown(1).contains("waits"), "{}", shown(1));
    command(&agent, &["answer", &id, "allow"]);
    command(&agent, &["wait", &format!("{id}.2")]).ok();
    assert!(shown(2).contains("completed"), "{}", shown(2));
    command(&agent, &["cancel", &id]);
}

#[test]
fn a_spent_time_budget_has_the_exit_code_of_a_time_limit() {
    let agent = Agent::new();
    let id = detach(&agent, &["--max-time", "300ms"]);
    // A turn may be cut off a little before the end of the budget.
    let is_spent = || {
        let ended = say(&agent, &id, "wait", &[]);
        assert_eq!(ended.code, Some(4), "{}", ended.stderr);
        ended
            .stderr
            .contains("budget of this session is spent (time)")
    };
    assert!(wait_until(LIMIT, is_spent));
    command(&agent, &["cancel", &id]).ok();
}

#[test]
fn a_session_in_the_history_is_its_turns() {
    let agent = Agent::new();
    let store = agent.path("store.db").display().to_string();
    let id = detach(&agent, &["--store", &store]);
    for prompt in ["one", "two"] {
        say(&agent, &id, prompt, &[]).ok();
    }
    let runs = |args: &[&str]| {
        let args = [&["runs"], args, &["--store", &store]].concat();
        command(&agent, &args)
    };
    let shown = runs(&["show", &id]);
    assert_eq!(shown.code, Some(1));
    let expected =
        format!("error: {id} is a session, whose turns are runs: name one of {id}.2, {id}.1\n");
    assert_eq!(shown.stderr, expected);
    runs(&["show", &format!("{id}.2")]).ok();

    // A live one is in the way of all that are named, also of those before it.
    let other = detach(&agent, &["--store", &store]);
    say(&agent, &other, "three", &[]).ok();
    command(&agent, &["cancel", &other]);
    command(&agent, &["wait", &other]);
    runs(&["forget", &other, &id]).fails(1, "is live: stop it");
    assert!(log_file(&agent, &other).exists());
    runs(&["show", &format!("{other}.1")]).ok();

    command(&agent, &["cancel", &id]);
    command(&agent, &["wait", &id]);
    let both = runs(&["forget", &other, &id, &id]);
    assert!(
        both.stdout.starts_with("3 runs forgotten, 2 logs deleted"),
        "{}{}",
        both.stdout,
        both.stderr
    );
}
