//! Measures the cost of runners: memory and wake-ups of idle sessions, and the startup overhead of detached
//! runs.
//!
//! ```sh
//! cargo build --release -p teamster-cli
//! cargo run --release -p teamster-runner --example farm -- target/release/teamster --sessions 10 --seconds 60 --runs 40
//! ```
//!
//! The agent is a shell script in place of Claude Code. All files are in a temporary folder. Linux only.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "it is a program")]

use std::collections::BTreeMap;
use std::env;
use std::error::Error;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

type Failure = Box<dyn Error>;

/// Wait after a session's turn before the measurement, until the last timers of the turn have fired.
const SETTLE: Duration = Duration::from_secs(8);

/// Limit for the start of the agent of a detached run.
const AGENT_LIMIT: Duration = Duration::from_secs(10);

/// Script of the agent: records its start time and answers each prompt with a word.
const AGENT: &str = r#"#!/bin/sh
date +%s%N > "$FARM/started.new" && mv "$FARM/started.new" "$FARM/started"
id=session-$$ turn=0
field() { rest=${line#*"\"$1\":\""}; printf %s "${rest%%\"*}"; }
settle() {
  printf '{"type":"control_response","response":{"subtype":"success","request_id":"%s","response":{}}}\n' "$(field request_id)"
}
answer() {
  turn=$((turn + 1))
  printf '{"type":"system","subtype":"init","session_id":"%s","model":"opus"}\n' "$id"
  [ -z "$line" ] || printf '{"type":"user","message":{"role":"user","content":"x"},"session_id":"%s","uuid":"%s","isReplay":true}\n' "$id" "$(field uuid)"
  printf '{"type":"assistant","session_id":"%s","message":{"id":"m%s","role":"assistant","content":[{"type":"text","text":"done"}]}}\n' "$id" "$turn"
  printf '{"type":"result","subtype":"success","is_error":false,"session_id":"%s","num_turns":1,"result":"done","usage":{"input_tokens":10,"output_tokens":5},"terminal_reason":"completed"}\n' "$id"
}
while IFS= read -r line; do
  case $line in
    *'"subtype":"end_session"'*) settle; exit 0 ;;
    *'"type":"control_request"'*) settle ;;
    *) answer ;;
  esac
done
# A run whose prompt is an argument.
[ "$turn" -gt 0 ] || answer
"#;

struct Farm {
    program: PathBuf,
    dir: tempfile::TempDir,
}

impl Farm {
    fn new(program: PathBuf) -> Result<Self, Failure> {
        let dir = tempfile::tempdir()?;
        let agent = dir.path().join("claude");
        fs::write(&agent, AGENT)?;
        fs::set_permissions(&agent, fs::Permissions::from_mode(0o755))?;
        Ok(Self { program, dir })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(args)
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", self.path("home"))
            .env("XDG_STATE_HOME", self.path("state"))
            .env("FARM", self.dir.path())
            .env("TEAMSTER_CLAUDE_BIN", self.path("claude"))
            .stdin(Stdio::null());
        command
    }

    /// Runs a command and returns its stdout.
    fn run(&self, args: &[&str]) -> Result<String, Failure> {
        let output = self.command(args).output()?;
        if !output.status.success() {
            let errors = String::from_utf8_lossy(&output.stderr);
            return Err(format!("{args:?}: {}: {errors}", output.status).into());
        }
        Ok(String::from_utf8(output.stdout)?.trim_end().to_owned())
    }

    /// Returns the milliseconds from the start of this command to the start of its agent.
    fn begins_after(&self, args: &[&str]) -> Result<f64, Failure> {
        let started = self.path("started");
        let _ = fs::remove_file(&started);
        let begun = SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos();
        let printed = self.run(args)?;
        if args.contains(&"--detach") {
            // Another process before the start of the agent would be part of the measurement.
            let until = Instant::now() + AGENT_LIMIT;
            while !started.exists() {
                if Instant::now() > until {
                    return Err(format!("the agent of run {printed} is not started").into());
                }
                sleep(Duration::from_millis(1));
            }
            self.run(&["wait", &printed])?;
        }
        let started: u128 = fs::read_to_string(started)?.trim().parse()?;
        let micros = u32::try_from(started.saturating_sub(begun) / 1000)?;
        Ok(f64::from(micros) / 1000.0)
    }

    fn overhead(&self, runs: u32) -> Result<(), Failure> {
        let attached = &["run", "claude", "x", "--quiet"][..];
        let detached = &["run", "claude", "x", "--detach"][..];
        let (mut of_attached, mut of_detached) = (Vec::new(), Vec::new());
        for round in 0..=runs {
            let pair = (self.begins_after(attached)?, self.begins_after(detached)?);
            // The first round creates the folders and the database.
            if round > 0 {
                of_attached.push(pair.0);
                of_detached.push(pair.1);
            }
        }
        let (attached, detached) = (median(&mut of_attached), median(&mut of_detached));
        println!(
            "{runs} runs: the agent is started after {attached:.1} ms attached, {detached:.1} ms detached, \
             {:+.1} ms",
            detached - attached
        );
        Ok(())
    }

