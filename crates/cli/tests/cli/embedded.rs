//! `teamster run embedded`, the embedded agent, with the mock model.

use std::env::home_dir;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use teamster::{CostSource, RunStatus};
use tempfile::TempDir;

use crate::cli::{Running, done, run, teamster};

const SCRIPT: &str = r#"
[[turn]]
parts = [{ text = "I look. " }, { shell = "cat notes.txt" }]

[[turn]]
parts = [{ text = "It says hi." }]
"#;

/// A working directory and a mock model.
struct Workspace {
    dir: TempDir,
    url: String,
    _model: Running,
}

impl Workspace {
    fn new(script: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("script.toml"), script).unwrap();
        fs::write(dir.path().join("notes.txt"), "hi\n").unwrap();
        let mut model = Running::start(
            teamster(["mock-model", "script.toml", "--cli", "embedded", "--json"])
                .current_dir(dir.path())
                .env("HOME", dir.path()),
        );
        let announced: Value = serde_json::from_str(&model.line()).unwrap();
        let url = announced["url"].as_str().unwrap().to_owned();
        Self {
            dir,
            url,
            _model: model,
        }
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    fn command<'a>(&self, args: impl IntoIterator<Item = &'a str>) -> Command {
        let mut command = teamster(args);
        command
            .current_dir(self.path())
            .env("HOME", self.path())
            .env("OPENAI_API_KEY", "sk-secret-123")
            .env("OPENAI_BASE_URL", format!("{}/v1", self.url));
        command
    }
}

