use serde_json::json;
use teamster::{ErrorCode, ErrorKind, RunResult, RunStatus};

use super::*;
use crate::render::View;
use crate::render::testing::{
    Screen, done, ended, error, retract, said, session, text, tool, tool_ended, tool_ok, view,
};

/// What stdout and stderr get if they are pipes.
fn shown(view: View, events: &[AgentEvent]) -> (String, String) {
    shown_on(false, view, events)
}

fn shown_on(terminal: bool, view: View, events: &[AgentEvent]) -> (String, String) {
    let (out, err) = (Screen::default(), Screen::default());
    let mut plain = Plain::new(out.clone(), err.clone(), Narrator::new(view), terminal);
    for event in events {
        plain.event(event, Duration::ZERO).unwrap();
    }
    (out.raw(), err.raw())
}

fn quiet() -> View {
    View {
        quiet: true,
        ..view()
    }
}

#[test]
fn the_text_is_apart_from_the_rest() {
    let (out, err) = shown(
        view(),
        &[
            session(),
            text("m1", "One "),
            text("m1", "call.\n"),
            tool("t1", None, "Bash", json!({"command": "echo one"})),
            said(Some("m2"), Some("t1"), "a sub-agent"),
            tool_ok("t1", "one"),
            text("m3", "It ran."),
            done("It ran."),
        ],
    );
    assert_eq!(out, "One call.\n\nIt ran.\n");
    assert_eq!(
        err,
        "\
Claude Code · claude-opus-4-8 · session s-1
  ✓ Bash  echo one  0.0s
✓ completed · 6 turns · tokens 60 in, 1.3k out, 45k from cache · $0.0034 · 1.7s
  go on with: teamster run claude --resume s-1 PROMPT
"
    );
}

#[test]
fn a_command_whose_outcome_is_not_known_is_no_success() {
    let (_, err) = shown(
        view(),
        &[
            tool("t1", None, "run_shell_command", json!({"command": "x"})),
            tool_ended("t1", ""),
        ],
    );
    assert_eq!(err, "  • run_shell_command  x  0.0s\n");
}

#[test]
fn withdrawn_text_is_not_written() {
    let (out, err) = shown(
        view(),
        &[
            text("m1", "Half a"),
            retract("m1"),
            text("m2", "Whole."),
            done("Whole."),
        ],
    );
    assert_eq!(out, "Whole.\n");
    assert!(!err.contains("withdrawn"), "{err}");
}

#[test]
fn text_that_was_written_before_it_was_withdrawn_is_told_about() {
    let (out, err) = shown(
        view(),
        &[
            text("m1", "I run it."),
            tool("t1", None, "Bash", json!({})),
            retract("m1"),
        ],
    );
    assert_eq!(out, "I run it.\n");
    assert!(err.contains("withdrawn"), "{err}");
}

#[test]
fn quiet_is_the_last_message_only() {
    let (out, err) = shown(
        quiet(),
        &[
            session(),
            text("m1", "I will look."),
            tool("t1", None, "Bash", json!({})),
            tool_ok("t1", ""),
            text("m2", "42"),
            done("42"),
        ],
    );
    assert_eq!((&*out, &*err), ("42\n", ""));
}

#[test]
fn quiet_still_tells_errors() {
    let (out, err) = shown(
        quiet(),
        &[
            error(
                ErrorCode::CliError,
                ErrorKind::ModelNotFound,
                "no such model",
            ),
            ended(RunResult::default()),
        ],
    );
    assert_eq!(out, "");
    assert_eq!(
        err,
        "error: no such model\n  next: choose a model that Claude Code knows with --model\n"
    );
}

#[test]
fn quiet_with_a_schema_is_the_answer_in_it() {
    let result = RunResult {
        status: RunStatus::Completed,
        text: "Here it is.".into(),
        structured_output: Some(json!({"n": 3})),
        ..RunResult::default()
    };
    let (out, _) = shown(quiet(), &[ended(result)]);
    assert_eq!(out, "{\n  \"n\": 3\n}\n");
}

#[test]
fn what_the_agent_says_is_only_text_for_a_terminal() {
    let said = "\u{1b}]52;c;eA==\u{7}a\u{1b}[2J\rb\u{9b}2J\tc\n";
    for view in [view(), quiet()] {
        let (out, _) = shown_on(true, view, &[text("m1", said), done(said)]);
        assert_eq!(out, "]52;c;eA==a[2Jb2J\tc\n");
    }
}

#[test]
fn what_the_agent_says_goes_to_a_pipe_as_it_is() {
    let (out, _) = shown(view(), &[text("m1", "\u{1b}[31mred"), done("x")]);
    assert_eq!(out, "\u{1b}[31mred\n");
}
