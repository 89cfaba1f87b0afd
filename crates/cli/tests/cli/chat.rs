//! `teamster chat` with a Claude Code of a few lines of shell. What it prints is made by hand after its
//! recorded conversations.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use nix::pty::openpty;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use teamster::{AgentEvent, ErrorCode, RunResult, RunStatus};
use teamster_testkit::proc::{wait_gone, wait_until};
use tempfile::TempDir;

use crate::{Ended, LIMIT, Running, TEAMSTER, ended, events, program, teamster};

/// It answers `pid` with its process id, `wait` with a word and then nothing, `write` when a tool was
/// allowed or denied, `die` by ending, and anything else with that.
const AGENT: &str = r#"
printf '%s\n' "$*" >> "$DIR/argv"
id=session-$$ turn=0
field() { rest=${line#*"\"$1\":\""}; printf %s "${rest%%\"*}"; }
text() {
  printf '{"type":"assistant","session_id":"%s","message":{"id":"m%s","role":"assistant","content":[{"type":"text","text":"%s"}]}}\n' "$id" "$turn" "$1"
}
result() {
  printf '{"type":"result","subtype":"%s","is_error":%s,"session_id":"%s","num_turns":1,"result":"%s","total_cost_usd":%s.25,"usage":{"input_tokens":10,"output_tokens":5},"terminal_reason":"%s"}\n' "$1" "$2" "$id" "$4" "$turn" "$3"
}
say() { text "$1"; result success false completed "$1"; }
settle() {
  printf '{"type":"control_response","response":{"subtype":"success","request_id":"%s","response":{}}}\n' "$(field request_id)"
}
begin() {
  turn=$((turn + 1))
  printf '{"type":"system","subtype":"init","session_id":"%s","model":"opus"}\n' "$id"
  printf '{"type":"user","message":{"role":"user","content":"%s"},"session_id":"%s","uuid":"%s","isReplay":true}\n' "$1" "$id" "$(field uuid)"
}
while IFS= read -r line; do
  printf '%s\n' "$line" >> "$DIR/stdin"
  case $line in
    *'"subtype":"interrupt"'*)
      settle
      printf '{"type":"user","message":{"role":"user","content":[{"type":"text","text":"[Request interrupted by user]"}]},"session_id":"%s"}\n' "$id"
      result error_during_execution true aborted_streaming '' ;;
    *'"subtype":"end_session"'*) settle; exit 0 ;;
    *'"type":"control_request"'*) settle ;;
    *'"behavior":"allow"'*) say allowed ;;
    *'"behavior":"deny"'*) say "denied: $(field message)" ;;
    *'"content":"/clear"'*)
      old=$id id=cleared-$$
      printf '{"type":"conversation_reset","trigger":"clear","session_id":"%s"}\n' "$old"
      begin /clear; turn=$((turn - 1)); result success false completed '' ;;
    *'"content":"wait"'*) begin wait; text waiting ;;
    *'"content":"deaf"'*) begin deaf; text waiting; trap '' TERM; while :; do sleep 1; done ;;
    *'"content":"write"'*)
      begin write
      printf '{"type":"assistant","session_id":"%s","message":{"id":"w%s","role":"assistant","content":[{"type":"tool_use","id":"t%s","name":"Write","input":{"file_path":"/x/a.txt","content":"one"}}]}}\n' "$id" "$turn" "$turn"
      case $ASKS in
        no) say 'nobody asked' ;;
        *) printf '{"type":"control_request","request_id":"q1","request":{"subtype":"can_use_tool","tool_name":"Write","input":{"file_path":"/x/a.txt","content":"one"},"tool_use_id":"t%s"}}\n' "$turn" ;;
      esac ;;
    *'"content":"pid"'*) begin pid; say $$ ;;
    *'"content":"die"'*) begin die; exit 3 ;;
    *) begin more; say "$(field content)" ;;
  esac
done
"#;

struct Agent {
    dir: TempDir,
}

impl Agent {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let agent = Self { dir };
        let asked = agent.path("asked").display().to_string();
        // Only who offers to be asked is asked.
        program(
            &agent.path("claude"),
            &format!(
                "DIR='{}'\ncase \"$*\" in *--permission-prompt-tool*) : > '{asked}';; *) ASKS=no;; esac\n{AGENT}",
                agent.dir.path().display()
            ),
        );
        agent
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn chat<'a>(&self, args: impl IntoIterator<Item = &'a str>) -> Command {
        let mut command = teamster(["chat", "claude"]);
        self.environment(command.args(args));
        command
    }

    fn environment(&self, command: &mut Command) {
        command
            .env("TEAMSTER_CLAUDE_BIN", self.path("claude"))
            .env("XDG_STATE_HOME", self.path("state"))
            .stdin(Stdio::piped());
    }

    /// A chat in which this is said, to its end.
    fn says(&self, input: &str, args: &[&str]) -> Ended {
        let mut command = self.chat(args.iter().copied());
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(input.as_bytes()).unwrap();
        drop(stdin);
        ended(child.wait_with_output().unwrap())
    }

    /// What was written to the agent.
    fn heard(&self) -> String {
        fs::read_to_string(self.path("stdin")).unwrap_or_default()
    }

    /// How it was started, one line a process.
    fn starts(&self) -> Vec<String> {
        let starts = fs::read_to_string(self.path("argv")).unwrap_or_default();
        starts.lines().map(str::to_owned).collect()
    }
}

