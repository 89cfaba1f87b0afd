use std::cell::RefCell;
use std::rc::Rc;

use serde_json::json;
use teamster::{
    AgentError, Decision, ErrorCode, ErrorKind, PermissionDenial, PermissionEvent, RunResult,
    RunStatus,
};

use super::*;
use crate::render::View;
use crate::render::tests::{
    Screen, agent, agent_text, attempt, done, ended, error, of_run, retract, retried, retry,
    session, text, thinking, tool, tool_failed, tool_ok, view,
};

/// A spinner that stores its text.
#[derive(Debug, Clone, Default)]
struct Recorder(Rc<RefCell<Option<String>>>);

impl Spinner for Recorder {
    fn show(&mut self, text: &str) {
        self.0.replace(Some(text.to_owned()));
    }

    fn show_after(&mut self, text: &str, room: usize) {
        self.show(&format!("after {room}: {text}"));
    }

    fn hide(&mut self) {
        self.0.take();
    }
}

struct Shown {
    terminal: Terminal<Screen, Screen, Recorder>,
    screen: Screen,
    spinner: Recorder,
}

fn terminal(view: View) -> Shown {
    let (screen, spinner) = (Screen::default(), Recorder::default());
    let terminal = Terminal::new(
        screen.clone(),
        screen.clone(),
        spinner.clone(),
        Narrator::new(view),
        || Some(60),
    );
    Shown {
        terminal,
        screen,
        spinner,
    }
}

impl Shown {
    fn event(&mut self, event: &AgentEvent, ms: u64) {
        self.entry(&agent(event.clone()), ms);
    }

    fn entry(&mut self, entry: &RunLogEntry, ms: u64) {
        self.terminal
            .entry(entry, Duration::from_millis(ms))
            .unwrap();
    }

    fn events(mut self, events: &[AgentEvent]) -> String {
        for (event, ms) in events.iter().zip((0..).step_by(300)) {
            self.event(event, ms);
        }
        self.screen.text()
    }
}

#[test]
fn a_whole_run() {
    let text = terminal(view()).events(&[
        session(),
        text("m1", "Two "),
        text("m1", "calls."),
        tool(
            "t1",
            None,
            "Bash",
            json!({"command": "echo one", "description": "x"}),
        ),
        tool("t2", None, "Read", json!({"file_path": "/tmp/ws/src/a.rs"})),
        tool_ok("t1", "one"),
        tool_failed(
            "t2",
            "<tool_use_error>File does not exist.</tool_use_error>",
        ),
        retry(),
        text("m2", "Both ran.\n"),
        done("Both ran.\n"),
    ]);
    assert_eq!(
        text,
        "\
Claude Code · claude-opus-4-8 · session s-1

Two calls.

  ✓ Bash  echo one  0.6s
  ✗ Read  src/a.rs  0.6s
    File does not exist.
  retrying (1 of 10) in 0.6s: overloaded

Both ran.

✓ completed · 6 turns · tokens 60 in, 1.3k out, 45k from
  cache · $0.0034 · 1.7s
  resume with: teamster run claude --resume s-1 PROMPT
"
    );
}

#[test]
fn sub_agents_are_indented_below_their_tool() {
    let text = terminal(view()).events(&[
        tool(
            "a",
            None,
            "Agent",
            json!({"description": "sub job", "prompt": "long"}),
        ),
        agent_text(Some("m2"), Some("a"), "not shown"),
        tool("b", Some("a"), "Agent", json!({"description": "deeper"})),
        tool("c", Some("b"), "Bash", json!({"command": "x".repeat(80)})),
        tool_ok("c", ""),
        tool_ok("b", ""),
        tool_ok("a", ""),
    ]);
    assert_eq!(
        text,
        "  ▸ Agent  sub job\n    ▸ Agent  deeper\n      ✓ Bash  ".to_owned()
            + &"x".repeat(38)
            + "…  0.3s\n    ✓ Agent  deeper  0.9s\n  ✓ Agent  sub job  1.8s\n"
    );
}

#[test]
fn text_that_the_next_attempt_withdraws_is_reported() {
    for (resumes, reported) in [
        (None, " (the text so far is discarded)\n"),
        (Some("s-1"), "overloaded\n"),
    ] {
        let mut shown = terminal(view());
        shown.event(&text("m1", "Half an answer"), 0);
        shown.entry(&of_run(retried(resumes)), 300);
        if resumes.is_none() {
            shown.event(&retract("m1"), 300);
        }
        shown.event(&retry(), 300);
        shown.entry(&of_run(attempt("claude")), 600);
        // No text since.
        shown.entry(&of_run(retried(None)), 600);
        shown.event(&retry(), 600);
        let text = shown.screen.text();
        assert!(text.contains(reported), "{text}");
        assert!(!text.contains("retracted"), "{text}");
        assert_eq!(
            text.matches("discarded").count(),
            usize::from(resumes.is_none()),
            "{text}"
        );
    }
}

#[test]
fn withdrawn_text_is_marked() {
    let text = terminal(view()).events(&[
        text("m1", "This will be cut"),
        retract("m1"),
        retract("m9"),
        text("m2", "Again."),
    ]);
    assert_eq!(
        text,
        "This will be cut\n\n(that message was retracted; the agent retries)\n\nAgain."
    );
}

