//! Permission requests and MCP questions at the terminal.

use std::fmt::Write as _;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::termios::{FlushArg, tcflush};
use nix::unistd::read;
use serde_json::Value;
use std::os::fd::AsFd;
use teamster::{PermissionAnswer, PermissionRequest};
use teamster_api::tool_input::{self, ChangedFile};
use teamster_api::typed_answer;
use teamster_core::text::excerpt;
use tokio::sync::oneshot;

use super::terminal::write_to_terminal;
use crate::words;

/// Maximum length of the summarized argument of a tool, in characters.
const MAX_SUMMARIZED_ARGUMENT: usize = 2000;
/// Maximum length of each other argument, in characters.
const MAX_ARGUMENT: usize = 200;
/// Maximum number of arguments shown.
const MAX_ARGUMENTS: usize = 12;
/// Interval between checks for a withdrawn request, in milliseconds.
const POLL_MS: u16 = 100;

/// The prompt for an answer. A reason is offered only where it reaches the model.
const PROMPT: &[u8] = b"  y: yes, this once; a: always, in this session; n: no > ";
const PROMPT_WITH_REASON: &[u8] =
    b"  y: yes, this once; a: always, in this session; n: no, n REASON: no, and why > ";

const SERVER_PROMPT: &[u8] = b"  the answer, or a JSON object with all fields; n: no answer > ";

/// Asks at the terminal. Returns `None` at the end of input, or when `withdrawal` completes. If it is dropped, the terminal
/// is read no longer than a moment.
pub(crate) async fn ask_at_terminal(
    request: &PermissionRequest,
    takes_reason: bool,
    directory: Option<&Path>,
    withdrawal: impl Future<Output = ()>,
) -> Option<PermissionAnswer> {
    let text = request_text(request, directory);
    let schema = request.schema.clone();
    let withdrawn = Withdrawn::default();
    let stop = withdrawn.0.clone();
    let (sender, mut answer) = oneshot::channel();
    thread::Builder::new()
        .name("permission".to_owned())
        .spawn(move || {
            // The receiver may be dropped if the caller is cancelled.
            let _ = sender.send(dialogue(&text, schema.as_ref(), takes_reason, &stop));
        })
        .ok()?;
    tokio::select! {
        answered = &mut answer => answered.ok().flatten(),
        () = withdrawal => {
            drop(withdrawn);
            // Wait for the thread: two readers of the terminal would compete for input.
            let _ = answer.await;
            None
        }
    }
}

/// Marks a request as withdrawn when it is dropped.
#[derive(Default)]
struct Withdrawn(Arc<AtomicBool>);

impl Drop for Withdrawn {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Returns the text of a request. Control characters are removed.
fn request_text(request: &PermissionRequest, directory: Option<&Path>) -> String {
    let name = words::one_line(&request.tool_name);
    let summary = tool_input::summary(&request.input, directory);
    let mut text = match &request.schema {
        Some(_) => "\nInput needed\n".to_owned(),
        None => format!("\nAllow {name}?\n"),
    };
    if let Some(message) = &request.message {
        let _ = writeln!(
            text,
            "  {}",
            words::one_line(&excerpt(message, MAX_ARGUMENT))
        );
    }
    let shown = match &request.schema {
        Some(schema) => &schema["properties"],
        None => &request.input,
    };
    let changed = match &request.schema {
        Some(_) => Vec::new(),
        None => tool_input::changed_files(&request.input),
    };
    for change in changed.iter().take(MAX_ARGUMENTS) {
        text.push_str(&change_text(change, directory));
    }
    let more = changed.len().saturating_sub(MAX_ARGUMENTS) as u64;
    if more > 0 {
        let _ = writeln!(text, "  and {} more", words::plural(more, "file"));
    }
    match shown {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.retain(|(name, _)| *name != "changes" || changed.is_empty());
            for (name, value) in fields.iter().copied().take(MAX_ARGUMENTS) {
                let value = match value {
                    Value::String(text) => words::printable(text),
                    value => words::printable(&value.to_string()),
                };
                // The summary of a command is without its shell.
                let is_summarized = matches!(&**name, "command" | "commands")
                    || !summary.is_empty() && words::one_line(&value).ends_with(&summary);
                let most = if is_summarized {
                    MAX_SUMMARIZED_ARGUMENT
                } else {
                    MAX_ARGUMENT
                };
                let value = shortened(value.trim_end(), most).replace('\n', "\n    ");
                let _ = writeln!(text, "  {}: {value}", words::one_line(name));
            }
            let more = fields.len().saturating_sub(MAX_ARGUMENTS) as u64;
            if more > 0 {
                let _ = writeln!(text, "  and {} more", words::plural(more, "argument"));
            }
        }
        Value::Null => {}
        other => {
            let value = words::printable(&other.to_string());
            let _ = writeln!(text, "  {}", shortened(&value, MAX_SUMMARIZED_ARGUMENT));
        }
    }
    text
}

