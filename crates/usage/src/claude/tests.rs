//! Tests with handwritten lines in the form of real ones, for cases that could not be recorded.

use std::fs;

use jiff::tz::TimeZone;
use teamster_api::usage::{Dimension, Figures as Sums};

use super::*;
use crate::Scan;

/// A line of an answer.
struct Answer {
    session: &'static str,
    second: u32,
    id: &'static str,
    request: Option<&'static str>,
    input: u64,
    output: u64,
    more: &'static str,
}

impl Answer {
    fn line(&self) -> String {
        let Self {
            session,
            second,
            id,
            input,
            output,
            more,
            ..
        } = self;
        let request = self
            .request
            .map_or(String::new(), |id| format!(r#""requestId":"{id}","#));
        format!(
            r#"{{"isSidechain":false,{more}"message":{{"id":"{id}","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[],"stop_reason":"end_turn","usage":{{"input_tokens":{input},"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":{output}}}}},{request}"type":"assistant","timestamp":"2026-11-22T10:00:{second:02}.000Z","cwd":"/w","sessionId":"{session}"}}"#
        )
    }
}

const ANSWER: Answer = Answer {
    session: "s",
    second: 1,
    id: "msg_01XFDUDYJgAACzvnptvVoYEL",
    request: Some("req_1"),
    input: 10,
    output: 5,
    more: "",
};

/// Scans files with these paths below `projects` and these lines.
fn scan(files: &[(&str, &[Answer])]) -> crate::Accounts {
    let home = tempfile::tempdir().unwrap();
    for (path, answers) in files {
        let path = home.path().join(".claude/projects/-w").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let text: String = answers.iter().map(|answer| answer.line() + "\n").collect();
        fs::write(path, text).unwrap();
    }
    let locations = Locations::of_home(home.path());
    let accounts = Scan::new(locations).time_zone(TimeZone::UTC).run();
    assert_eq!(accounts.diagnostics().malformed_lines, 0);
    accounts
}

fn figures(sums: &Sums) -> (u64, Option<u64>, Option<u64>) {
    (
        sums.requests,
        sums.usage.input_tokens,
        sums.usage.output_tokens,
    )
}

#[test]
fn a_parents_message_under_another_requests_id_counts_once() {
    let accounts = scan(&[
        ("s.jsonl", &[ANSWER]),
        (
            "s/subagents/agent-a.jsonl",
            &[
                Answer {
                    request: Some("req_2"),
                    second: 3,
                    ..ANSWER
                },
                Answer {
                    id: "msg_01XFDUDYJgAACzvnptvVoYEM",
                    request: Some("req_3"),
                    second: 4,
                    ..ANSWER
                },
            ],
        ),
    ]);
    assert_eq!(figures(&accounts.total()), (2, Some(20), Some(10)));
}

#[test]
fn a_relay_that_gives_all_messages_one_id_hides_none() {
    let relay = |session, second, input, output| Answer {
        session,
        second,
        id: "relay",
        request: None,
        input,
        output,
        ..ANSWER
    };
    let accounts = scan(&[
        (
            "s.jsonl",
            &[
                // An answer of two blocks, the first one with the figures at its start; and the next answer.
                relay("s", 1, 0, 0),
                relay("s", 2, 10, 5),
                relay("s", 3, 10, 5),
                relay("s", 4, 30, 5),
            ],
        ),
        ("t.jsonl", &[relay("t", 5, 10, 7)]),
    ]);
    assert_eq!(figures(&accounts.total()), (3, Some(50), Some(17)));
}

#[test]
fn a_fork_of_a_relays_session_counts_its_own_usage() {
    let relay = |session, second, input| Answer {
        session,
        second,
        id: "chatcmpl-1",
        request: None,
        input,
        ..ANSWER
    };
    // A fork's file begins with a line that has the fork's own time.
    let begin = Answer {
        second: 8,
        output: 0,
        ..relay("fork", 8, 0)
    };
    let accounts = scan(&[
        ("s.jsonl", &[relay("s", 1, 10), relay("s", 2, 20)]),
        (
            "fork.jsonl",
            &[
                begin,
                relay("fork", 1, 10),
                relay("fork", 2, 20),
                relay("fork", 9, 30),
            ],
        ),
    ]);
    assert_eq!(figures(&accounts.total()), (3, Some(60), Some(15)));
    let sessions = accounts.by(Dimension::Session);
    let of: Vec<_> = sessions
        .iter()
        .map(|session| (session.name.as_deref().unwrap(), session.figures.requests))
        .collect();
    assert_eq!(of, [("fork", 1), ("s", 2)]);
}

#[test]
fn a_marked_copy_counts_for_the_other_session() {
    let copy = Answer {
        session: "a",
        more: r#""forkedFrom":{"sessionId":"s","messageUuid":"u"},"#,
        ..ANSWER
    };
    let accounts = scan(&[("a.jsonl", &[copy]), ("s.jsonl", &[ANSWER])]);
    let sessions = accounts.by(Dimension::Session);
    assert_eq!(sessions.len(), 1);
    assert_eq!(sessions[0].name.as_deref(), Some("s"));
}

#[test]
fn the_largest_figures_count_and_a_cost_that_is_reported() {
    let part = |second, output| Answer {
        second,
        output,
        more: r#""costUSD":0.25,"#,
        ..ANSWER
    };
    let accounts = scan(&[("s.jsonl", &[part(1, 1), part(2, 40), part(3, 7)])]);
    let total = accounts.total();
    assert_eq!(figures(&total), (1, Some(10), Some(40)));
    assert_eq!(total.reported_cost_usd, Some(0.25));
}

#[test]
fn advice_of_another_model_counts_for_that_model() {
    let line = Answer {
        input: 4,
        output: 491,
        ..ANSWER
    }
    .line();
    let advised = r#""output_tokens":491,"iterations":[{"type":"message","input_tokens":2,"output_tokens":45},{"type":"advisor_message","model":"claude-opus-4-7","input_tokens":1000,"output_tokens":200,"cache_creation_input_tokens":0,"cache_read_input_tokens":0},{"type":"message","input_tokens":2,"output_tokens":446}]"#;
    let line = line.replace(r#""output_tokens":491"#, advised);
    let home = tempfile::tempdir().unwrap();
    let project = home.path().join(".claude/projects/-w");
    fs::create_dir_all(&project).unwrap();
    fs::write(project.join("s.jsonl"), format!("{line}\n{line}\n")).unwrap();
    // The same in a fork.
    let copy = line.replace(r#""sessionId":"s""#, r#""sessionId":"fork""#);
    fs::write(project.join("fork.jsonl"), copy).unwrap();
    let accounts = Scan::new(Locations::of_home(home.path())).run();
    let models = accounts.by(Dimension::Model);
    let of: Vec<_> = models
        .iter()
        .map(|model| (model.name.as_deref().unwrap(), figures(&model.figures)))
        .collect();
    assert_eq!(
        of,
        [
            ("claude-opus-4-7", (1, Some(1000), Some(200))),
            ("claude-sonnet-4-5", (1, Some(4), Some(491))),
        ]
    );
}

#[test]
fn an_error_in_a_part_hides_no_other_and_is_reported() {
    let part = r#"{"type":"advisor_message","model":"claude-opus-4-7","input_tokens":1000,"output_tokens":200MORE}"#;
    let message = r#"{"type":"message","input_tokens":10,"output_tokens":5}"#;
    let with = |parts: &str| {
        let usage = format!(r#""output_tokens":5,"iterations":{parts}"#);
        ANSWER.line().replace(r#""output_tokens":5"#, &usage)
    };
    let own = part.replace("MORE", r#","iterations":[]"#);
    let bad = part.replace("MORE", r#","cache_read_input_tokens":-1"#);
    for (parts, requests, malformed) in [
        ("null".to_owned(), 1, 0),
        (format!("[{message}]"), 1, 0),
        (format!("[{message},{own}]"), 2, 0),
        (format!("[{message},{bad},{own}]"), 2, 1),
        (format!("[{message},{{}}]"), 1, 1),
        ("{}".to_owned(), 1, 1),
    ] {
        let home = tempfile::tempdir().unwrap();
        let project = home.path().join(".claude/projects/-w");
        fs::create_dir_all(&project).unwrap();
        fs::write(project.join("s.jsonl"), with(&parts) + "\n").unwrap();
        let accounts = Scan::new(Locations::of_home(home.path())).run();
        let left_out = accounts.diagnostics().malformed_lines;
        assert_eq!(
            (accounts.total().requests, left_out),
            (requests, malformed),
            "{parts}"
        );
    }
}

#[test]
fn more_tokens_than_a_request_can_have_are_reported_and_not_cut() {
    let line = Answer {
        output: u64::from(u32::MAX) + 1,
        ..ANSWER
    };
    let home = tempfile::tempdir().unwrap();
    let project = home.path().join(".claude/projects/-w");
    fs::create_dir_all(&project).unwrap();
    fs::write(project.join("s.jsonl"), line.line() + "\n").unwrap();
    let locations = Locations::of_home(home.path());
    let accounts = Scan::new(locations.clone()).run();
    assert_eq!(accounts.total(), Sums::default());
    assert_eq!(accounts.diagnostics().malformed_lines, 1);
    let meter = crate::TickMeter::new(Provider::Claude, locations);
    assert_eq!(meter.read_with_diagnostics(Some("s")).1.malformed_lines, 1);
}

#[test]
fn a_line_behind_half_a_line_counts() {
    let home = tempfile::tempdir().unwrap();
    let project = home.path().join(".claude/projects/-w");
    fs::create_dir_all(&project).unwrap();
    let line = ANSWER.line();
    let half = &line[..line.len() / 2];
    fs::write(project.join("s.jsonl"), format!("{half}{line}\n")).unwrap();
    let accounts = Scan::new(Locations::of_home(home.path())).run();
    assert_eq!(accounts.total().requests, 1);
    assert_eq!(accounts.diagnostics().malformed_lines, 1);
}

#[test]
fn spaces_after_colons_hide_nothing() {
    let spaced = ANSWER.line().replace("\":", "\" : ");
    let home = tempfile::tempdir().unwrap();
    let project = home.path().join(".claude/projects/-w");
    fs::create_dir_all(&project).unwrap();
    fs::write(project.join("s.jsonl"), spaced + "\n").unwrap();
    let accounts = Scan::new(Locations::of_home(home.path())).run();
    assert_eq!(figures(&accounts.total()), (1, Some(10), Some(5)));
}

#[test]
fn relay_answers_count_although_the_first_line_is_later() {
    let relay = |session, second, input| Answer {
        session,
        second,
        id: "chatcmpl-1",
        request: None,
        input,
        ..ANSWER
    };
    let later = |session| Answer {
        output: 0,
        ..relay(session, 30, 0)
    };
    // Two forks of a missing session, each with one answer of its own.
    let accounts = scan(&[
        (
            "a.jsonl",
            &[
                later("a"),
                relay("a", 1, 10),
                relay("a", 2, 20),
                relay("a", 40, 30),
            ],
        ),
        (
            "b.jsonl",
            &[
                later("b"),
                relay("b", 1, 10),
                relay("b", 2, 20),
                relay("b", 41, 31),
            ],
        ),
    ]);
    assert_eq!(figures(&accounts.total()), (4, Some(91), Some(20)));
}