#[test]
fn embedded_agent_answers_with_a_tool_and_an_estimated_cost() {
    let workspace = Workspace::new(SCRIPT);
    let ended = run(&mut workspace.command([
        "run",
        "embedded",
        "What do the notes say?",
        "--model=openai/gpt-5.1",
        "--permission=bypass",
        "--json",
    ]))
    .ok();
    let result = done(&ended.stdout);
    assert_eq!(result.status, RunStatus::Completed);
    assert_eq!(result.answer(), Some("It says hi."));
    assert_eq!(result.cost_source, Some(CostSource::Estimated));
    assert!(result.total_cost_usd.unwrap() > 0.0);
    assert!(!ended.stdout.contains("sk-secret-123") && !ended.stderr.contains("sk-secret-123"));
    ended.stdout_has(r#""output":"hi\n""#);

    // The session is resumed; the mock model has no more turns.
    let id = result.session_id.unwrap();
    run(&mut workspace.command(["run", "embedded", "Again?", "--resume", &id]))
        .fails(1, "no more turns");
}

#[test]
fn missing_settings_are_reported_with_the_next_step() {
    let workspace = Workspace::new(SCRIPT);
    for (args, code, expected) in [
        (
            &["run", "embedded", "hi", "--model=anthropic/claude-x"][..],
            1,
            "no key for anthropic: set ANTHROPIC_API_KEY",
        ),
        (
            &["run", "embedded", "hi", "--model=llama3"],
            2,
            "--model: `llama3` names no service; write one of anthropic/MODEL",
        ),
        (
            &["run", "embedded", "hi", "--record", "there"],
            2,
            "--record: no CLI output to record",
        ),
        (
            &["run", "embedded", "hi", "--bin", "there"],
            2,
            "--bin: the embedded agent starts no program",
        ),
    ] {
        let mut args = args.to_vec();
        args.insert(2, "--cli-retries=0");
        let ended = run(&mut workspace.command(args.iter().copied()));
        assert_eq!(ended.code, Some(code), "{args:?}: {}", ended.stderr);
        let stderr = ended
            .stderr
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        assert!(stderr.contains(expected), "{args:?}: {stderr}");
        assert!(!stderr.contains("sk-secret-123"), "{args:?}: {stderr}");
    }
}

#[test]
fn the_doctor_reports_whether_there_is_a_key() {
    let empty = tempfile::tempdir().unwrap();
    let about = |command: &mut Command| {
        let ended = run(command.env("PATH", empty.path()));
        let from = ended.stdout.find("Embedded").unwrap_or_default();
        (ended.code, ended.stdout[from..].to_owned())
    };
    let (code, output) = about(&mut teamster(["doctor"]));
    assert_eq!(code, Some(3));
    assert!(output.starts_with("Embedded  not ready"), "{output}");
    assert!(output.contains("ANTHROPIC_API_KEY"), "{output}");
    let (code, output) = about(teamster(["doctor"]).env("GEMINI_API_KEY", "x"));
    assert_eq!(code, Some(0));
    assert!(output.contains("yes, by GEMINI_API_KEY"), "{output}");
}

#[test]
fn the_demo_plays_with_it() {
    let empty = tempfile::tempdir().unwrap();
    let ended = run(
        teamster(["demo", "--provider=embedded", "--speed=100", "--json"])
            .env("TMPDIR", empty.path()),
    )
    .ok();
    assert_eq!(done(&ended.stdout).status, RunStatus::Completed);
    assert_eq!(fs::read_dir(empty.path()).unwrap().count(), 0);
}

#[test]
fn embedded_agent_runs_the_ticks_of_a_loop() {
    let workspace = Workspace::new(SCRIPT);
    let agent = workspace.path().join("agent");
    fs::create_dir(&agent).unwrap();
    fs::write(agent.join("AGENTS.md"), "Read the notes.\n").unwrap();
    fs::write(agent.join("notes.txt"), "hi\n").unwrap();
    let mut command = workspace.command(["loop", "agent", "--ticks", "1"]);
    command
        .env("RUNTIME", "embedded")
        .env("EMBEDDED_MODEL", "openai/gpt-5.1");
    let ended = run(&mut command).ok();
    let record = |name: &str| {
        let text = fs::read_to_string(agent.join(".orchestrator").join(name)).unwrap();
        serde_json::from_str::<Value>(text.lines().last().unwrap()).unwrap()
    };
    let tick = record("ticks.jsonl");
    assert_eq!(tick["result"], "completed", "{}", ended.stdout);
    assert!(tick["output_tokens"].as_u64() > Some(0), "{tick}");
    assert_eq!(tick["cost_source"], "estimated", "{tick}");
    assert!(tick["cost_usd"].as_f64() > Some(0.0), "{tick}");
    let shown = run(&mut workspace.command(["attach", "agent"])).ok();
    shown.stdout_has("It says hi.");
}

/// What a command finds out about the processes around it, written to files.
#[cfg(target_os = "linux")]
const LOOK: &str = r#"
[[turn]]
parts = [{ shell = """
for pid in $(ls /proc | grep '^[0-9]*$'); do
  grep -qa sk-look-456 /proc/$pid/environ 2>/dev/null && tr '\\0' ' ' < /proc/$pid/cmdline >> found
done
tr '\\0' '\\n' < /proc/$PPID/environ > environ
env > own
true
""" }]

[[turn]]
parts = [{ text = "Done." }]
"#;

#[cfg(target_os = "linux")]
#[test]
fn a_command_cannot_read_the_key_of_its_parent() {
    let workspace = Workspace::new(LOOK);
    let mut command = workspace.command([
        "run",
        "embedded",
        "Look.",
        "--model=openai/gpt-5.1",
        "--permission=bypass",
        "--json",
    ]);
    // A key of its own: tests at the same time have the other one.
    run(command.env("OPENAI_API_KEY", "sk-look-456")).ok();
    let read = |file: &str| fs::read_to_string(workspace.path().join(file)).unwrap_or_default();
    let environ = read("environ");
    // Of another user than root, the file cannot be read at all. The entry is renamed and empty.
    if nix::unistd::geteuid().is_root() {
        assert!(environ.contains("PENAI_API_KEY=\n"), "{environ}");
    }
    assert!(!environ.contains("sk-look-456"), "{environ}");
    let own = read("own");
    assert!(
        own.contains("OPENAI_BASE_URL=") && !own.contains("sk-look-456"),
        "{own}"
    );
    assert_eq!(read("found"), "", "processes with the key");
}

#[cfg(target_os = "linux")]
#[test]
fn sandboxed_command_cannot_write_elsewhere_or_inspect_teamster() {
    let script = r#"
[[turn]]
parts = [{ shell = """
echo in > inside
echo out > "$OUTSIDE/file"
(exec 3< /proc/$PPID/mem && echo opened > memory)
cat "$OUTSIDE/readable" > copied
true
""" }]

[[turn]]
parts = [{ text = "Done." }]
"#;
    let workspace = Workspace::new(script);
    // Not below a folder for temporary files, which commands may use.
    let target = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let is_temporary = ["/tmp", "/var/tmp"].iter().any(|it| target.starts_with(it));
    let outside = if is_temporary {
        home_dir().unwrap()
    } else {
        target
    };
    let outside = tempfile::tempdir_in(outside).unwrap();
    fs::write(outside.path().join("readable"), "yes").unwrap();
    let mut command = workspace.command([
        "run",
        "embedded",
        "Write.",
        "--model=openai/gpt-5.1",
        "--permission=bypass",
        "--json",
        "--",
        "--sandbox",
    ]);
    let ended = run(command.env("OUTSIDE", outside.path()));
    assert_eq!(ended.code, Some(0), "{}\n{}", ended.stdout, ended.stderr);
    let read = |file: &str| fs::read_to_string(workspace.path().join(file)).unwrap_or_default();
    assert_eq!(
        (read("inside").as_str(), read("copied").as_str()),
        ("in\n", "yes")
    );
    assert!(!outside.path().join("file").exists(), "{}", ended.stdout);
    // Root could open it without the sandbox.
    assert_eq!(read("memory"), "", "{}", ended.stdout);
    ended.stdout_has("Permission denied");
}