/// Something that is said while the answers are read.
struct Talk {
    running: Running,
    stdin: ChildStdin,
}

impl Talk {
    fn start(command: &mut Command) -> Self {
        let mut running = Running::start(command);
        let stdin = running.child.stdin.take().unwrap();
        Self { running, stdin }
    }

    fn say(&mut self, line: &str) {
        writeln!(self.stdin, "{line}").unwrap();
    }

    /// Reads events up to one of this type.
    fn until(&mut self, name: &str) -> AgentEvent {
        loop {
            let line = self.running.line();
            let event: AgentEvent =
                serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"));
            if event.type_name() == name {
                return event;
            }
        }
    }

    fn done(&mut self) -> RunResult {
        match self.until("done") {
            AgentEvent::Done(done) => *done.result,
            other => panic!("{other:?}"),
        }
    }

    fn end(mut self) -> Ended {
        drop(self.stdin);
        self.running.end()
    }
}

fn results(stdout: &str) -> Vec<RunResult> {
    let done = |event| match event {
        AgentEvent::Done(done) => Some(*done.result),
        _ => None,
    };
    events(stdout).into_iter().filter_map(done).collect()
}

#[test]
fn two_turns_in_one_process_of_which_nothing_is_left() {
    let agent = Agent::new();
    let ended = agent.says("pid\n\npid\n", &[]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let pids: Vec<u32> = (ended.stdout.split_whitespace())
        .map(|pid| pid.parse().unwrap())
        .collect();
    assert_eq!((pids.len(), pids[0]), (2, pids[1]), "{}", ended.stdout);
    assert!(wait_gone(pids[0], LIMIT));
    assert_eq!(agent.starts().len(), 1);
    let id = format!("session-{}", pids[0]);
    assert_eq!(ended.stderr.matches("· session ").count(), 1);
    assert_eq!(ended.stderr.matches("✓ completed").count(), 2);
    let go_on = format!("go on with: teamster chat claude --resume {id}\n");
    assert!(ended.stderr.ends_with(&go_on), "{}", ended.stderr);
    assert!(
        !agent.path("state").exists(),
        "lines of a pipe are no history"
    );
}

#[test]
fn without_a_message_nothing_is_started() {
    let agent = Agent::new();
    let ended = agent.says("/cost\n/session\n", &[]);
    assert_eq!((ended.code, &*ended.stdout), (Some(0), ""));
    assert_eq!(
        ended.stderr,
        "nothing was sent yet\nthere is no session yet: the first message begins it\n"
    );
    assert_eq!(agent.starts(), [""; 0]);
}

#[test]
fn commands_reach_the_agent() {
    let agent = Agent::new();
    let input = "one\n/model haiku\n/permission accept-edits\n/clear\ntwo\n/cost\n/session\n";
    let ended = agent.says(input, &["--model", "opus"]);
    assert_eq!((ended.code, &*ended.stdout), (Some(0), "one\ntwo\n"));
    assert!(agent.starts()[0].contains("opus"), "{:?}", agent.starts());
    let heard = agent.heard();
    for said in [
        r#""subtype":"set_model","model":"haiku""#,
        r#""subtype":"set_permission_mode","mode":"acceptEdits""#,
        r#""content":"/clear""#,
    ] {
        assert!(heard.contains(said), "{said}: {heard}");
    }
    for said in [
        "2 turns in ",
        "  input tokens          20\n",
        "  read from the cache   not reported\n",
        "\nsession cleared-",
        "go on with: teamster chat claude --resume cleared-",
    ] {
        assert!(ended.stderr.contains(said), "{said}: {}", ended.stderr);
    }
}

#[test]
fn a_message_may_have_lines_and_begin_with_a_slash() {
    let agent = Agent::new();
    let ended = agent.says("one\\\ntwo\n//x\n/x\n", &[]);
    assert_eq!(ended.code, Some(0));
    assert!(
        agent.heard().contains(r#""content":"one\ntwo""#),
        "{}",
        agent.heard()
    );
    assert!(agent.heard().contains("/x\""), "{}", agent.heard());
    let error = "error: there is no command `/x`: /help lists them";
    assert!(ended.stderr.contains(error), "{}", ended.stderr);
}

#[test]
fn the_events_of_every_turn_as_json() {
    let agent = Agent::new();
    let ended = agent.says("one\ndie\npid\n", &["--json"]);
    assert_eq!((ended.code, &*ended.stderr), (Some(0), ""));
    let results = results(&ended.stdout);
    let statuses: Vec<_> = results.iter().map(|result| result.status).collect();
    assert_eq!(
        statuses,
        [
            RunStatus::Completed,
            RunStatus::Failed,
            RunStatus::Completed
        ]
    );
    assert_eq!(results[0].text, "one");
    assert_eq!(results[0].total_cost_usd, Some(1.25));
    assert_eq!(results[1].errors[0].code, ErrorCode::CliExitError);
    // The message after it was sent to a new process, which goes on with the session.
    let starts = agent.starts();
    assert_eq!(starts.len(), 2);
    let id = results[0].session_id.clone().unwrap();
    assert!(starts[1].contains(&*id), "{starts:?}");
    for line in ended.stdout.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        assert!(line["type"].is_string(), "{line}");
    }
}

#[test]
fn the_exit_code_is_that_of_the_last_turn() {
    let agent = Agent::new();
    let ended = agent.says("one\ndie\n/nope\n", &["--quiet"]);
    assert_eq!((ended.code, &*ended.stdout), (Some(1), "one\n"));
}

#[test]
fn sigint_interrupts_a_turn_and_the_next_one_has_the_same_process() {
    let agent = Agent::new();
    let mut talk = Talk::start(&mut agent.chat(["--json"]));
    talk.say("pid");
    let pid = talk.done().text;
    talk.say("wait");
    talk.until("text");
    talk.running.signal(Signal::SIGINT);
    assert_eq!(talk.done().status, RunStatus::Aborted);
    talk.say("pid");
    assert_eq!(talk.done().text, pid);
    let ended = talk.end();
    assert_eq!((ended.code, &*ended.stderr), (Some(0), ""));
    assert!(wait_gone(pid.parse().unwrap(), LIMIT));
}

#[test]
fn a_second_sigint_ends_a_process_that_does_not_listen_and_the_chat_goes_on() {
    let agent = Agent::new();
    let mut talk = Talk::start(&mut agent.chat(["--json"]));
    talk.say("pid");
    let pid = talk.done().text;
    talk.say("deaf");
    talk.until("text");
    talk.running.signal(Signal::SIGINT);
    // Two signals of one kind that wait at the same time are one.
    thread::sleep(Duration::from_millis(300));
    talk.running.signal(Signal::SIGINT);
    assert_eq!(talk.done().status, RunStatus::Aborted);
    assert!(wait_gone(pid.parse().unwrap(), LIMIT));
    talk.say("pid");
    let next = talk.done();
    assert_eq!(next.status, RunStatus::Completed);
    assert_ne!(next.text, pid);
    assert_eq!(talk.end().code, Some(0));
}

#[test]
fn sigterm_ends_the_chat_and_the_agent() {
    for in_turn in [true, false] {
        let agent = Agent::new();
        let mut talk = Talk::start(&mut agent.chat(["--json"]));
        talk.say("pid");
        let pid = talk.done().text;
        if in_turn {
            talk.say("wait");
            talk.until("text");
        }
        talk.running.signal(Signal::SIGTERM);
        if in_turn {
            assert_eq!(talk.done().status, RunStatus::Aborted);
        }
        // Its stdin is still open.
        assert_eq!(talk.running.wait().code(), Some(130));
        assert!(wait_gone(pid.parse().unwrap(), LIMIT));
    }
}

#[test]
fn a_reader_that_goes_away_ends_the_chat() {
    let agent = Agent::new();
    let mut talk = Talk::start(&mut agent.chat(["--json"]));
    talk.say("pid");
    let pid = talk.done().text;
    talk.say("wait");
    talk.until("text");
    talk.running.close_stdout();
    assert_eq!(talk.running.wait().code(), Some(130));
    assert!(wait_gone(pid.parse().unwrap(), LIMIT));
}

#[test]
fn without_a_terminal_nobody_is_asked() {
    let agent = Agent::new();
    let ended = agent.says("write\n", &[]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stdout.contains("nobody asked"), "{}", ended.stdout);
    assert!(!agent.path("asked").exists());
}

#[test]
fn what_cannot_begin_is_told_as_in_a_run() {
    let mut missing = teamster(["chat", "claude"]);
    let missing = crate::run(missing.env("PATH", "/nowhere"));
    assert_eq!((missing.code, &*missing.stdout), (Some(3), ""));
    let install = "next: install it with `npm install -g @anthropic-ai/claude-code`";
    assert!(missing.stderr.contains(install), "{}", missing.stderr);

    let agent = Agent::new();
    let refused = agent.says(
        "hi\n",
        &["--json", "--mcp=x=y", "--mcp-via=user-config", "--resume="],
    );
    assert_eq!(refused.code, Some(2), "{}", refused.stdout);
    let results = results(&refused.stdout);
    assert_eq!(results[0].errors[0].code, ErrorCode::InvalidParams);
    assert_eq!(agent.starts(), [""; 0]);
}

/// A chat at a terminal.
struct Terminal {
    child: std::process::Child,
    keys: File,
    shown: Arc<Mutex<Vec<u8>>>,
    seen: usize,
}

impl Terminal {
    /// With a terminal that controls it, so that Ctrl-C is a signal.
    fn start(agent: &Agent, args: &[&str]) -> Self {
        let terminal = openpty(None, None).unwrap();
        let mut command = Command::new("/usr/bin/setsid");
        command
            .args(["--ctty", TEAMSTER, "chat", "claude"])
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
            // Ends with an error, which is how a terminal says that nobody has it open.
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

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits until this is shown, after what was waited for before.
    fn see(&mut self, text: &str) {
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

    fn all(&self) -> String {
        String::from_utf8_lossy(&self.shown.lock().unwrap()).into_owned()
    }

    fn end(&mut self) -> Option<i32> {
        let ended = wait_until(LIMIT, || self.child.try_wait().unwrap().is_some());
        assert!(ended, "teamster does not end: {}", self.all());
        self.child.wait().unwrap().code()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // Ended already in a test that passed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The prompt is ready.
const PROMPT: &str = "claude> ";

#[test]
#[cfg(target_os = "linux")]
fn at_a_terminal() {
    let agent = Agent::new();
    let mut terminal = Terminal::start(&agent, &[]);
    terminal.see("Ctrl-D ends");
    terminal.see(PROMPT);
    // Typed, with a line that goes on.
    terminal.press("one\\\rtwo\r");
    terminal.see("✓");
    terminal.see(PROMPT);
    assert!(
        agent.heard().contains(r#""content":"one\ntwo""#),
        "{}",
        agent.heard()
    );
    // Pasted: one message, and its `\` stays.
    terminal.press("\u{1b}[200~three\\\rfour\u{1b}[201~\r");
    terminal.see("✓");
    terminal.see(PROMPT);
    assert!(
        agent.heard().contains(r#""content":"three\\\nfour""#),
        "{}",
        agent.heard()
    );
    // Ctrl-C throws away what was typed.
    terminal.press("lost\u{3}");
    terminal.see(PROMPT);
    // A command, completed.
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
    terminal.see("go on with: teamster chat claude --resume session-");
    assert_eq!(terminal.end(), Some(0));
    assert_eq!(agent.starts().len(), 1);
    assert!(!agent.heard().contains("lost"));
    assert!(terminal.all().ends_with("\r\n"), "{:?}", terminal.all());
    // What it turns on it turns off.
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
#[cfg(target_os = "linux")]
fn at_a_terminal_the_user_is_asked() {
    let agent = Agent::new();
    let mut terminal = Terminal::start(&agent, &["--no-history"]);
    for (answer, said) in [
        ("y\r", "allowed"),
        ("what?\rn use cargo\r", "denied: use cargo"),
        ("\u{4}", "denied: "),
    ] {
        terminal.see(PROMPT);
        terminal.press("write\r");
        terminal.see("May Write be used?");
        terminal.see("file_path: /x/a.txt");
        terminal.see("content: one");
        terminal.see("and why > ");
        terminal.press(answer);
        terminal.see(said);
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
    // The user knows what the user has denied.
    assert!(
        !terminal.all().contains("--allow-tool"),
        "{}",
        terminal.all()
    );
    assert!(!agent.path("state").exists());
}

#[test]
#[cfg(target_os = "linux")]
fn a_signal_at_the_prompt_leaves_the_terminal_as_it_was() {
    let agent = Agent::new();
    let mut terminal = Terminal::start(&agent, &[]);
    terminal.see(PROMPT);
    terminal.press("pid\r");
    terminal.see("✓");
    terminal.see(PROMPT);
    // By now it has become `teamster`.
    let pid = terminal.child.id().cast_signed();
    kill(Pid::from_raw(pid), Signal::SIGTERM).unwrap();
    terminal.see("\u{1b}[?2004l");
    assert_eq!(terminal.end(), Some(130));
    let modes = nix::sys::termios::tcgetattr(&terminal.keys).unwrap();
    let cooked = nix::sys::termios::LocalFlags::ICANON | nix::sys::termios::LocalFlags::ECHO;
    assert!(modes.local_flags.contains(cooked), "{modes:?}");
}
