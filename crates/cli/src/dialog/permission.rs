//! Permission requests and MCP questions at the terminal.

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
use teamster_api::typed_answer;
use tokio::sync::oneshot;

use super::request_text::RequestText;
use super::terminal::write_to_terminal;

/// Interval between checks for a withdrawn request, in milliseconds.
const POLL_MS: u16 = 100;

/// The prompt for an answer. A reason is offered only where it reaches the model.
const PROMPT: &str = "  y: yes, this once; a: always, in this session; n: no > ";
const PROMPT_WITH_REASON: &str =
    "  y: yes, this once; a: always, in this session; n: no, n REASON: no, and why > ";

const SERVER_PROMPT: &str = "  the answer, or a JSON object with all fields; n: no answer > ";
/// Text before the prompt of a request of which a part is shown.
const ALL: &str = "  d: all of it;";

/// Asks at the terminal. Returns `None` at the end of input, or when `withdrawal` completes. If it is dropped, the terminal
/// is read no longer than a moment.
pub(crate) async fn ask_at_terminal(
    request: &PermissionRequest,
    takes_reason: bool,
    directory: Option<&Path>,
    withdrawal: impl Future<Output = ()>,
) -> Option<PermissionAnswer> {
    let text = RequestText::of(request, directory);
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
    text: &RequestText,
    schema: Option<&Value>,
    takes_reason: bool,
    withdrawn: &AtomicBool,
) -> Option<PermissionAnswer> {
    let stdin = io::stdin();
    // Discard input that was typed before the question.
    let _ = tcflush(&stdin, FlushArg::TCIFLUSH);
    // If this fails, the user sees no request and gives no answer.
    let _ = write_to_terminal(text.short.as_bytes());
    let prompt = match schema {
        Some(_) => SERVER_PROMPT.to_owned(),
        None => {
            let prompt = if takes_reason {
                PROMPT_WITH_REASON
            } else {
                PROMPT
            };
            match text.whole {
                Some(_) => format!("{ALL}{}", &prompt[1..]),
                None => prompt.to_owned(),
            }
        }
    };
    loop {
        let _ = write_to_terminal(prompt.as_bytes());
        let Some(line) = read_line(withdrawn) else {
            let _ = write_to_terminal(b"\n");
            let _ = tcflush(&stdin, FlushArg::TCIFLUSH);
            return None;
        };
        if let (None, Some(whole), "d" | "D") = (schema, &text.whole, line.trim()) {
            let _ = write_to_terminal(whole.as_bytes());
            continue;
        }
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
