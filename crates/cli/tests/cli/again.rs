//! `teamster run` with retries and fallbacks.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use teamster::RunStatus;
use teamster_testkit::fake_agent::{Play, Report, Script, Step};
use tempfile::TempDir;

use crate::cli::{TEAMSTER, done, program, recorded, run, teamster};

/// Agents that play a different recording at each start.
pub(crate) struct Agents {
    dir: TempDir,
}

impl Agents {
    pub(crate) fn new() -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Adds a provider's program. Its starts play `scenarios` in order.
    fn plays(self, provider: &str, version: &str, scenarios: &[(&str, u8)]) -> Self {
        for (number, (scenario, code)) in (1..).zip(scenarios) {
            let file = self.path(&format!("{provider}-{number}"));
            let script = Script::new()
                .step(Step::Report {
                    file: file.with_extension("json"),
                })
                .play(Play::new(recorded(provider, version, scenario)))
                .exit(*code)
                .to_toml()
                .unwrap();
            fs::write(file.with_extension("toml"), script).unwrap();
        }
        let base = self.path(provider);
        let base = base.display();
        program(
            &self.path(provider),
            &format!(
                "n=$(($(cat '{base}.count' 2>/dev/null || echo 0) + 1)); echo $n > '{base}.count'\n\
                 TEAMSTER_FAKE_SCRIPT=\"@{base}-$n.toml\" exec '{TEAMSTER}' fake-agent \"$@\""
            ),
        );
        self
    }

    pub(crate) fn claude(self, scenarios: &[(&str, u8)]) -> Self {
        self.plays("claude", "2.1.197", scenarios)
    }

    pub(crate) fn codex(self, scenarios: &[(&str, u8)]) -> Self {
        self.plays("codex", "0.169.0", scenarios)
    }

    /// Creates the command `teamster run claude` with these agents.
    pub(crate) fn run<'a>(&self, args: impl IntoIterator<Item = &'a str>) -> Command {
        let mut command = teamster(["run", "claude"]);
        command
            .args(args)
            .env("TEAMSTER_CLAUDE_BIN", self.path("claude"))
            .env("TEAMSTER_CODEX_BIN", self.path("codex"));
        command
    }

    /// Returns the arguments of a provider's start; numbers begin at 1.
    pub(crate) fn argv(&self, provider: &str, number: u32) -> Vec<String> {
        let file = self.path(&format!("{provider}-{number}.json"));
        Report::read(&file)
            .unwrap_or_else(|error| panic!("{}: {error}", file.display()))
            .argv
    }

    pub(crate) fn starts(&self, provider: &str) -> u32 {
        let count = fs::read_to_string(self.path(&format!("{provider}.count")));
        // The file is empty while the agent writes it.
        count.map_or(0, |count| count.trim().parse().unwrap_or_default())
    }
}

#[test]
fn a_fallback_takes_over() {
    let agents = Agents::new()
        .claude(&[("conformance_unauthorized", 1)])
        .codex(&[("text", 0)]);
    let args = [
        "the task",
        "--model=opus",
        "--fallback=codex:gpt-x",
        "--json",
    ];
    let ended = run(&mut agents.run(args)).ok();
    assert_eq!(done(&ended.stdout).status, RunStatus::Completed);
    let argv = agents.argv("codex", 1);
    assert!(argv.contains(&"the task".to_owned()), "{argv:?}");
    assert!(argv.iter().any(|arg| arg.contains("gpt-x")), "{argv:?}");
    assert!(!argv.iter().any(|arg| arg.contains("opus")), "{argv:?}");
}

#[test]
fn a_retry_is_shown_with_agent_and_reason() {
    let agents = Agents::new()
        .claude(&[("conformance_unauthorized", 1)])
        .codex(&[("text", 0)]);
    let ended = run(&mut agents.run(["the task", "--fallback=codex"])).ok();
    ended.stderr_has("claude failed (");
    ended.stderr_has("codex");
    ended.stderr_has("resume with: teamster run codex --resume ");
}

#[test]
fn lifecycle_events_are_printed_as_json() {
    let agents = Agents::new()
        .claude(&[("conformance_unauthorized", 1)])
        .codex(&[("tool_shell_ok", 0)]);
    let args = [
        "x",
        "--fallback=codex",
        "--json",
        "--lifecycle",
        "--run-id=r-1",
    ];
    let ended = run(&mut agents.run(args)).quiet();
    let lines = ended.json_lines();
    assert!(lines.iter().all(|line| line["runId"] == "r-1"));
    assert_eq!(lines[0]["seq"], 1);
    for two in lines.windows(2) {
        let [one, next] = two else { continue };
        let (one_seq, next_seq) = (one["seq"].as_u64(), next["seq"].as_u64());
        // `tool:` and `assistant:` events have the `seq` of the entry before them.
        let is_entry = next["type"].as_str().unwrap().starts_with("run:");
        assert!(
            one_seq < next_seq || (one_seq == next_seq && !is_entry),
            "{two:?}"
        );
    }
    for line in &lines {
        assert!(line["atMs"].as_u64() > Some(1_700_000_000_000), "{line}");
    }
    let attempts: Vec<_> = lines.iter().map(|line| line["attempt"].as_u64()).collect();
    assert_eq!((attempts[0], attempts.last()), (Some(1), Some(&Some(2))));
    let mut types: Vec<&str> = lines
        .iter()
        .map(|line| line["type"].as_str().unwrap())
        .collect();
    types.dedup();
    assert_eq!(types[..3], ["run:start", "run:attempt", "run:fallback"]);
    assert!(
        types.contains(&"tool:start") && types.contains(&"tool:end"),
        "{types:?}"
    );
    assert_eq!(types.last(), Some(&"run:end"));
    assert_eq!(types.iter().filter(|name| **name == "run:end").count(), 1);
    let end = lines.last().unwrap();
    assert_eq!(end["status"], "success");
    assert_eq!(end["result"]["meta"]["attempts"], 2);
    assert_eq!(end["result"]["meta"]["provider"], "codex");
}

#[test]
fn denied_tools_prevent_a_fallback_to_another_cli() {
    let agents = Agents::new().claude(&[("text", 0)]);
    let ended = run(&mut agents.run(["x", "--deny-tool=Bash", "--fallback=codex"]));
    ended.fails(2, "--fallback codex");
    ended.stderr_has("`--deny-tool` has the tool names of another CLI");
    assert_eq!(agents.starts("claude"), 0);
}
