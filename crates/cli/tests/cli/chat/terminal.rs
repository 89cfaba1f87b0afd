//! Chats at a terminal.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command};
use std::sync::{Arc, Mutex};
use std::thread;

use nix::pty::{Winsize, openpty};
use nix::sys::signal::{Signal, kill};
use nix::sys::termios::{LocalFlags, tcgetattr};
use nix::unistd::Pid;
use teamster_testkit::proc::wait_until;

use super::Agent;
use crate::cli::{LIMIT, TEAMSTER};

/// A command at a terminal.
pub(crate) struct Terminal {
    child: Child,
    keys: File,
    shown: Arc<Mutex<Vec<u8>>>,
    seen: usize,
}

impl Terminal {
    /// Starts a chat.
    fn start(agent: &Agent, args: &[&str]) -> Self {
        Self::of(agent, &[&["chat", "claude"], args].concat())
    }

    /// Starts a command with a controlling terminal, so that Ctrl-C sends a signal.
    pub(crate) fn of(agent: &Agent, args: &[&str]) -> Self {
        // The spinner needs columns.
        let size = Winsize {
            ws_row: 24,
            ws_col: 80,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        let terminal = openpty(&size, None).unwrap();
        let mut command = Command::new("/usr/bin/setsid");
        command
            .args(["--ctty", TEAMSTER])
            .args(args)
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("TERM", "xterm");
        agent.environment(&mut command);
        command
            .stdin(terminal.slave.try_clone().unwrap())
            .stdout(terminal.slave.try_clone().unwrap())
            .stderr(terminal.slave);
        let child = command.spawn().unwrap();
        drop(command);
        let keys = File::from(terminal.master);
        let mut screen = keys.try_clone().unwrap();
        let shown = Arc::new(Mutex::new(Vec::new()));
        let all = shown.clone();
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            // At the end, reading from a terminal fails.
            while let Ok(count @ 1..) = screen.read(&mut bytes) {
                all.lock().unwrap().extend(&bytes[..count]);
            }
        });
        Self {
            child,
            keys,
            shown,
            seen: 0,
        }
    }

    pub(crate) fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits until this text is shown after the text of the previous call.
    pub(crate) fn see(&mut self, text: &str) {
        let found = wait_until(LIMIT, || {
            let shown = self.shown.lock().unwrap();
            let rest = String::from_utf8_lossy(&shown[self.seen..]).into_owned();
            let Some(at) = rest.find(text) else {
                return false;
            };
            self.seen += at + text.len();
            true
        });
        assert!(found, "{text:?} is not shown: {}", self.all());
    }

    pub(crate) fn all(&self) -> String {
        String::from_utf8_lossy(&self.shown.lock().unwrap()).into_owned()
    }

    pub(crate) fn end(&mut self) -> Option<i32> {
        let ended = wait_until(LIMIT, || self.child.try_wait().unwrap().is_some());
        assert!(ended, "teamster does not end: {}", self.all());
        self.child.wait().unwrap().code()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // After a passed test, the command has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The prompt of the line editor.
const PROMPT: &str = "claude> ";

#[test]
fn messages_and_commands_at_a_terminal() {
    let agent = Agent::new();
    let mut terminal = Terminal::start(&agent, &[]);
    terminal.see("Ctrl-D ends");
    terminal.see(PROMPT);
    // Typed text with a continued line.
    terminal.press("one\\\rtwo\r");
    terminal.see("✓");
    terminal.see(PROMPT);
    assert!(
        agent.received().contains(r#""content":"one\ntwo""#),
        "{}",
        agent.received()
    );
    // Pasted text is one message and keeps its `\`.
    terminal.press("\u{1b}[200~three\\\rfour\u{1b}[201~\r");
    terminal.see("✓");
    terminal.see(PROMPT);
    assert!(
        agent.received().contains(r#""content":"three\\\nfour""#),
        "{}",
        agent.received()
    );
    // Ctrl-C clears the line.
    terminal.press("lost\u{3}");
    terminal.see(PROMPT);
    // A completed command.
    terminal.press("/sess\t\r");
    terminal.see("session session-");
    terminal.see(PROMPT);
    // Ctrl-C interrupts a turn.
    terminal.press("wait\r");
    terminal.see("waiting");
    terminal.press("\u{3}");
    terminal.see("stopped");
    terminal.see(PROMPT);
    terminal.press("pid\r");
    terminal.see("✓");
    terminal.see(PROMPT);
    terminal.press("\u{4}");
    terminal.see("resume with: teamster chat claude --resume session-");
    assert_eq!(terminal.end(), Some(0));
    assert_eq!(agent.starts().len(), 1);
    assert!(!agent.received().contains("lost"));
    assert!(terminal.all().ends_with("\r\n"), "{:?}", terminal.all());
    // Bracketed paste is disabled as often as it is enabled.
    let all = terminal.all();
    assert_eq!(
        all.matches("\u{1b}[?2004h").count(),
        all.matches("\u{1b}[?2004l").count()
    );
    let history = agent.path("state/teamster/chat-history");
    let kept = fs::read_to_string(&history).unwrap();
    assert!(
        kept.contains("pid\n") && kept.contains("one\\ntwo"),
        "{kept}"
    );
    let mode = fs::metadata(&history).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn permission_requests_at_a_terminal() {
    let agent = Agent::new();
    let mut terminal = Terminal::start(&agent, &["--no-history"]);
    for (answer, expected) in [
        ("y\r", "allowed"),
        ("what?\rn use cargo\r", "denied: use cargo"),
        ("\u{4}", "denied: "),
    ] {
        terminal.see(PROMPT);
        terminal.press("write\r");
        terminal.see("Allow Write?");
        terminal.see("file_path: /x/a.txt");
        terminal.see("+one");
        terminal.see("and why > ");
        terminal.press(answer);
        terminal.see(expected);
    }
    // Ctrl-C at the question interrupts the turn.
    terminal.see(PROMPT);
    terminal.press("write\r");
    terminal.see("and why > ");
    terminal.press("\u{3}");
    terminal.see("stopped");
    terminal.see(PROMPT);
    terminal.press("/quit\r");
    assert_eq!(terminal.end(), Some(130));
    // No advice about tools that the user denied.
    assert!(
        !terminal.all().contains("--allow-tool"),
        "{}",
        terminal.all()
    );
    assert!(!agent.path("state/teamster/chat-history").exists());
}

#[test]
fn models_images_and_the_commands_of_the_cli_in_a_chat() {
    let agent = Agent::new();
    let mut terminal = Terminal::start(&agent, &[]);
    terminal.see(PROMPT);
    terminal.press("/model\r");
    terminal.see("no earlier run has named a model");
    terminal.see(PROMPT);
    // Markdown of the agent, which repeats the message.
    terminal.press("a **bold** word\r");
    terminal.see("a \u{1b}[1mbold\u{1b}[0m word");
    terminal.see("✓");
    terminal.see(PROMPT);
    terminal.press("/model\r");
    terminal.see("  1  opus");
    terminal.see(PROMPT);
    terminal.press("/model 1\r");
    terminal.see("model from the next turn on: opus");
    terminal.see(PROMPT);
    for (typed, sent) in [
        ("/compact the rest\r", r#""content":"/compact the rest""#),
        ("//etc/hosts is odd\r", r#""content":" /etc/hosts is odd""#),
    ] {
        terminal.press(typed);
        terminal.see("✓");
        terminal.see(PROMPT);
        assert!(agent.received().contains(sent), "{}", agent.received());
    }
    let image = agent.path("a b.png");
    fs::write(&image, b"png").unwrap();
    terminal.press(&format!("'{}'\r", image.display()));
    terminal.see("a b.png' (3 bytes) goes with the next message");
    terminal.see(PROMPT);
    terminal.press("look\r");
    terminal.see("✓");
    terminal.see(PROMPT);
    let received = agent.received();
    assert!(received.contains(r#""data":"cG5n""#), "{received}");
    assert!(received.contains(r#""text":"look""#), "{received}");
    terminal.press("/exit\r");
    assert_eq!(terminal.end(), Some(0));
}

#[test]
fn an_agent_that_prints_nothing_is_seen_to_work_and_is_stopped() {
    let agent = Agent::new();
    let mut terminal = Terminal::start(&agent, &["--no-history"]);
    terminal.see(PROMPT);
    terminal.press("mute\r");
    terminal.see("starting Claude Code");
    terminal.press("\u{3}");
    terminal.see("stopping");
    terminal.see("stopped");
    terminal.see(PROMPT);
    terminal.press("\u{4}");
    assert_eq!(terminal.end(), Some(130));
}

#[test]
fn a_signal_at_the_prompt_leaves_the_terminal_as_it_was() {
    let agent = Agent::new();
    let mut terminal = Terminal::start(&agent, &[]);
    terminal.see(PROMPT);
    terminal.press("pid\r");
    terminal.see("✓");
    terminal.see(PROMPT);
    // `setsid` has executed `teamster` in the same process.
    let pid = terminal.child.id().cast_signed();
    kill(Pid::from_raw(pid), Signal::SIGTERM).unwrap();
    terminal.see("\u{1b}[?2004l");
    assert_eq!(terminal.end(), Some(130));
    let modes = tcgetattr(&terminal.keys).unwrap();
    let cooked = LocalFlags::ICANON | LocalFlags::ECHO;
    assert!(modes.local_flags.contains(cooked), "{modes:?}");
}
