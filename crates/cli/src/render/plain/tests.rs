use serde_json::json;
use teamster::{
    ErrorCode, ErrorKind, Notice, NoticeCode, NoticeLevel, NoticeSource, RunResult, RunStatus,
};
use teamster_api::LifecycleEntry;

use super::*;
use crate::render::View;
use crate::render::tests::{
    Screen, agent, agent_text, attempt, done, ended, error, fallback, of_run, retract, retried,
    retry, session, text, tool, tool_ended, tool_ok, view,
};

/// Returns stdout and stderr of a run whose output goes to pipes.
fn shown(view: View, events: &[AgentEvent]) -> (String, String) {
    shown_on(false, view, events)
}

fn shown_on(terminal: bool, view: View, events: &[AgentEvent]) -> (String, String) {
    let (out, err) = (Screen::default(), Screen::default());
    let mut plain = Plain::new(out.clone(), err.clone(), Narrator::new(view), terminal);
    for event in events {
        plain.entry(&agent(event.clone()), Duration::ZERO).unwrap();
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
fn text_goes_to_stdout_and_lines_to_stderr() {
    let (out, err) = shown(
        view(),
        &[
            session(),
            text("m1", "One "),
            text("m1", "call.\n"),
            tool("t1", None, "Bash", json!({"command": "echo one"})),
            agent_text(Some("m2"), Some("t1"), "a sub-agent"),
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
  resume with: teamster run claude --resume s-1 PROMPT
"
    );
}

#[test]
fn an_untested_version_is_noticed_once() {
    let notice = |text: &str| -> AgentEvent {
        let notice = Notice::new(NoticeLevel::Info, NoticeSource::Runtime, text);
        notice.code(NoticeCode::UntestedVersion).into()
    };
    let (_, err) = shown(view(), &[notice("version 9"), notice("version 9 again")]);
    assert_eq!(err, "  version 9\n");
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
    assert!(!err.contains("retracted"), "{err}");
}

#[test]
fn text_that_was_written_before_it_was_withdrawn_is_explained() {
    let (out, err) = shown(
        view(),
        &[
            text("m1", "I run it."),
            tool("t1", None, "Bash", json!({})),
            retract("m1"),
        ],
    );
    assert_eq!(out, "I run it.\n");
    assert!(err.contains("retracted"), "{err}");
}

#[test]
fn final_text_is_written_as_it_comes() {
    let (out, err) = (Screen::default(), Screen::default());
    let narrator = Narrator::new(view());
    let mut plain = Plain::new(out.clone(), err.clone(), narrator, false).streaming();
    let mut after = |event| {
        plain.entry(&agent(event), Duration::ZERO).unwrap();
        out.raw()
    };
    assert_eq!(after(text("m1", "\n")), "");
    assert_eq!(after(text("m1", "\n One")), " One");
    assert_eq!(after(text("m1", " two.\n\n")), " One two.");
    assert_eq!(after(text("m1", "Three.\n\n")), " One two.\n\nThree.");
    let first = " One two.\n\nThree.\n";
    assert_eq!(after(tool("t1", None, "Read", json!({}))), first);
    assert_eq!(after(text("m2", " \n")), first);
    assert_eq!(after(text("m3", "Four")), format!("{first}\nFour"));
    assert_eq!(after(done("Four")), format!("{first}\nFour\n"));
}

#[test]
fn without_a_login_there_is_no_session_to_resume() {
    let failed = |output_tokens| {
        RunResult::default()
            .session_id("s-1")
            .usage(teamster::Usage::default().output_tokens(output_tokens))
            .errors(vec![teamster::AgentError::new(
                ErrorCode::CliError,
                ErrorKind::Auth,
                "Not logged in",
            )])
    };
    let (_, err) = shown(view(), &[ended(failed(None))]);
    assert!(!err.contains("resume with"), "{err}");
    let (_, err) = shown(view(), &[ended(failed(Some(7)))]);
    assert!(
        err.contains("resume with: teamster run claude --resume s-1"),
        "{err}"
    );
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
fn quiet_still_reports_errors() {
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
        "error: no such model\n  next: choose a model of Claude Code with --model\n"
    );
}

#[test]
fn quiet_with_a_schema_is_the_answer_in_it() {
    let result = RunResult::default()
        .status(RunStatus::Completed)
        .text("Here it is.")
        .structured_output(json!({"n": 3}));
    let (out, _) = shown(quiet(), &[ended(result)]);
    assert_eq!(out, "{\n  \"n\": 3\n}\n");
}

#[test]
fn a_terminal_gets_text_without_control_characters() {
    let hostile = "\u{1b}]52;c;eA==\u{7}a\u{1b}[2J\rb\u{9b}2J\tc\n";
    for view in [view(), quiet()] {
        let (out, _) = shown_on(true, view, &[text("m1", hostile), done(hostile)]);
        assert_eq!(out, "]52;c;eA==a[2Jb2J\tc\n");
    }
}

#[test]
fn a_pipe_gets_text_unchanged() {
    let (out, _) = shown(view(), &[text("m1", "\u{1b}[31mred"), done("x")]);
    assert_eq!(out, "\u{1b}[31mred\n");
}

/// Returns stdout and stderr of a run with several attempts after each entry.
fn held_back(terminal: bool, entries: &[RunLogEntry]) -> Vec<(String, String)> {
    let (out, err) = (Screen::default(), Screen::default());
    let mut plain = Plain::new(out.clone(), err.clone(), Narrator::new(view()), terminal);
    if !terminal {
        plain = plain.holding_back();
    }
    let shown = entries.iter().map(|entry| {
        plain.entry(entry, Duration::ZERO).unwrap();
        (out.raw(), err.raw())
    });
    shown.collect()
}

#[test]
fn text_withdrawn_by_the_next_attempt_is_not_written() {
    let entries = [
        agent(text("m1", "Void, whole.")),
        agent(tool("t1", None, "Read", json!({}))),
        agent(text("m2", "Void, half")),
        // The CLI's own retry.
        agent(retry()),
        of_run(retried(None)),
        agent(retract("m1")),
        agent(retract("m2")),
        agent(retry()),
        of_run(attempt("claude")),
        agent(text("m3", "It stands.")),
        agent(done("It stands.")),
    ];
    let shown = held_back(false, &entries);
    assert!(
        shown[..10].iter().all(|(out, _)| out.is_empty()),
        "{shown:?}"
    );
    let (out, err) = &shown[10];
    assert_eq!(out, "It stands.\n");
    assert!(
        err.contains("overloaded (the text so far is discarded)"),
        "{err}"
    );
    assert_eq!(err.matches("discarded").count(), 1, "{err}");
    assert!(!err.contains("retracted"), "{err}");
    // A terminal shows text as it comes.
    let shown = held_back(true, &entries);
    assert_eq!(shown[1].0, "Void, whole.\n");
    assert!(shown[10].1.contains("is discarded"), "{}", shown[10].1);
    assert!(!shown[10].1.contains("retracted"), "{}", shown[10].1);
}

#[test]
fn fallback_applies_its_own_retractions_and_retries() {
    let shown = held_back(
        true,
        &[
            agent(text("m1", "Void.")),
            agent(tool("t1", None, "Read", json!({}))),
            of_run(fallback("codex")),
            agent(retract("m1")),
            of_run(attempt("codex")),
            agent(text("m2", "I run it.")),
            agent(tool("t2", None, "Read", json!({}))),
            agent(retry()),
            agent(retract("m2")),
        ],
    );
    assert_eq!(shown[6].1, "");
    assert_eq!(
        shown[8].1,
        "  retrying (1 of 10) in 0.6s: overloaded\n(that message was retracted; the agent retries)\n"
    );
}

#[test]
fn kept_text_is_written_when_the_session_is_resumed() {
    let shown = held_back(
        false,
        &[
            agent(text("m1", "Done so far.")),
            agent(tool("t1", None, "Bash", json!({}))),
            // The CLI's own retry keeps the text.
            agent(retry()),
            of_run(retried(Some("s-1"))),
            agent(retry()),
            of_run(attempt("claude")),
            agent(text("m2", "And more.")),
            agent(tool("t2", None, "Bash", json!({}))),
        ],
    );
    assert_eq!(shown[2].0, "");
    assert_eq!(shown[3].0, "Done so far.\n");
    assert_eq!(shown[7].0, "Done so far.\n\nAnd more.\n");
    assert!(!shown[7].1.contains("discarded"), "{}", shown[7].1);
}

#[test]
fn a_gap_in_the_log_is_a_warning() {
    let reset = LifecycleEntry::new(RunEvent::reset("r-1".into()))
        .seq(7)
        .into();
    let damaged = LifecycleEntry::new(RunEvent::damaged("r-1".into()))
        .seq(9)
        .into();
    let shown = held_back(false, &[reset, damaged]);
    assert_eq!(
        shown[1].1,
        "warning: entries 1 to 7 were removed to free space\n\
         warning: entries up to 9 are damaged and left out\n"
    );
}
