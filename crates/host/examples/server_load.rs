//! How a server does with many runs and watchers.
//!
//! ```sh
//! cargo build --release -p teamster-cli
//! cargo run --release -p teamster-host --example server_load -- target/release/teamster
//! ```
//!
//! 1,000 runs that have ended are on the disk, and 24 runs are live, whose agent prints a line with the time every
//! 100 ms. 200 watchers follow them as server-sent events, and one more connects 100 times, behind the last entry that
//! it has. Nothing here runs an agent's real CLI.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "an example")]

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use teamster_api::{RunInfo, RunLogEntry};
use teamster_core::{
    AgentEvent, Done, LogEntry, RunResult, RunStatus, ToolKind, ToolResult, ToolUse,
};
use teamster_runner::{LogLimits, Runs};

/// Runs on the disk, and entries of each.
const ENDED: usize = 1000;
const ENTRIES: usize = 200;
/// Runs that are live, and lines that each agent prints.
const LIVE: usize = 24;
const LINES: usize = 300;
const WATCHERS: usize = 200;
const RECONNECTS: usize = 100;

/// A stand-in for Claude Code: each line is a call of a tool, whose input is the time in nanoseconds.
const AGENT: &str = r"#!/usr/bin/env python3
import json, sys, time
if '--version' in sys.argv:
    print('2.1.197 (Claude Code)')
    sys.exit()
def line(value):
    print(json.dumps(value), flush=True)
line({'type': 'system', 'subtype': 'init', 'session_id': 's', 'model': 'opus'})
time.sleep(3)
for n in range(LINES):
    use = {'type': 'tool_use', 'id': f't{n}', 'name': 'Bash', 'input': {'at': time.time_ns()}}
    line({'type': 'assistant', 'session_id': 's', 'message': {'id': f'm{n}', 'role': 'assistant', 'content': [use]}})
    result = {'type': 'tool_result', 'tool_use_id': f't{n}', 'content': 'x' * 200}
    line({'type': 'user', 'session_id': 's', 'message': {'role': 'user', 'content': [result]}})
    time.sleep(0.1)
line({'type': 'result', 'subtype': 'success', 'is_error': False, 'session_id': 's', 'num_turns': 1, 'result': 'x'})
";

