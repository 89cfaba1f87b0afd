//! Output at a terminal.

use std::fs::File;
use std::io::Read;
use std::process::Stdio;

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
    let claude = hostile();
    let terminal = openpty(None, None).unwrap();
    let mut command = claude.run(args.iter().copied());
    command
        .env("TERM", term)
        .stdout(terminal.slave)
        .stderr(Stdio::null());
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
