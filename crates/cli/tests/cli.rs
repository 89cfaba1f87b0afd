//! Tests of the program with the fake agent as the CLI.
#![expect(clippy::unwrap_used, reason = "also in the helpers of tests")]
#![expect(
    clippy::needless_raw_string_hashes,
    reason = "snapbox writes its snapshots so"
)]

mod accounts;
mod acp;
mod again;
mod agent_loop;
mod attempts;
mod chat;
mod completion;
#[cfg(target_os = "linux")]
mod container;
mod demo;
mod detached;
mod doctor;
mod embedded;
mod estimates;
#[cfg(feature = "fleet")]
mod fleet;
#[cfg(feature = "fleet")]
mod help;
mod hooks;
mod json_rpc;
#[cfg(target_os = "linux")]
mod limits;
mod mcp_check;
mod mcp_list;
#[cfg(target_os = "linux")]
mod mcp_restore;
mod mcp_run;
mod mcp_serve;
mod mock_model;
#[cfg(feature = "otlp")]
mod otlp;
mod record;
mod remote;
mod run;
mod runs;
mod schedules;
mod serve;
mod session_key;
mod stdin;
mod stop;
mod terminal;
mod usage;
mod usage_forms;
mod usage_watch;
mod usage_zone;
#[cfg(target_os = "linux")]
mod zombies;

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Output, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use teamster::{AgentEvent, RunResult};
use teamster_api::RunLogEntry;
use teamster_testkit::fake_agent::{Play, Report, Script, Step};
use teamster_testkit::proc::{self, wait_until};
use tempfile::TempDir;

/// The program under test.
const TEAMSTER: &str = env!("CARGO_BIN_EXE_teamster");

/// Time limit of waits. Only a failing test waits this long.
const LIMIT: Duration = Duration::from_mins(1);

/// Creates a command of the program with an environment independent of this machine.
fn teamster<'a>(args: impl IntoIterator<Item = &'a str>) -> Command {
    let mut command = Command::new(TEAMSTER);
    command
        .args(args)
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        // Without a home, the program would warn that there is no store.
        .env("TEAMSTER_STORE", "off")
        .stdin(Stdio::null());
    command
}

/// Output and exit code of a command.
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ended {
    /// It has succeeded.
    #[track_caller]
    pub(crate) fn ok(self) -> Self {
        assert_eq!(self.code, Some(0), "{}{}", self.stdout, self.stderr);
        self
    }

    /// It has succeeded, and printed nothing on stderr.
    #[track_caller]
    pub(crate) fn quiet(self) -> Self {
        assert_eq!((self.code, &*self.stderr), (Some(0), ""));
        self
    }

    /// It has succeeded, and has printed this id of what it has started.
    #[track_caller]
    pub(crate) fn id(self) -> String {
        let ended = self.ok();
        let id = ended.stdout.strip_suffix('\n').unwrap();
        assert!(!id.contains('\n'), "{id}");
        id.to_owned()
    }

    /// It has ended with this code, and has this on stderr.
    #[track_caller]
    pub(crate) fn fails(&self, code: i32, text: &str) {
        assert_eq!(self.code, Some(code), "{}{}", self.stdout, self.stderr);
        self.stderr_has(text);
    }

    /// It has ended with this code and without any output, and has this on stderr.
    #[track_caller]
    pub(crate) fn only_says(&self, code: i32, text: &str) {
        self.fails(code, text);
        assert_eq!(self.stdout, "");
    }

    /// Returns the only value of stdout.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        let value = serde_json::from_str(&self.stdout);
        value.unwrap_or_else(|error| panic!("{error}: {}{}", self.stdout, self.stderr))
    }

    /// Returns the values of the lines of stdout.
    #[track_caller]
    pub(crate) fn json_lines(&self) -> Vec<Value> {
        json_lines(&self.stdout)
    }

    #[track_caller]
    pub(crate) fn stdout_has(&self, text: &str) {
        assert!(self.stdout.contains(text), "no {text:?}: {}", self.stdout);
    }

    #[track_caller]
    pub(crate) fn stderr_has(&self, text: &str) {
        assert!(self.stderr.contains(text), "no {text:?}: {}", self.stderr);
    }

    #[track_caller]
    pub(crate) fn stderr_begins(&self, text: &str) {
        let stderr = &self.stderr;
        assert!(stderr.starts_with(text), "not {text:?} first: {stderr}");
    }
}

pub(crate) fn run(command: &mut Command) -> Ended {
    ended(command.output().unwrap())
}