#[test]
fn messages_are_paragraphs() {
    let text = terminal(view()).events(&[
        text("m1", "One.\n"),
        text("m1", "\nStill one.\n\n\n"),
        text("m2", "\n\nTwo."),
        text("m2", "\n"),
    ]);
    assert_eq!(text, "One.\n\nStill one.\n\n\nTwo.\n");
}

#[test]
fn an_error_comes_with_the_next_step() {
    let text = terminal(view()).events(&[
        error(ErrorCode::CliError, ErrorKind::Auth, "Not logged in"),
        error(
            ErrorCode::CliNotFound,
            ErrorKind::NotFound,
            "no such\nprogram",
        ),
        error(
            ErrorCode::Aborted,
            ErrorKind::Aborted,
            "not reported: the end has it",
        ),
        ended(RunResult::default().status(RunStatus::Aborted)),
    ]);
    assert_eq!(
        text,
        "\
error: Not logged in
  next: log in with `claude` and then /login, or set
    ANTHROPIC_API_KEY in the environment
error: no such
  program
  next: install it with
    `npm install -g @anthropic-ai/claude-code`, or set its
    path with --bin; `teamster doctor` lists the agents
    that it finds

✗ stopped · 0.0s
"
    );
}

#[test]
fn a_session_that_does_not_exist_is_not_offered() {
    let text =
        terminal(view()).events(&[ended(RunResult::default().session_id("s-1").errors(vec![
            AgentError::new(ErrorCode::CliError, ErrorKind::SessionNotFound, "x"),
        ]))]);
    assert_eq!(text, "✗ failed · 0.0s\n");
}

#[test]
fn denials_are_summed_up_with_the_flag() {
    let denial = |name: &str| PermissionDenial::new(name);
    let text = terminal(view()).events(&[ended(
        RunResult::default()
            .status(RunStatus::Completed)
            .permission_denials(vec![denial("Write"), denial("Bash"), denial("Write")]),
    )]);
    assert_eq!(
        text,
        "\
permission denied: 3 tool calls (Bash, Write): allow it
  with --allow-tool, --permission accept-edits or
  --permission bypass

✓ completed · 0.0s
"
    );
}

#[test]
fn only_a_denial_without_an_answer_shows_a_flag() {
    for (timed_out, expected) in [
        (false, "permission denied: 1 tool call (Bash)\n"),
        (
            true,
            "permission denied: 1 tool call (Bash): allow it with\n  --allow-tool",
        ),
    ] {
        let mut denied = PermissionEvent::new("Bash", Decision::Denied).request_id("r/1");
        denied.timed_out = timed_out;
        let result = RunResult::default().permission_denials(vec![PermissionDenial::new("Bash")]);
        let events = [AgentEvent::Permission(Box::new(denied)), ended(result)];
        let text = terminal(view()).events(&events);
        assert!(text.contains(expected), "{text}");
    }
}

#[test]
fn thinking_is_shown_with_verbose() {
    let events = [
        thinking("Let me "),
        thinking("think.\nHm."),
        text("m1", "42"),
    ];
    assert_eq!(terminal(view()).events(&events), "42");
    let verbose = View {
        verbose: true,
        ..view()
    };
    assert_eq!(
        terminal(verbose).events(&events),
        "  Let me think.\n  Hm.\n\n42"
    );
}

#[test]
fn a_structured_answer_is_shown_unless_it_is_the_message() {
    let result = |message: &str| {
        ended(
            RunResult::default()
                .status(RunStatus::Completed)
                .final_message(message)
                .structured_output(json!({"n": 3})),
        )
    };
    assert_eq!(
        terminal(view()).events(&[text("m1", "Here."), result("Here.")]),
        "Here.\n\n{\n  \"n\": 3\n}\n\n✓ completed · 0.0s\n"
    );
    assert_eq!(
        terminal(view()).events(&[result("{\"n\":3}")]),
        "✓ completed · 0.0s\n"
    );
}

#[test]
fn the_agent_cannot_move_the_cursor() {
    let mut shown = terminal(view());
    shown.event(&text("m1", "a\u{1b}[2Jb\rc\u{9b}31m"), 0);
    assert_eq!(shown.screen.raw(), "a[2Jbc31m");
}

#[test]
fn the_spinner_after_text_is_removed_before_its_line_ends() {
    let mut shown = terminal(view());
    shown.event(&session(), 0);
    shown.event(&text("m1", "I look"), 100);
    shown.terminal.tick(Duration::from_secs(3));
    let spinner = shown.spinner.0.borrow().clone().unwrap();
    assert!(spinner.starts_with("after "), "{spinner}");
    let call = tool("t1", None, "Bash", json!({"command": "ls"}));
    shown.event(&call, 3100);
    assert_eq!(*shown.spinner.0.borrow(), None);
    assert!(shown.screen.text().ends_with("I look\n"));
}