fn main() {
    let Some(program) = std::env::args_os().nth(1) else {
        println!("expected the path of the program");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let began = Instant::now();
    write_runs(&Runs::at(state.join("teamster/runs")));
    println!(
        "{ENDED} runs of {ENTRIES} entries written in {:.1?}",
        began.elapsed()
    );

    let server = Server::start(Path::new(&program), folder.path());
    println!("PSS of the server after its start: {}", server.pss());
    let began = Instant::now();
    let list = server.get("/v1/runs?limit=1000");
    assert_eq!(list["runs"].as_array().unwrap().len(), ENDED);
    println!("first GET /v1/runs of all: {:.0?}", began.elapsed());
    let began = Instant::now();
    server.get("/v1/runs?limit=1000");
    println!("second: {:.0?}; PSS: {}", began.elapsed(), server.pss());

    let live: Vec<String> = (0..LIVE).map(|_| server.run()).collect();
    let server = Arc::new(server);
    let watchers: Vec<_> = (0..WATCHERS)
        .map(|n| {
            let (server, id) = (server.clone(), live[n % LIVE].clone());
            thread::spawn(move || server.watch(&id, 0, usize::MAX))
        })
        .collect();
    let ended = Arc::new(AtomicBool::new(false));
    let most = {
        let (server, ended) = (server.clone(), ended.clone());
        thread::spawn(move || {
            let mut most = 0;
            while !ended.load(Ordering::Relaxed) {
                most = most.max(server.pss_kib());
                thread::sleep(Duration::from_millis(500));
            }
            most
        })
    };
    let again = {
        let (server, id) = (server.clone(), live[0].clone());
        thread::spawn(move || server.reconnect(&id))
    };
    let mut latencies = Vec::new();
    let (mut entries, mut lost, mut twice) = (0, 0, 0);
    for watcher in watchers {
        let seen = watcher.join().unwrap();
        entries += seen.seqs.len();
        lost += seen.lost();
        twice += seen.twice();
        latencies.extend(seen.latencies);
    }
    let again = again.join().unwrap();
    ended.store(true, Ordering::Relaxed);
    latencies.sort_unstable();
    println!(
        "{WATCHERS} watchers of {LIVE} live runs: {entries} entries, {lost} lost, {twice} twice"
    );
    println!(
        "from the agent's line to the watcher: p50 {:.1?}, p99 {:.1?}, longest {:.1?} ({} lines)",
        percentile(&latencies, 50),
        percentile(&latencies, 99),
        latencies.last().copied().unwrap_or_default(),
        latencies.len()
    );
    println!(
        "{RECONNECTS} connections one after the other: {} entries, {} lost, {} twice",
        again.seqs.len(),
        again.lost(),
        again.twice()
    );
    println!(
        "PSS of the server with {WATCHERS} watchers, at most: {:.1} MiB",
        mib(most.join().unwrap())
    );
}

/// Runs that have ended, as a runner would have written them.
fn write_runs(runs: &Runs) {
    for n in 0..ENDED {
        let info = RunInfo::new(format!("ended-{n:04}"), "claude");
        let mut run = runs.accept(&info, LogLimits::default()).unwrap();
        let mut push = |event: AgentEvent| {
            run.log.push(RunLogEntry::Agent(LogEntry::from(event)));
        };
        for entry in 0..(ENTRIES - 1) / 2 {
            let input = json!({"command": format!("cargo test {entry}")});
            let id = format!("t{entry}");
            let tool = ToolUse::new("Bash", id.clone(), ToolKind::Execute, input);
            push(AgentEvent::ToolUse(Box::new(tool)));
            push(AgentEvent::ToolResult(Box::new(ToolResult::new(
                id,
                "x".repeat(200),
            ))));
        }
        let result = RunResult::default().status(RunStatus::Completed);
        push(AgentEvent::Done(Done::new(Box::new(result))));
        run.log.flush().unwrap();
    }
}

struct Server {
    child: Child,
    address: String,
    token: String,
}

impl Server {
    fn start(program: &Path, folder: &Path) -> Self {
        let agent = folder.join("claude");
        fs::write(&agent, AGENT.replace("LINES", &LINES.to_string())).unwrap();
        fs::set_permissions(&agent, fs::Permissions::from_mode(0o755)).unwrap();
        let state = folder.join("state");
        let mut child = Command::new(program)
            .args(["serve", "--listen", "127.0.0.1:0"])
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", folder)
            .env("XDG_STATE_HOME", &state)
            .env("TEAMSTER_STORE", "off")
            .env("TEAMSTER_CLAUDE_BIN", agent)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let token: PathBuf = state.join("teamster/server/token");
        Self {
            child,
            address: line.trim_end().trim_start_matches("http://").to_owned(),
            token: fs::read_to_string(token).unwrap().trim_end().to_owned(),
        }
    }

    /// Sends a request; what its response is read from, behind the head.
    fn open(&self, request: &str, headers: &str, body: &str) -> BufReader<TcpStream> {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let head = format!(
            "{request} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nConnection: close\r\n{headers}\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.address,
            self.token,
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        while line != "\r\n" {
            line.clear();
            assert_ne!(reader.read_line(&mut line).unwrap(), 0);
        }
        reader
    }

    fn get(&self, path: &str) -> Value {
        let mut body = Vec::new();
        let mut reader = self.open(&format!("GET {path}"), "", "");
        reader.read_to_end(&mut body).unwrap();
        serde_json::from_slice(&body).unwrap()
    }

    /// Starts a run; its id.
    fn run(&self) -> String {
        let body = json!({"provider": "claude", "prompt": "x", "askTimeoutMs": 0}).to_string();
        let mut text = String::new();
        let mut reader = self.open("POST /v1/runs", "", &body);
        reader.read_to_string(&mut text).unwrap();
        let run: Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}"));
        run["runId"].as_str().unwrap().to_owned()
    }

    /// Follows a run behind an entry, to its end or for so many entries.
    fn watch(&self, id: &str, after: u64, most: usize) -> Seen {
        let mut seen = Seen::default();
        let accept = format!("Accept: text/event-stream\r\nLast-Event-ID: {after}\r\n");
        let reader = self.open(&format!("GET /v1/runs/{id}/events"), &accept, "");
        for line in reader.lines() {
            let line = line.unwrap();
            if line == "event: end" {
                seen.ended = true;
            }
            let Some(data) = line.strip_prefix("data: ").filter(|data| *data != "{}") else {
                continue;
            };
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
            let entry: Value = serde_json::from_str(data).unwrap();
            seen.seqs.push(entry["seq"].as_u64().unwrap());
            if let Some(at) = entry["input"]["at"].as_u64() {
                seen.latencies
                    .push(now.saturating_sub(Duration::from_nanos(at)));
            }
            if seen.seqs.len() >= most {
                break;
            }
        }
        seen
    }

    /// Connects again and again, each time behind the last entry.
    fn reconnect(&self, id: &str) -> Seen {
        let mut all = Seen::default();
        for n in 1.. {
            let after = all.seqs.last().copied().unwrap_or(0);
            let most = if n < RECONNECTS { 3 } else { usize::MAX };
            let seen = self.watch(id, after, most);
            all.seqs.extend(seen.seqs);
            if seen.ended {
                assert!(n >= RECONNECTS, "the run ended after {n} connections");
                return all;
            }
        }
        all
    }

    fn pss_kib(&self) -> u64 {
        let rollup = format!("/proc/{}/smaps_rollup", self.child.id());
        let text = fs::read_to_string(rollup).unwrap();
        let line = text.lines().find(|line| line.starts_with("Pss:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }

    fn pss(&self) -> String {
        format!("{:.1} MiB", mib(self.pss_kib()))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a watcher has seen.
#[derive(Default)]
struct Seen {
    seqs: Vec<u64>,
    latencies: Vec<Duration>,
    ended: bool,
}

impl Seen {
    fn counts(&self) -> BTreeMap<u64, usize> {
        let mut counts = BTreeMap::new();
        for seq in &self.seqs {
            *counts.entry(*seq).or_default() += 1;
        }
        counts
    }

    /// Entries that did not come.
    fn lost(&self) -> u64 {
        let counts = self.counts();
        let last = counts.keys().next_back().copied().unwrap_or(0);
        last - counts.len() as u64
    }

    fn twice(&self) -> usize {
        self.counts().values().filter(|count| **count > 1).count()
    }
}

fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    let index = (sorted.len() * percent / 100).min(sorted.len().saturating_sub(1));
    sorted.get(index).copied().unwrap_or_default()
}

#[expect(clippy::cast_precision_loss, reason = "to 15 digits")]
fn mib(kib: u64) -> f64 {
    kib as f64 / 1024.0
}
