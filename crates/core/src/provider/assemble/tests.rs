//! Tests of the assembler with a scripted decoder.

mod ends;
mod mixed;
mod observed;
mod read_back;

use std::borrow::Cow;

use super::*;
use crate::provider::grammar;
use crate::provider::{DecodedResult, Stop};
use crate::{
    ChangeKind, FileChange, PermissionEvent, Retract, Text, ToolKind, ToolResult, ToolUse, TurnEnd,
};
use serde_json::Value;

/// A decoder of scripted lines: `{"t":…}` text, `{"m":…,"t":…}` text of a message, `{"u":…}` tool use, `{"r":…}`
/// tool result, `{"x":…}` retract, `{"think":…}` reasoning, `{"file":…}` a changed file, `{"no":…}` a
/// denied call, `{"end":bool}` the end.
#[derive(Default)]
struct Scripted {
    ended: Option<bool>,
}

impl Decoder for Scripted {
    fn line(&mut self, line: &[u8], out: &mut Events) {
        let Ok(v) = serde_json::from_slice::<Value>(line) else {
            return out.unknown(line);
        };
        let id = |key: &str| v[key].as_str().map(Id::from);
        if let Some(text) = v["t"].as_str() {
            out.push(Text::new(text).message_id(id("m")));
        } else if let Some(tool_id) = id("u") {
            out.push(ToolUse::new(
                "Bash",
                tool_id,
                ToolKind::Execute,
                Value::Null,
            ));
        } else if let Some(tool_id) = id("r") {
            out.push(ToolResult::new(tool_id, ""));
        } else if let Some(message_id) = id("x") {
            out.push(Retract { message_id });
        } else if let Some(text) = v["think"].as_str() {
            out.push(Thinking::new(text));
        } else if let Some(path) = v["file"].as_str() {
            out.push(FileChange::new(path, ChangeKind::Add));
        } else if let Some(id) = v["no"].as_str() {
            let id = Some(id).filter(|id| !id.is_empty()).map(Id::from);
            out.push(PermissionEvent::new("Bash", Decision::Denied).tool_id(id));
        } else if let Some(is_error) = v["end"].as_bool() {
            self.ended = Some(is_error);
            out.push(TurnEnd::new(is_error));
        } else {
            out.unknown(line);
        }
    }

    fn finish(&mut self, _: &Exit, _: &mut Events) -> DecodedResult {
        DecodedResult {
            ended_with_error: self.ended,
            ..DecodedResult::default()
        }
    }

    fn stderr_evidence<'a>(&self, stderr: &'a str) -> Cow<'a, str> {
        Cow::Owned(stderr.replace("as always\n", ""))
    }

    fn classify_exit_code(&self, code: i32) -> Option<ErrorKind> {
        (code == 41).then_some(ErrorKind::Auth)
    }

    fn classify_stderr(&self, stderr: &str) -> Option<ErrorKind> {
        stderr
            .contains("No conversation")
            .then_some(ErrorKind::SessionNotFound)
    }
}

fn run(lines: &[&str], exit: Exit) -> (Vec<AgentEvent>, RunResult) {
    let mut assembler = RunAssembler::new(Box::new(Scripted::default()));
    let mut out = Events::new();
    for line in lines {
        assembler.line(line.as_bytes(), &mut out);
    }
    assembler.finish(exit, 7, &mut out);
    let events: Vec<_> = out.drain().collect();
    grammar::check(&events).unwrap();
    let AgentEvent::Done(done) = events.last().unwrap().clone() else {
        panic!("no done");
    };
    (events, *done.result)
}

fn exit(code: i32, stderr: &str) -> Exit {
    Exit {
        code: Some(code),
        stderr: stderr.into(),
        ..Exit::default()
    }
}

fn codes(result: &RunResult) -> Vec<ErrorCode> {
    result.errors.iter().map(|e| e.code).collect()
}

#[test]
fn text_excludes_retracted_messages() {
    let (_, result) = run(
        &[
            r#"{"m":"a","t":"old "}"#,
            r#"{"m":"b","t":"other "}"#,
            r#"{"m":"a","t":"older "}"#,
            r#"{"x":"a"}"#,
            r#"{"m":"c","t":"new"}"#,
            r#"{"end":false}"#,
        ],
        exit(0, ""),
    );
    assert_eq!(result.text, "other new");
    assert_eq!(result.final_message.as_deref(), Some("new"));
    assert_eq!(result.status, RunStatus::Completed);
    assert_eq!(result.duration_ms, 7);
}