#[test]
fn the_spinner_is_shown_after_text_whose_line_is_open() {
    let mut shown = terminal(view());
    let spins = |shown: &mut Shown, ms| {
        shown.terminal.tick(Duration::from_millis(ms));
        shown.spinner.0.borrow().clone()
    };
    assert_eq!(spins(&mut shown, 0).unwrap(), "starting Claude Code");
    assert_eq!(spins(&mut shown, 300).unwrap(), "starting Claude Code");
    shown.event(&session(), 400);
    assert_eq!(*shown.spinner.0.borrow(), None);
    assert_eq!(spins(&mut shown, 600), None);
    assert_eq!(
        spins(&mut shown, 3000).unwrap(),
        "waiting for the model  2.6s"
    );
    shown.event(&thinking("hm"), 3100);
    assert_eq!(spins(&mut shown, 3400).unwrap(), "thinking");
    shown.event(&text("m1", "half a li"), 3500);
    assert_eq!(spins(&mut shown, 4400), None);
    // Of 60 columns, 12 are used, and 4 stay free.
    assert_eq!(
        spins(&mut shown, 4500).unwrap(),
        "after 47: waiting for the model"
    );
    shown.event(&text("m1", "ne\n日本\t"), 4600);
    assert_eq!(*shown.spinner.0.borrow(), None);
    // After a tab, the column is not known.
    assert_eq!(spins(&mut shown, 5900), None);
    // A tool ends the text.
    shown.event(&tool("t1", None, "Bash", json!({"command": "ls"})), 9000);
    shown.event(&tool("t2", None, "Bash", json!({"command": "pwd"})), 9000);
    assert_eq!(
        spins(&mut shown, 21_000).unwrap(),
        "Bash  12s  pwd  (and 1 more)"
    );
    shown.terminal.stopping(Duration::from_secs(22));
    assert_eq!(
        shown.spinner.0.borrow().as_deref(),
        Some("stopping Claude Code")
    );
    shown.event(&tool_ok("t1", ""), 22_500);
    assert!(
        shown
            .screen
            .text()
            .ends_with("half a line\n日本\t\n\n  ✓ Bash  ls  14s\n")
    );
}

#[test]
fn markdown_is_shown_as_it_comes_and_whole_before_anything_else() {
    let mut shown = terminal(view());
    shown.terminal = shown.terminal.with_markdown();
    shown.event(&text("m1", "\n## Wh"), 0);
    assert_eq!(shown.screen.text(), "");
    shown.event(&text("m1", "at\nIt is **bo"), 100);
    assert_eq!(shown.screen.raw(), "\u{1b}[1mWhat\u{1b}[0m\nIt is");
    shown.event(&text("m1", "ld** and wh"), 200);
    shown.terminal.tick(Duration::from_millis(250));
    assert!(shown.screen.text().ends_with("It is bold and"));
    shown.terminal.tick(Duration::from_millis(300));
    assert!(shown.screen.text().ends_with("It is bold and wh"));
    shown.event(&text("m1", "ole *x"), 400);
    shown.terminal.tick(Duration::from_millis(1400));
    assert!(shown.screen.text().ends_with("and whole *x"));
    assert_eq!(
        shown.spinner.0.borrow().as_deref(),
        Some("after 33: waiting for the model")
    );
    shown.event(&text("m1", ".\n| a | b |\n|---|---|\n| 1 | 2 |"), 1500);
    assert!(shown.screen.text().ends_with("*x.\n"));
    // A tool ends the message.
    shown.event(&tool("t1", None, "Bash", json!({"command": "ls"})), 1600);
    let table = "*x.\na │ b\n──┼──\n1 │ 2\n";
    assert!(
        shown.screen.text().ends_with(table),
        "{}",
        shown.screen.text()
    );
    shown.event(&text("m2", "- done"), 1700);
    shown.event(&done("- done"), 1800);
    assert!(shown.screen.text().contains("\n\n• done\n\n✓ completed"));
}

#[test]
fn a_terminal_that_is_gone_is_an_error() {
    struct Gone;
    impl Write for Gone {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let narrator = Narrator::new(view());
    let mut terminal = Terminal::new(Gone, Gone, Recorder::default(), narrator, || None);
    let entry = agent(text("m1", "x"));
    assert!(terminal.entry(&entry, Duration::ZERO).is_err());
}

#[test]
fn later_turn_of_a_session_begins_without_the_header() {
    let mut shown = terminal(view());
    for event in [session(), text("m1", "One."), done("One.")] {
        shown.event(&event, 5000);
    }
    let first = shown.screen.text();
    shown.terminal.end_turn();
    shown.terminal.tick(Duration::from_millis(300));
    assert_eq!(
        shown.spinner.0.borrow().as_deref(),
        Some("waiting for the model")
    );
    shown.event(&session(), 400);
    shown.event(&text("m1", "Two."), 500);
    assert_eq!(shown.screen.text(), format!("{first}Two."));
    shown.terminal.end_turn();
    shown.terminal.clear_session();
    shown.event(&session(), 0);
    let header = "Two.Claude Code · claude-opus-4-8 · session s-1\n";
    assert!(
        shown.screen.text().ends_with(header),
        "{}",
        shown.screen.text()
    );
}
