//! Runs and sessions of a Rust program whose `main` does not begin with `init`: it names an installed `teamster`, which
//! carries them out.

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::json;
use teamster::Providers;
use teamster_api::{AgentDepth, RunHandle, RunSpec, SessionSpec, Spec};
use teamster_core::Stopping;
use teamster_host::Host;
use teamster_testkit::proc::is_alive;
use tempfile::TempDir;

use super::about;
use crate::cli::chat::Agent;
use crate::cli::{Claude, TEAMSTER, program};

/// Set in the process that is the other program.
const OTHER: &str = "TEAMSTER_TEST_OTHER_PROGRAM";

/// Runs a test again as the other program, whose Claude Code and state are these. Returns `true` in that process.
fn is_other_program(test: &str, with: impl FnOnce(&mut Command)) -> bool {
    if env::var_os(OTHER).is_some() {
        return true;
    }
    let mut command = Command::new(env::current_exe().unwrap());
    command
        .args(["--exact", &format!("cli::detached::other_program::{test}")])
        .arg("--nocapture")
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("TEAMSTER_STORE", "off")
        .env(OTHER, "1");
    with(&mut command);
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{text}{errors}"
    );
    false
}

/// Starts a run or session with a host that names the installed program.
async fn start(id: &str, spec: impl Into<Spec>) -> RunHandle {
    let host = Host::new(Providers::builtin()).program(TEAMSTER);
    let run = host.start(id, spec).await.unwrap();
    assert!(!run.accepted().existed);
    run
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Runtime::new().unwrap()
}

#[test]
fn installed_teamster_carries_out_a_run_of_another_program() {
    // Made only where it is needed: the other program has none.
    let claude = env::var_os(OTHER).is_none().then(Claude::silent);
    let test = "installed_teamster_carries_out_a_run_of_another_program";
    let with = |command: &mut Command| {
        let claude = claude.as_ref().unwrap();
        command
            .env("TEAMSTER_CLAUDE_BIN", claude.path("claude"))
            .env("XDG_STATE_HOME", claude.path("state"));
    };
    if is_other_program(test, with) {
        let mut spec = RunSpec::new("claude", "x");
        spec.ask_timeout_ms = Some(0);
        runtime().block_on(start("mine", spec));
        return;
    }
    let claude = claude.unwrap();
    // The program has ended, and its run continues.
    let agent = claude.report();
    assert!(is_alive(agent.pid));
    if cfg!(target_os = "linux") {
        let runner = fs::read_link(format!("/proc/{}/exe", agent.ppid)).unwrap();
        assert_eq!(runner, Path::new(TEAMSTER).canonicalize().unwrap());
    }
    about(&claude, ["cancel", "mine"]).ok();
    let ended = about(&claude, ["wait", "mine"]);
    assert_eq!(ended.code, Some(130), "{}", ended.stderr);
}

/// An agent with sessions that first asks `teamster mcp serve` to run another one, and writes down the answers.
struct AskingAgent {
    agent: Agent,
    dir: TempDir,
}

impl AskingAgent {
    fn new() -> Self {
        let (agent, dir) = (Agent::new(), tempfile::tempdir().unwrap());
        let path = |name: &str| dir.path().join(name).display().to_string();
        let calls = [
            json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
                "protocolVersion": "2025-11-25", "capabilities": {},
                "clientInfo": {"name": "test", "version": "1"}}}),
            json!({"jsonrpc": "2.0", "method": "notifications/initialized", "params": {}}),
            json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
                "name": "run", "arguments": {"agent": "claude", "prompt": "x"}}}),
        ];
        let lines = calls
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join("\n")
            + "\n";
        fs::write(path("calls"), lines).unwrap();
        let (calls, answers, depth) = (path("calls"), path("answers"), path("depth"));
        // The server stops what it has started once its input ends, so the input lasts until the answer.
        program(
            &dir.path().join("claude"),
            &format!(
                "printf '%s of %s' \"$TEAMSTER_AGENT_DEPTH\" \"$TEAMSTER_AGENT_MAX_DEPTH\" > '{depth}'\n\
                 : > '{answers}'\n\
                 {{ cat '{calls}'; n=0; until grep -q '\"id\":2' '{answers}' || [ $n = 600 ]; do n=$((n+1)); sleep 0.1; done; }} |\n  \
                 '{TEAMSTER}' mcp serve --max-depth 9 > '{answers}'\n\
                 exec '{}' \"$@\"",
                agent.path("claude").display()
            ),
        );
        Self { agent, dir }
    }

    fn written(&self, name: &str) -> String {
        fs::read_to_string(self.dir.path().join(name)).unwrap()
    }
}

#[test]
fn agent_of_a_session_starts_no_agent_at_the_depth_limit() {
    let agent = env::var_os(OTHER).is_none().then(AskingAgent::new);
    let test = "agent_of_a_session_starts_no_agent_at_the_depth_limit";
    let with = |command: &mut Command| {
        let AskingAgent { agent, dir } = agent.as_ref().unwrap();
        command
            .env("TEAMSTER_CLAUDE_BIN", dir.path().join("claude"))
            .env("XDG_STATE_HOME", agent.path("state"));
    };
    if is_other_program(test, with) {
        let mut spec = SessionSpec::new("claude");
        spec.depth = Some(AgentDepth::new(2, Some(2)));
        runtime().block_on(async {
            let session = start("s", spec).await;
            let (turn, seq) = session.say("hello").await.unwrap();
            let mut log = session.follow(seq);
            loop {
                let line = log.next().await.unwrap().unwrap();
                if line.type_name() == "done" {
                    let text = String::from_utf8_lossy(line.json());
                    assert!(text.contains(&turn), "{text}");
                    break;
                }
            }
            session.cancel(Stopping::Graceful).await.unwrap();
            session.result().await.unwrap();
        });
        return;
    }
    let agent = agent.unwrap();
    assert_eq!(agent.written("depth"), "2 of 2");
    let answers = agent.written("answers");
    assert!(answers.contains("depth 2 of at most 2"), "{answers}");
}