/// Returns a changed file and its diff.
fn change_text(change: &ChangedFile<'_>, directory: Option<&Path>) -> String {
    let path = words::one_line(tool_input::relative(change.path, directory));
    let diff = words::printable(change.diff.unwrap_or_default());
    // The texts of added and deleted files are not diffs.
    let mark = match change.kind {
        "add" => "+",
        "delete" => "-",
        _ => "",
    };
    let diff = shortened(diff.trim_end(), MAX_SUMMARIZED_ARGUMENT);
    let mut text = format!("  {} {path}\n", words::one_line(change.kind));
    for line in diff.lines() {
        let _ = writeln!(text, "    {mark}{line}");
    }
    text
}

fn shortened(text: &str, most: usize) -> String {
    let count = text.chars().count();
    if count <= most {
        return text.to_owned();
    }
    let kept: String = text.chars().take(most).collect();
    format!("{kept}… ({} characters more)", count - most)
}

/// Parses an answer. Returns `None` if it is invalid, or has a reason that the model would not get.
fn parse_answer(line: &str, takes_reason: bool) -> Option<PermissionAnswer> {
    let line = line.trim();
    let (word, reason) = match line.split_once([' ', ',', ':']) {
        Some((word, reason)) => (word, reason.trim()),
        None => (line, ""),
    };
    let reason = (!reason.is_empty()).then(|| reason.to_owned());
    Some(match (&*word.to_lowercase(), reason) {
        ("y" | "yes", None) => PermissionAnswer::Allow,
        ("a" | "always", None) => PermissionAnswer::AllowAlways,
        ("n" | "no", None) => PermissionAnswer::Deny(None),
        ("n" | "no", reason) if takes_reason => PermissionAnswer::Deny(reason),
        _ => return None,
    })
}

/// Parses an answer to the question of an MCP server.
///
/// An answer is the value of the schema's only field, or a JSON object. Returns `None` if it is neither.
fn parse_server_answer(line: &str, schema: &Value) -> Option<PermissionAnswer> {
    let line = line.trim();
    if matches!(&*line.to_lowercase(), "" | "n" | "no") {
        return Some(PermissionAnswer::Deny(None));
    }
    let answer = typed_answer(line, schema).ok()?;
    Some(PermissionAnswer::AllowWith(answer))
}

/// Asks until there is a valid answer. Returns `None` at the end of input, or once `withdrawn` is set.
fn dialogue(
    text: &str,
    schema: Option<&Value>,
    takes_reason: bool,
    withdrawn: &AtomicBool,
) -> Option<PermissionAnswer> {
    let stdin = io::stdin();
    // Discard input that was typed before the question.
    let _ = tcflush(&stdin, FlushArg::TCIFLUSH);
    // If this fails, the user sees no request and gives no answer.
    let _ = write_to_terminal(text.as_bytes());
    loop {
        let _ = write_to_terminal(match schema {
            Some(_) => SERVER_PROMPT,
            None if takes_reason => PROMPT_WITH_REASON,
            None => PROMPT,
        });
        let Some(line) = read_line(withdrawn) else {
            let _ = write_to_terminal(b"\n");
            let _ = tcflush(&stdin, FlushArg::TCIFLUSH);
            return None;
        };
        let answer = match schema {
            Some(schema) => parse_server_answer(&line, schema),
            None => parse_answer(&line, takes_reason),
        };
        if answer.is_some() {
            return answer;
        }
    }
}

