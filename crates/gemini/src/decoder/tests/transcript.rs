//! Recorded chats of the CLI, and hand-made lines for cases that those do not cover.

use std::fs;

use super::*;

const SESSION: &str = "904dddb6-1aba-40ef-be9f-3474eb6fca40";

/// Returns a chat of a recorded run.
fn recorded(scenario: &str, chat: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../usage/tests/data/gemini/0.61.0");
    fs::read_to_string(
        root.join(scenario)
            .join("home/.gemini/tmp/ws/chats")
            .join(chat),
    )
    .unwrap()
}

/// Returns the successive totals after the lines.
fn totals(run: &mut Recorded, lines: &str) -> Vec<u64> {
    let usages = lines.lines().filter_map(|line| run.line(line));
    usages.filter_map(|usage| usage.total_tokens()).collect()
}

#[test]
fn each_answer_counts_once_though_it_is_written_again() {
    let lines = recorded("tools", "session-2026-11-22T19-02-2deed148.jsonl");
    let mut run = Recorded::default();
    assert_eq!(totals(&mut run, &lines), [2697, 2697 + 2711]);
    assert_eq!(run.usage().unwrap().total_tokens(), Some(2697 + 2711));
}

#[test]
fn the_usage_of_sub_agents_is_added() {
    let main = recorded("subagent", "session-2026-11-22T19-03-904dddb6.jsonl");
    let file = format!("{SESSION}/a8045d68-593d-47f1-bbe8-49cc5797ce88.jsonl");
    let sub = recorded("subagent", &file);
    let mut run = Recorded::default();
    assert_eq!(totals(&mut run, &main), [3477, 3477 + 3528]);
    let alone = *totals(&mut Recorded::default(), &sub).last().unwrap();
    assert_eq!(totals(&mut run, &sub).last(), Some(&(3477 + 3528 + alone)));
    assert!(alone > 0);
}

#[test]
fn messages_of_an_imported_session_do_not_count() {
    let lines = recorded("session_file", "session-1795376689679-7ed6a9c6.jsonl");
    assert_eq!(totals(&mut Recorded::default(), &lines), [3779]);
}

/// The lines are hand-made.
#[test]
fn figures_are_in_our_convention() {
    let mut run = Recorded::default();
    let message = r#"{"id":"m","timestamp":"2026-11-22T19:00:00Z","type":"gemini","tokens":{"input":100,"output":7,"cached":60,"thoughts":5,"tool":3,"total":115},"model":"g"}"#;
    let expected = Usage::default()
        .input_tokens(43)
        .output_tokens(12)
        .cache_read_tokens(60)
        .reasoning_tokens(5);
    assert_eq!(run.line(message), Some(expected));
    assert_eq!(run.line(message), None);
    assert_eq!(run.line("{"), None);
    let other = message.replace("\"m\"", "\"n\"");
    let set = format!(r#"{{"$set":{{"messages":[{message},{other}]}}}}"#);
    assert_eq!(run.line(&set), Some(expected.plus(expected)));
}

/// The line is hand-made. `teamster_usage` reads it in the same way.
#[test]
fn an_answer_without_thoughts_has_no_reasoning_tokens() {
    let message = r#"{"id":"m","timestamp":"2026-11-22T19:00:00Z","type":"gemini","tokens":{"input":9,"output":7,"cached":0,"thoughts":0,"tool":0,"total":16},"model":"g"}"#;
    let expected = Usage::default()
        .input_tokens(9)
        .output_tokens(7)
        .cache_read_tokens(0);
    assert_eq!(Recorded::default().line(message), Some(expected));
}

#[test]
fn the_files_of_a_session_are_those_with_its_id() {
    let found = files(Path::new("/home/me/.gemini/tmp"), SESSION).unwrap();
    assert_eq!(
        found.paths,
        [
            "*/chats/session-*-904dddb6.jsonl".to_owned(),
            format!("*/chats/{SESSION}/*.jsonl"),
        ]
    );
    assert_eq!(files(Path::new("/tmp"), "../../904dddb6"), None);
}
