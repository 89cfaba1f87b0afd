//! Output at a terminal.

use std::fs::File;
use std::io::Read;
use std::process::{Command, Stdio};

use nix::pty::openpty;
use serde_json::json;
use teamster_testkit::fake_agent::Script;

use crate::cli::Claude;

/// Text with escape sequences that write the clipboard, clear the screen and hide a line.
const HOSTILE: &str = "\u{1b}]52;c;eA==\u{7}one\u{1b}[2J\rtwo\u{9b}2Jthree";

fn hostile() -> Claude {
    let id = "11111111-2222-4333-8444-555555555555";
    let message = json!({
        "id": "m", "role": "assistant", "content": [{"type": "text", "text": HOSTILE}]
    });
    let script = [
        json!({"type": "system", "subtype": "init", "session_id": id}),
        json!({"type": "assistant", "session_id": id, "message": message}),
        json!({
            "type": "result", "subtype": "success", "is_error": false, "session_id": id,
            "result": HOSTILE
        }),
    ]
    .into_iter()
    .fold(Script::new(), |script, line| {
        script.line(line.to_string().as_str())
    });
    Claude::new(&script)
}

/// Returns the output of a run whose stdout is a terminal.
fn on_terminal(args: &[&str], term: &str) -> String {
    shown_by(&hostile(), args, |command| {
        command.env("TERM", term);
    })
}

fn shown_by(claude: &Claude, args: &[&str], environment: impl FnOnce(&mut Command)) -> String {
    let terminal = openpty(None, None).unwrap();
    let mut command = claude.run(args.iter().copied());
    environment(&mut command);
    command.stdout(terminal.slave).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    // Closes this process's copy of the slave, so that the master reports the end.
    drop(command);
    let mut shown = Vec::new();
    // At the end, reading from a terminal fails.
    let _ = File::from(terminal.master).read_to_end(&mut shown);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    String::from_utf8(shown).unwrap()
}

#[test]
fn an_answer_is_markdown_unless_there_are_no_colours() {
    let id = "11111111-2222-4333-8444-555555555555";
    let text = "# T\u{1b}[2J\n\n- **b\u{9b}2J**\n- &#27;[2J";
    let message = json!({
        "id": "m", "role": "assistant", "content": [{"type": "text", "text": text}]
    });
    let script = [
        json!({"type": "system", "subtype": "init", "session_id": id}),
        json!({"type": "assistant", "session_id": id, "message": message}),
        json!({
            "type": "result", "subtype": "success", "is_error": false, "session_id": id,
            "result": text
        }),
    ]
    .into_iter()
    .fold(Script::new(), |script, line| {
        script.line(line.to_string().as_str())
    });
    for (no_color, expected) in [
        (
            "",
            "\u{1b}[1mT[2J\u{1b}[0m\r\n\r\n• \u{1b}[1mb2J\u{1b}[0m\r\n• &#27;[2J",
        ),
        ("1", "# T[2J\r\n\r\n- **b2J**\r\n- &#27;[2J"),
    ] {
        let shown = shown_by(&Claude::new(&script), &["x"], |command| {
            command.env("TERM", "xterm").env("NO_COLOR", no_color);
        });
        // Empty lines are between it and what stderr has.
        assert_eq!(shown.trim_matches(['\r', '\n']), expected);
    }
}

#[test]
fn an_answer_is_only_text() {
    for (args, term) in [
        (&["x", "-q"][..], "xterm"),
        (&["x", "-q"], "dumb"),
        (&["x"], "dumb"),
    ] {
        let shown = on_terminal(args, term);
        assert_eq!(shown, "]52;c;eA==one[2Jtwo2Jthree\r\n", "{args:?} {term}");
    }
}