    fn rest(&self, sessions: u32, seconds: u64) -> Result<(), Failure> {
        let mut ids = Vec::new();
        for _ in 0..sessions {
            let id = self.run(&["chat", "claude", "--detach"])?;
            self.run(&["say", &id, "x", "--quiet"])?;
            ids.push(id);
        }
        sleep(SETTLE);
        let processes = self.processes()?;
        let before: Vec<u64> = processes.iter().map(|it| switches(it.pid)).collect();
        sleep(Duration::from_secs(seconds));
        let mut sums: BTreeMap<&str, Sums> = BTreeMap::new();
        for (process, before) in processes.iter().zip(before) {
            let sum = sums.entry(process.role).or_default();
            sum.count += 1;
            sum.switches += switches(process.pid) - before;
            let memory = memory(process.pid)?;
            sum.pss += memory.0;
            sum.private += memory.1;
        }
        for (role, sum) in sums {
            println!(
                "{} {role}s at rest: {} wake-ups in {seconds} s; each {} PSS, {} of it private",
                sum.count,
                sum.switches,
                mib(sum.pss / sum.count),
                mib(sum.private / sum.count)
            );
        }
        for id in ids {
            self.run(&["cancel", &id])?;
        }
        Ok(())
    }

    /// Returns the runners and guards of this farm.
    fn processes(&self) -> Result<Vec<Process>, Failure> {
        let mark = format!("FARM={}", self.dir.path().display());
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc")? {
            let path = entry?.path();
            let Some(pid) = path
                .file_name()
                .and_then(|name| name.to_str()?.parse().ok())
            else {
                continue;
            };
            let text = |name: &str| {
                let bytes = fs::read(path.join(name)).unwrap_or_default();
                String::from_utf8_lossy(&bytes).into_owned()
            };
            let arguments = text("cmdline");
            let role = match () {
                () if arguments.contains("\0--teamster-runner") => "runner",
                () if arguments.contains("\0--teamster-guard") => "guard",
                () => continue,
            };
            if text("environ").split('\0').any(|it| it == mark) {
                found.push(Process { pid, role });
            }
        }
        Ok(found)
    }
}

struct Process {
    pid: u32,
    role: &'static str,
}

#[derive(Default)]
struct Sums {
    count: u64,
    switches: u64,
    /// Proportional set size, in KiB.
    pss: u64,
    private: u64,
}

/// Returns the number of voluntary context switches of a process.
fn switches(pid: u32) -> u64 {
    let tasks = fs::read_dir(format!("/proc/{pid}/task"))
        .into_iter()
        .flatten();
    let status = tasks
        .flatten()
        .map(|task| figures(&task.path().join("status")));
    status
        .map(|status| status.get("voluntary_ctxt_switches").copied().unwrap_or(0))
        .sum()
}

/// Returns proportional and private memory of a process, in KiB.
fn memory(pid: u32) -> Result<(u64, u64), Failure> {
    let rollup = figures(Path::new(&format!("/proc/{pid}/smaps_rollup")));
    let of = |name: &str| rollup.get(name).copied().ok_or("it has ended");
    Ok((of("Pss")?, of("Private_Clean")? + of("Private_Dirty")?))
}

/// Parses the numbers of a file in `/proc`.
fn figures(path: &Path) -> BTreeMap<String, u64> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let line = |line: &str| {
        let (name, value) = line.split_once(':')?;
        let number = value.split_whitespace().next()?.parse().ok()?;
        Some((name.to_owned(), number))
    };
    text.lines().filter_map(line).collect()
}

fn mib(kib: u64) -> String {
    format!("{}.{} MiB", kib / 1024, kib % 1024 * 10 / 1024)
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

fn main() -> ExitCode {
    match start() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn start() -> Result<(), Failure> {
    let args: Vec<String> = env::args().skip(1).collect();
    let option = |name: &str, default: u32| -> Result<u32, Failure> {
        match args.iter().position(|it| it == name) {
            Some(at) => Ok(args.get(at + 1).ok_or("a number is missing")?.parse()?),
            None => Ok(default),
        }
    };
    let program = args.first().ok_or("the program `teamster` is missing")?;
    let farm = Farm::new(fs::canonicalize(program)?)?;
    farm.overhead(option("--runs", 40)?)?;
    farm.rest(option("--sessions", 10)?, option("--seconds", 60)?.into())
}
