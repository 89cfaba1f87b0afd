//! `teamster chat` with a shell script as Claude Code. Its output is modelled on recorded sessions.

// These tests need `setsid --ctty`.
#[cfg(target_os = "linux")]
mod runs;
pub(crate) mod terminal;

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{ChildStdin, Command, Stdio};

use nix::sys::signal::Signal;
use serde_json::Value;
use teamster::{AgentEvent, ErrorCode, RunResult, RunStatus};
use teamster_testkit::proc::{wait_gone, wait_until};
use tempfile::TempDir;

use crate::cli::{Ended, LIMIT, Running, ended, events, program, teamster};

/// The script of the agent.
///
/// It answers a prompt by its content:
///
/// - `pid`: its process id.
/// - `wait`: one word, then silence until it is interrupted; `deaf` also ignores interrupts and SIGTERM.
/// - `mute`: nothing at all; it ignores interrupts and SIGTERM.
/// - `odd`: a line of an unknown type, with half of a character.
/// - `child`: as `wait`, with a child in a process session of its own.
/// - `write`: the decision about a tool.
/// - `touch`: the file `touched`; `touch-and-wait` also waits.
/// - `silence`: an empty result.
/// - `window`: the prompt, with a result that has the size of the context; only as the first prompt of a process.
/// - `die`: exit code 3.
/// - Anything else: the prompt.
///
/// A process that only answers what a session would offer leaves its id alone.
const AGENT: &str = r#"
case "$*" in *--no-session-persistence*)
  printf '%s\n' "$$" >> "$DIR/queries"
  while IFS= read -r line; do case $line in *'"initialize"'*)
    printf '{"type":"control_response","response":{"subtype":"success","request_id":"teamster-initialize","response":{"commands":[{"name":"compact","description":"Compacts"}],"models":[{"value":"opus","displayName":"Opus"}]}}}\n' ;;
  esac; done
  exit ;;
esac
printf '%s\n' "$*" >> "$DIR/argv"
printf '%s\n' "$PPID" > "$DIR/parent"
pwd > "$DIR/here"
printf '%s' "${GIT_DIR-}${GIT_INDEX_FILE-}${GIT_CONFIG_PARAMETERS-}" > "$DIR/git"
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
    *'"content":"child"'*) begin child
      setsid sleep 600 </dev/null >/dev/null 2>&1 &
      printf '%s\n' "$!" > "$DIR/child"; text waiting ;;
    *'"content":"deaf"'*) begin deaf; text waiting; trap '' TERM
      while :; do if IFS= read -r line; then printf '%s\n' "$line" >> "$DIR/stdin"; else sleep 1; fi; done ;;
    *'"content":"mute"'*) trap '' TERM; while :; do sleep 1; done ;;
    *'"content":"odd"'*) begin odd; printf '%s\n' '{"type":"odd","a":  "\ud83d"}'; say odd ;;
    *'"content":"write"'*)
      begin write
      printf '{"type":"assistant","session_id":"%s","message":{"id":"w%s","role":"assistant","content":[{"type":"tool_use","id":"t%s","name":"Write","input":{"file_path":"/x/a.txt","content":"one"}}]}}\n' "$id" "$turn" "$turn"
      case $ASKS in
        no) say 'no request' ;;
        *) printf '{"type":"control_request","request_id":"q1","request":{"subtype":"can_use_tool","tool_name":"Write","input":{"file_path":"/x/a.txt","content":"one"},"tool_use_id":"t%s"}}\n' "$turn" ;;
      esac ;;
    *'"content":"silence"'*) begin silence
      printf '{"type":"result","subtype":"success","is_error":false,"session_id":"%s","num_turns":0,"result":"","usage":{"input_tokens":0,"output_tokens":0}}\n' "$id" ;;
    *'"content":"window"'*) begin window; text window
      printf '{"type":"result","subtype":"success","is_error":false,"session_id":"%s","num_turns":1,"result":"window","total_cost_usd":0.25,"usage":{"input_tokens":10,"output_tokens":5},"modelUsage":{"opus":{"inputTokens":10,"outputTokens":5,"costUSD":0.25,"contextWindow":200000}},"terminal_reason":"completed"}\n' "$id" ;;
    *'"content":"touch"'*) begin touch; : > touched; say touched ;;
    *'"content":"touch-and-wait"'*) begin touch-and-wait; : > touched; text waiting ;;
    *'"content":"pid"'*) begin pid; say $$ ;;
    *'"content":"die"'*) begin die; exit 3 ;;
    *) begin more; say "$(field content)" ;;
  esac
done
"#;

pub(crate) struct Agent {
    dir: TempDir,
}