fn ended(output: Output) -> Ended {
    Ended {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A program `claude` that follows a script, in a directory of its own.
struct Claude {
    dir: TempDir,
}

impl Claude {
    fn new(script: &Script) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let claude = Self { dir };
        // The report has the agent's arguments and environment. It exists once the agent has started.
        let script = Script::new()
            .step(Step::Report {
                file: claude.path("report.json"),
            })
            .to_toml()
            .unwrap()
            + &script.to_toml().unwrap();
        fs::write(claude.path("script.toml"), script).unwrap();
        claude.program(&format!(
            "case \"$1\" in --version) echo '2.1.197 (Claude Code)'; exit 0;; esac\n\
             TEAMSTER_FAKE_SCRIPT='@{}' exec '{TEAMSTER}' fake-agent \"$@\"",
            claude.path("script.toml").display(),
        ));
        claude
    }

    /// Creates an agent that plays a recorded run and exits with this code.
    fn plays(scenario: &str, code: u8) -> Self {
        Self::new(&Script::new().play(recording(scenario)).exit(code))
    }

    /// Creates an agent that prints some text and then is silent forever.
    fn silent() -> Self {
        Self::new(&Script::new().play(recording("text").last(6)).forever())
    }

    /// Replaces the program by a shell script.
    fn program(&self, script: &str) {
        program(&self.path("claude"), script);
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Creates the command `teamster run claude` with this agent.
    fn run<'a>(&self, args: impl IntoIterator<Item = &'a str>) -> Command {
        let mut command = teamster(["run", "claude"]);
        command
            .args(args)
            .env("TEAMSTER_CLAUDE_BIN", self.path("claude"));
        command
    }

    /// Waits until the agent has started, and returns its report.
    fn report(&self) -> Report {
        let file = self.path("report.json");
        assert!(wait_until(LIMIT, || file.exists()), "the agent never began");
        Report::read(file).unwrap()
    }
}

/// Writes an executable shell script.
fn program(file: &Path, script: &str) {
    proc::write_program(file, format!("#!/bin/sh\n{script}\n")).unwrap();
}

fn recording(scenario: &str) -> Play {
    Play::new(recorded("claude", "2.1.197", scenario))
}

/// Returns the path of a recorded run's stdout.
fn recorded(provider: &str, version: &str, scenario: &str) -> PathBuf {
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fixtures")
        .join(provider)
        .join(version)
        .join(scenario)
        .join("stdout.ndjson");
    assert!(file.exists(), "{}", file.display());
    file
}

/// Parses the output of `--json`.
fn entries(stdout: &str) -> Vec<RunLogEntry> {
    assert!(stdout.ends_with('\n'), "{stdout}");
    stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}")))
        .collect()
}

/// Returns the values of lines.
#[track_caller]
fn json_lines(text: &str) -> Vec<Value> {
    let value = |line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
    text.lines().map(value).collect()
}

/// Returns the run's id in the first entry of the output of `--json`.
fn run_id(stdout: &str) -> String {
    let first: Value = serde_json::from_str(stdout.lines().next().unwrap()).unwrap();
    first["runId"].as_str().unwrap().to_owned()
}

/// Returns the agents' events of the output of `--json`.
fn events(stdout: &str) -> Vec<AgentEvent> {
    let of_agent = |entry| match entry {
        RunLogEntry::Agent(entry) => Some(entry.event),
        _ => None,
    };
    entries(stdout).into_iter().filter_map(of_agent).collect()
}

/// Returns the result of the output of `--json`. `done` must be the last entry and the only one of its type.
fn done(stdout: &str) -> RunResult {
    let mut results = entries(stdout).into_iter().map(|entry| match entry {
        RunLogEntry::Agent(entry) => match entry.event {
            AgentEvent::Done(done) => Some(*done.result),
            _ => None,
        },
        _ => None,
    });
    let last = results.next_back().flatten();
    assert!(results.all(|result| result.is_none()), "{stdout}");
    last.unwrap_or_else(|| panic!("{stdout}"))
}

/// A running program. It is killed on drop.
struct Running {
    child: Child,
    stdout: Option<BufReader<ChildStdout>>,
}

impl Running {
    fn start(command: &mut Command) -> Self {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = child.stdout.take().map(BufReader::new);
        Self { child, stdout }
    }

    /// Reads one line of stdout.
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.as_mut().unwrap().read_line(&mut line).unwrap();
        line
    }

    /// Reads the lines of stdout up to one with this text.
    fn until(&mut self, text: &str) -> String {
        let mut read = self.line();
        while !read.contains(text) {
            let line = self.line();
            assert!(!line.is_empty(), "no {text:?}: {read}");
            read += &line;
        }
        read
    }

    fn close_stdout(&mut self) {
        self.stdout.take();
    }

    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id().cast_signed()), signal).unwrap();
    }

    /// Stops it, which succeeds.
    #[track_caller]
    fn stop(&mut self) {
        self.signal(Signal::SIGTERM);
        assert_eq!(self.wait().code(), Some(0));
    }

    /// Waits for the end without reading anything.
    fn wait(&mut self) -> ExitStatus {
        let ended = wait_until(LIMIT, || self.child.try_wait().unwrap().is_some());
        assert!(ended, "teamster does not end");
        self.child.wait().unwrap()
    }

    /// Reads the rest of stdout, then waits for the end.
    fn end(&mut self) -> Ended {
        let (mut stdout, mut stderr) = (String::new(), String::new());
        if let Some(rest) = &mut self.stdout {
            rest.read_to_string(&mut stdout).unwrap();
        }
        let code = self.wait().code();
        let mut pipe = self.child.stderr.take().unwrap();
        pipe.read_to_string(&mut stderr).unwrap();
        Ended {
            code,
            stdout,
            stderr,
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // After a passed test, the program has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