#[test]
fn events_that_break_the_grammar_become_unknown() {
    let (events, result) = run(
        &[
            r#"{"r":"never-called"}"#,
            r#"{"u":"1"}"#,
            r#"{"u":"1"}"#,
            r#"{"r":"1"}"#,
            r#"{"r":"1"}"#,
            r#"{"u":"2"}"#,
            r#"{"end":false}"#,
        ],
        exit(0, ""),
    );
    let names: Vec<_> = events.iter().map(AgentEvent::type_name).collect();
    assert_eq!(
        names.join(" "),
        "unknown tool_use unknown tool_result unknown tool_use turn_end done"
    );
    assert_eq!(result.open_tool_ids, [Id::from("2")]);
    assert_eq!(result.diagnostics.unknown, 3);
}

#[test]
fn an_end_that_is_missing_is_never_success() {
    let (_, result) = run(&[r#"{"t":"half"}"#], exit(0, ""));
    assert_eq!(result.status, RunStatus::Incomplete);
    assert_eq!(codes(&result), [ErrorCode::StreamEndedEarly]);
    assert!(result.errors[0].retryable);
}

#[test]
fn a_failure_becomes_one_error_with_the_best_evidence() {
    let (_, result) = run(&[], exit(1, "Error: No conversation found\n"));
    assert_eq!(codes(&result), [ErrorCode::CliStderr]);
    assert_eq!(result.errors[0].kind, ErrorKind::SessionNotFound);
    assert_eq!(result.errors[0].message, "Error: No conversation found");
    assert_eq!(result.status, RunStatus::Failed);

    let (_, result) = run(&[r#"{"t":"x"}"#], exit(143, ""));
    assert_eq!(codes(&result), [ErrorCode::CliExitError]);
    assert_eq!(result.status, RunStatus::Failed);

    let signal = Exit {
        signal: Some("SIGKILL".into()),
        ..Exit::default()
    };
    let (_, result) = run(&[], signal.clone());
    assert!(result.errors[0].message.contains("SIGKILL"));
    // What it had written before is not why it was killed.
    let signal = Exit {
        stderr: "slow disk\n".into(),
        ..signal
    };
    let (_, result) = run(&[], signal);
    assert_eq!(codes(&result), [ErrorCode::CliExitError]);
    assert!(result.errors[0].retryable);
    let message = &result.errors[0].message;
    assert!(message.ends_with("; stderr: slow disk"), "{message}");
}

#[test]
fn usual_stderr_output_is_no_evidence() {
    let (_, result) = run(&[], exit(1, "as always\n"));
    assert_eq!(codes(&result), [ErrorCode::CliExitError]);
    let (_, result) = run(&[], exit(1, "as always\nno disk\n"));
    assert_eq!(codes(&result), [ErrorCode::CliStderr]);
    assert_eq!(result.errors[0].message, "no disk");
    // The result has all of stderr.
    assert_eq!(result.stderr.as_deref(), Some("as always\nno disk\n"));
    let (_, result) = run(&[r#"{"t":"x"}"#], exit(0, "as always\n"));
    assert_eq!(codes(&result), [ErrorCode::StreamEndedEarly]);
    assert!(!result.errors[0].message.contains("always"));
}

#[test]
fn an_exit_code_decides_without_an_error_text() {
    let kind = |code, stderr| run(&[], exit(code, stderr)).1.errors[0].kind;
    assert_eq!(kind(41, ""), ErrorKind::Auth);
    assert_eq!(kind(41, "no disk"), ErrorKind::Auth);
    assert_eq!(kind(41, "No conversation"), ErrorKind::SessionNotFound);
    assert_eq!(kind(42, "no disk"), ErrorKind::Internal);
}

#[test]
fn output_on_stderr_alone_is_an_error_even_with_exit_code_0() {
    let (_, result) = run(&[], exit(0, "please log in"));
    assert_eq!(codes(&result), [ErrorCode::CliStderr]);
    assert_eq!(result.status, RunStatus::Failed);
}

#[test]
fn an_exit_code_after_a_good_end_changes_nothing() {
    let (_, result) = run(&[r#"{"t":"x"}"#, r#"{"end":false}"#], exit(9, "noise"));
    assert_eq!(result.status, RunStatus::Completed);
    assert_eq!(codes(&result), []);
    assert_eq!(result.exit_code, Some(9));
    assert_eq!(result.stderr.as_deref(), Some("noise"));
}

#[test]
fn stopping_decides_the_status() {
    let aborted = Exit {
        stop: Some(Stop::Aborted),
        ..exit(143, "bye")
    };
    let (_, result) = run(&[r#"{"t":"x"}"#], aborted);
    assert_eq!(result.status, RunStatus::Aborted);
    assert!(result.aborted);
    assert_eq!(codes(&result), [ErrorCode::Aborted]);

    let late = Exit {
        stop: Some(Stop::Timeout(AgentError::new(
            ErrorCode::WatchdogTimeout,
            ErrorKind::Timeout,
            "no line for 5 s",
        ))),
        ..exit(143, "waiting for a login")
    };
    let (_, result) = run(&[r#"{"t":"x"}"#], late);
    assert_eq!(result.status, RunStatus::TimedOut);
    assert_eq!(
        result.errors[0].message,
        "no line for 5 s; stderr: waiting for a login"
    );

    let lingering = Exit {
        stop: Some(Stop::Lingering),
        signal: Some("SIGKILL".into()),
        ..Exit::default()
    };
    let (_, result) = run(&[r#"{"t":"x"}"#, r#"{"end":false}"#], lingering);
    assert_eq!(result.status, RunStatus::Completed);
}

#[test]
fn a_requested_interruption_is_reported_once() {
    struct Interrupted;
    impl Decoder for Interrupted {
        fn line(&mut self, _: &[u8], out: &mut Events) {
            out.error(AgentError::new(
                ErrorCode::CliError,
                ErrorKind::Aborted,
                "interrupted",
            ));
        }
        fn finish(&mut self, _: &Exit, _: &mut Events) -> DecodedResult {
            DecodedResult::default()
        }
    }
    let errors = |stopping: bool| {
        let mut assembler = RunAssembler::new(Box::new(Interrupted));
        let mut out = Events::new();
        if stopping {
            assembler.stop_requested();
        }
        assembler.line(b"{}", &mut out);
        out.len()
    };
    assert_eq!(errors(false), 1);
    assert_eq!(errors(true), 0);
}

#[test]
fn lines_that_are_no_json_are_notices() {
    let (events, result) = run(
        &[
            "Loading…",
            "  ",
            r#"{"half"#,
            r#"{"new":1}"#,
            r#"{"t":"x"}"#,
            r#"{"end":false}"#,
        ],
        exit(0, ""),
    );
    let names: Vec<_> = events.iter().map(AgentEvent::type_name).collect();
    assert_eq!(names.join(" "), "notice notice unknown text turn_end done");
    assert_eq!(
        result.diagnostics,
        Diagnostics {
            lines: 5,
            malformed: 2,
            oversize: 0,
            unknown: 1,
            unfinished_calls: 0
        }
    );
}

#[test]
fn phases() {
    let mut assembler = RunAssembler::new(Box::new(Scripted::default()));
    let mut out = Events::new();
    assert_eq!(assembler.phase(), Phase::Startup);
    assembler.line(br#"{"t":"x"}"#, &mut out);
    assert_eq!(assembler.phase(), Phase::Model);
    assembler.line(br#"{"u":"1"}"#, &mut out);
    assert_eq!(assembler.phase(), Phase::Tools(vec!["Bash".into()]));
    assembler.line(br#"{"r":"1"}"#, &mut out);
    assembler.line(br#"{"end":false}"#, &mut out);
    assert_eq!(assembler.phase(), Phase::Ended);
    assembler.line(br#"{"t":"again"}"#, &mut out);
    assert_eq!(assembler.phase(), Phase::Model);
}

#[test]
fn every_event_carries_its_line_when_asked() {
    let mut assembler = RunAssembler::new(Box::new(Scripted::default())).include_native(true);
    let mut out = Events::new();
    assembler.line(br#"{"t":  "x"}"#, &mut out);
    let entries: Vec<_> = out.drain_entries(0).collect();
    assert_eq!(entries[0].native().unwrap().get(), r#"{"t":  "x"}"#);
}

#[test]
fn the_last_message_begins_after_the_last_tool_result() {
    // A CLI without message ids that keeps writing text while a tool runs.
    let (_, result) = run(
        &[
            r#"{"t":"Before. "}"#,
            r#"{"u":"1"}"#,
            r#"{"t":"After. "}"#,
            r#"{"r":"1"}"#,
            r#"{"t":"Do"}"#,
            r#"{"t":"ne."}"#,
            r#"{"end":false}"#,
        ],
        exit(0, ""),
    );
    assert_eq!(result.text, "Before. After. Done.");
    assert_eq!(result.final_message.as_deref(), Some("Done."));
}

#[test]
fn unreadable_line_is_a_string_and_counts_as_malformed() {
    let deep = |levels: usize| format!(r#"{{"new":{}{}}}"#, "[".repeat(levels), "]".repeat(levels));
    let (beyond, unread) = (deep(150), deep(110));
    let lines = [
        &*beyond,
        &unread,
        r#"{"new":1}"#,
        r#"{"t":"x"}"#,
        r#"{"end":false}"#,
    ];
    let (events, result) = run(&lines, exit(0, ""));
    let natives: Vec<Value> = (events.iter())
        .filter_map(|event| match event {
            AgentEvent::Unknown(unknown) => serde_json::from_str(unknown.native.get()).ok(),
            _ => None,
        })
        .collect();
    assert_eq!(
        natives,
        [
            Value::from(beyond),
            Value::from(unread),
            serde_json::json!({"new": 1})
        ]
    );
    assert_eq!(result.diagnostics.malformed, 1);
    assert_eq!(result.diagnostics.unknown, 2);
}