impl Agent {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let agent = Self { dir };
        let asked = agent.path("asked").display().to_string();
        // The agent sends requests only to a caller that accepts them.
        program(
            &agent.path("claude"),
            &format!(
                "DIR='{}'\ncase \"$*\" in *--permission-prompt-tool*) : > '{asked}';; *) ASKS=no;; esac\n{AGENT}",
                agent.dir.path().display()
            ),
        );
        agent
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Creates a command of the program with this agent.
    pub(crate) fn command<'a>(&self, args: impl IntoIterator<Item = &'a str>) -> Command {
        let mut command = teamster(args);
        self.environment(&mut command);
        command
    }

    pub(crate) fn environment(&self, command: &mut Command) {
        command
            .env("TEAMSTER_CLAUDE_BIN", self.path("claude"))
            .env("XDG_STATE_HOME", self.path("state"));
    }

    fn run_chat(&self, input: &str, args: &[&str]) -> Ended {
        let mut command = self.command(["chat", "claude"]);
        let mut child = command
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(input.as_bytes()).unwrap();
        drop(stdin);
        ended(child.wait_with_output().unwrap())
    }

    /// Returns everything written to the agent's stdin.
    pub(crate) fn received(&self) -> String {
        fs::read_to_string(self.path("stdin")).unwrap_or_default()
    }

    /// Returns the parent process of the last start.
    pub(crate) fn parent(&self) -> u32 {
        let parent = fs::read_to_string(self.path("parent")).unwrap();
        parent.trim_end().parse().unwrap()
    }

    /// Returns the arguments of each start.
    pub(crate) fn starts(&self) -> Vec<String> {
        let starts = fs::read_to_string(self.path("argv")).unwrap_or_default();
        starts.lines().map(str::to_owned).collect()
    }
}

/// A running chat with open stdin.
struct OpenChat {
    running: Running,
    stdin: ChildStdin,
}

impl OpenChat {
    fn start(command: &mut Command) -> Self {
        let mut running = Running::start(command.stdin(Stdio::piped()));
        let stdin = running.child.stdin.take().unwrap();
        Self { running, stdin }
    }

    fn send(&mut self, line: &str) {
        writeln!(self.stdin, "{line}").unwrap();
    }

    /// Reads events until one of this type, and returns it.
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
fn two_turns_share_a_process_that_ends_with_the_chat() {
    let agent = Agent::new();
    let ended = agent.run_chat("pid\n\npid\n", &[]).ok();
    let pids: Vec<u32> = (ended.stdout.split_whitespace())
        .map(|pid| pid.parse().unwrap())
        .collect();
    assert_eq!((pids.len(), pids[0]), (2, pids[1]), "{}", ended.stdout);
    assert!(wait_gone(pids[0], LIMIT));
    assert_eq!(agent.starts().len(), 1);
    let id = format!("session-{}", pids[0]);
    assert_eq!(ended.stderr.matches("· session ").count(), 1);
    assert_eq!(ended.stderr.matches("✓ completed").count(), 2);
    let resume = format!("resume with: teamster chat claude --resume {id}\n");
    assert!(ended.stderr.ends_with(&resume), "{}", ended.stderr);
    assert!(
        !agent.path("state/teamster/chat-history").exists(),
        "lines of a pipe are no history"
    );
}

#[test]
fn without_a_message_nothing_is_started() {
    let agent = Agent::new();
    let ended = agent.run_chat("/cost\n/session\n", &[]);
    assert_eq!((ended.code, &*ended.stdout), (Some(0), ""));
    assert_eq!(
        ended.stderr,
        "nothing sent yet\nno session yet: the first message starts one\n"
    );
    assert_eq!(agent.starts(), [""; 0]);
}

#[test]
fn commands_reach_the_agent() {
    let agent = Agent::new();
    let input = "one\n/model haiku\n/permission accept-edits\n/clear\ntwo\n/cost\n/session\n";
    let ended = agent.run_chat(input, &["--model", "opus"]);
    assert_eq!((ended.code, &*ended.stdout), (Some(0), "one\ntwo\n"));
    assert!(agent.starts()[0].contains("opus"), "{:?}", agent.starts());
    let received = agent.received();
    for expected in [
        r#""subtype":"set_model","model":"haiku""#,
        r#""subtype":"set_permission_mode","mode":"acceptEdits""#,
        r#""content":"/clear""#,
    ] {
        assert!(received.contains(expected), "{expected}: {received}");
    }
    for expected in [
        "2 turns in ",
        "  input tokens          20\n",
        "  read from the cache   not reported\n",
        "\nsession cleared-",
        "resume with: teamster chat claude --resume cleared-",
    ] {
        ended.stderr_has(expected);
    }
}

#[test]
fn the_events_of_every_turn_as_json() {
    let agent = Agent::new();
    let ended = agent.run_chat("one\ndie\npid\n", &["--json"]).quiet();
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
    // The next message starts a new process, which resumes the session.
    let starts = agent.starts();
    assert_eq!(starts.len(), 2);
    let id = results[0].session_id.clone().unwrap();
    assert!(starts[1].contains(&*id), "{starts:?}");
    // The log of each turn.
    let mut seq = 0;
    for line in ended.stdout.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        seq += 1;
        assert_eq!(line["seq"], seq, "{line}");
        assert_eq!(line["type"] == "run:start", seq == 1, "{line}");
        if line["type"] == "done" {
            seq = 0;
        }
    }
}