/// Reads a line from the terminal. Returns `None` at the end of input, or once `withdrawn` is set.
fn read_line(withdrawn: &AtomicBool) -> Option<String> {
    let stdin = io::stdin();
    let mut bytes = [0; 4096];
    loop {
        if withdrawn.load(Ordering::Relaxed) {
            return None;
        }
        let mut fds = [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
        match poll(&mut fds, PollTimeout::from(POLL_MS)) {
            Ok(0) | Err(Errno::EINTR) => continue,
            Ok(_) => {}
            Err(_) => return None,
        }
        return match read(&stdin, &mut bytes) {
            Ok(0) => None,
            Ok(count) => Some(String::from_utf8_lossy(&bytes[..count]).into_owned()),
            Err(Errno::EINTR | Errno::EAGAIN) => continue,
            Err(_) => None,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use teamster::ToolKind;

    fn text_of(input: Value) -> String {
        let mut request = PermissionRequest::new(1, "Ba\u{1b}[2Jsh", ToolKind::Execute, input);
        request.message = Some("because\nof it".into());
        request_text(&request, Some(Path::new("/w")))
    }

    #[test]
    fn answers_to_a_server() {
        let with = |value| Some(PermissionAnswer::AllowWith(value));
        let schema = json!({"properties": {"colour": {"type": "string"}}});
        let number = json!({"properties": {"n": {"type": "integer"}}});
        let two = json!({"properties": {"a": {}, "b": {}}});
        for (line, schema, expected) in [
            ("blue\n", &schema, with(json!({"colour": "blue"}))),
            ("no\n", &schema, Some(PermissionAnswer::Deny(None))),
            ("\n", &schema, Some(PermissionAnswer::Deny(None))),
            ("7", &number, with(json!({"n": 7}))),
            ("seven", &number, None),
            ("x", &two, None),
            (r#"{"a": 1, "b": 2}"#, &two, with(json!({"a": 1, "b": 2}))),
        ] {
            assert_eq!(parse_server_answer(line, schema), expected, "{line}");
        }
    }

    #[test]
    fn arguments_are_shown_without_control_characters() {
        assert_eq!(
            text_of(json!({"command": "echo \u{1b}]52;c;x\u{7}one\nrm -rf x", "timeout": 5})),
            "\nAllow Ba [2Jsh?\n  because of it\n  command: echo ]52;c;xone\n    rm -rf x\n  timeout: 5\n"
        );
        assert_eq!(text_of(Value::Null), "\nAllow Ba [2Jsh?\n  because of it\n");
        assert!(text_of(json!(["x"])).ends_with("  [\"x\"]\n"));
    }

    #[test]
    fn changes_of_files_are_shown_as_diffs() {
        let changes = json!([
            {"path": "/w/gone.txt", "kind": {"type": "delete"}, "diff": "x\n"},
            {"path": "/w/new.txt", "kind": {"type": "add"}, "diff": "hello\n\u{1b}[2Jworld\n"},
            {"path": "/o/old.txt", "kind": {"type": "update"}, "diff": "@@ -1 +1 @@\n-before\n+after\n"},
        ]);
        let shown = text_of(json!({"changes": changes, "grant_root": null}));
        let expected = "\
\nAllow Ba [2Jsh?
  because of it
  delete gone.txt
    -x
  add new.txt
    +hello
    +[2Jworld
  update /o/old.txt
    @@ -1 +1 @@
    -before
    +after
  grant_root: null
";
        assert_eq!(shown, expected);
        // A shape that is not known is shown as it is.
        let other = text_of(json!({"changes": {"a": 1}}));
        assert!(other.contains("changes: {\"a\":1}"), "{other}");
    }

    #[test]
    fn shortened_values_are_marked() {
        let long = "x".repeat(MAX_SUMMARIZED_ARGUMENT + 7);
        let shown = text_of(json!({"command": long, "content": long}));
        assert!(shown.contains("… (7 characters more)"), "{shown}");
        let command = "y".repeat(1500);
        let shown = text_of(json!({"command": format!("/bin/bash -lc '{command}'")}));
        assert!(shown.ends_with(&format!("'{command}'\n")), "{shown}");
        let shown = text_of(json!({"commands": [command, "true"]}));
        assert!(
            shown.ends_with(&format!("[\"{command}\",\"true\"]\n")),
            "{shown}"
        );
        let fields: serde_json::Map<_, _> =
            (0..20).map(|n| (format!("k{n:02}"), json!(n))).collect();
        let shown = text_of(Value::Object(fields));
        assert!(
            shown.ends_with("  k11: 11\n  and 8 arguments more\n"),
            "{shown}"
        );
    }

    #[test]
    fn answers() {
        let deny = |reason: Option<&str>| Some(PermissionAnswer::Deny(reason.map(Into::into)));
        let without_reason = parse_answer("no, use cargo", false);
        assert_eq!(without_reason, None);
        assert_eq!(parse_answer("no", false), deny(None));
        let answer = |line: &str| parse_answer(line, true);
        assert_eq!(answer("y\n"), Some(PermissionAnswer::Allow));
        assert_eq!(answer(" YES "), Some(PermissionAnswer::Allow));
        assert_eq!(answer("a"), Some(PermissionAnswer::AllowAlways));
        assert_eq!(answer("n"), deny(None));
        assert_eq!(
            answer("no, use cargo: it is there"),
            deny(Some("use cargo: it is there"))
        );
        for none in ["", "\n", "yes please", "yn", "what?"] {
            assert_eq!(answer(none), None, "{none:?}");
        }
    }
}