#[test]
fn native_lines_keep_all_but_half_a_character() {
    let agent = Agent::new();
    let ended = agent.run_chat("odd\n", &["--json", "--native"]).quiet();
    let odd = r#"{"type":"odd","a":  "\ufffd"}"#;
    ended.stdout_has(odd);
    for (line, seq) in ended.stdout.lines().zip(1..) {
        assert!(line.starts_with(&format!(r#"{{"seq":{seq},"#)), "{line}");
    }
}

#[test]
fn sigint_interrupts_a_turn_and_keeps_the_process() {
    let agent = Agent::new();
    let mut chat = OpenChat::start(&mut agent.command(["chat", "claude", "--json"]));
    chat.send("pid");
    let pid = chat.done().text;
    chat.send("wait");
    chat.until("text");
    chat.running.signal(Signal::SIGINT);
    assert_eq!(chat.done().status, RunStatus::Aborted);
    chat.send("pid");
    assert_eq!(chat.done().text, pid);
    chat.end().quiet();
    assert!(wait_gone(pid.parse().unwrap(), LIMIT));
}

#[test]
fn a_second_sigint_ends_a_deaf_process_and_the_chat_continues() {
    let agent = Agent::new();
    let mut chat = OpenChat::start(&mut agent.command(["chat", "claude", "--json"]));
    chat.send("pid");
    let pid = chat.done().text;
    chat.send("deaf");
    chat.until("text");
    chat.running.signal(Signal::SIGINT);
    // Pending signals of the same kind are merged, so wait for the first one.
    let interrupted = || agent.received().contains("\"subtype\":\"interrupt\"");
    assert!(wait_until(LIMIT, interrupted));
    chat.running.signal(Signal::SIGINT);
    assert_eq!(chat.done().status, RunStatus::Aborted);
    assert!(wait_gone(pid.parse().unwrap(), LIMIT));
    chat.send("pid");
    let next = chat.done();
    assert_eq!(next.status, RunStatus::Completed);
    assert_ne!(next.text, pid);
    chat.end().ok();
}

#[test]
fn sigterm_ends_the_chat_and_the_agent() {
    for in_turn in [true, false] {
        let agent = Agent::new();
        let mut chat = OpenChat::start(&mut agent.command(["chat", "claude", "--json"]));
        chat.send("pid");
        let pid = chat.done().text;
        if in_turn {
            chat.send("wait");
            chat.until("text");
        }
        chat.running.signal(Signal::SIGTERM);
        if in_turn {
            assert_eq!(chat.done().status, RunStatus::Aborted);
        }
        // stdin is still open.
        assert_eq!(chat.running.wait().code(), Some(130));
        assert!(wait_gone(pid.parse().unwrap(), LIMIT));
    }
}

#[test]
fn a_reader_that_goes_away_ends_the_chat() {
    let agent = Agent::new();
    let mut chat = OpenChat::start(&mut agent.command(["chat", "claude", "--json"]));
    chat.send("pid");
    let pid = chat.done().text;
    chat.send("wait");
    chat.until("text");
    chat.running.close_stdout();
    assert_eq!(chat.running.wait().code(), Some(130));
    assert!(wait_gone(pid.parse().unwrap(), LIMIT));
}

#[test]
fn without_a_terminal_requests_are_denied() {
    let agent = Agent::new();
    let ended = agent.run_chat("write\n", &[]).ok();
    ended.stdout_has("no request");
    assert!(!agent.path("asked").exists());
}

#[test]
fn a_start_failure_is_reported_as_in_a_run() {
    let mut missing = teamster(["chat", "claude"]);
    let missing = crate::cli::run(missing.env("PATH", "/nowhere"));
    assert_eq!((missing.code, &*missing.stdout), (Some(3), ""));
    let install = "next: install it with `npm install -g @anthropic-ai/claude-code`";
    missing.stderr_has(install);

    let agent = Agent::new();
    let refused = agent.run_chat("hi\n", &["--json", "--mcp=x=y", "--mcp-via=user-config"]);
    assert_eq!(refused.code, Some(2), "{}", refused.stdout);
    let results = results(&refused.stdout);
    assert_eq!(results[0].errors[0].code, ErrorCode::InvalidParams);
    assert_eq!(agent.starts(), [""; 0]);
}
