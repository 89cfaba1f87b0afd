//! Estimated costs of an agent that reports tokens only, with a shell script as Codex.

use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::cli::{program, run, teamster};

// Made by hand, in recorded shapes.
const CODEX: &str = r#"
case "$*" in *--version*) echo 'codex-cli 0.169.0'; exit 0;; esac
cat > /dev/null
printf '{"type":"thread.started","thread_id":"01a2099f-b69e-79c2-a2d5-3eb16534522f"}\n'
printf '{"type":"turn.started"}\n'
printf '{"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"hello"}}\n'
printf '{"type":"turn.completed","usage":{"input_tokens":1000000,"cached_input_tokens":0,"output_tokens":0}}\n'
"#;

struct Codex(TempDir);

impl Codex {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        program(&dir.path().join("codex"), CODEX);
        Self(dir)
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = teamster(args.iter().copied());
        command
            .env("TEAMSTER_CODEX_BIN", self.0.path().join("codex"))
            .env("HOME", self.0.path())
            .env("TEAMSTER_STORE", self.0.path().join("store.db"))
            .env("XDG_STATE_HOME", self.0.path().join("state"))
            .current_dir(self.0.path());
        command
    }
}

/// A million input tokens of gpt-5.5 cost 5 USD by the table.
#[test]
fn the_cost_of_a_run_is_estimated_and_kept_as_an_estimate() {
    let codex = Codex::new();
    let mut command = codex.command(&["run", "codex", "x", "--model", "gpt-5.5"]);
    let ended = run(&mut command).ok();
    ended.stderr_has("~$5.00");
    for (args, shown) in [
        (&["runs", "show", "last"][..], "~$5.00"),
        (&["runs", "list"], "~$5.00"),
        (&["runs", "list", "--json"], r#""costSource":"estimated""#),
    ] {
        let listed = match args {
            ["runs", "show", _] => {
                let listed = run(&mut codex.command(&["runs", "list", "--json"]));
                let record: Value = serde_json::from_str(listed.stdout.trim()).unwrap();
                let id = record["runId"].as_str().unwrap().to_owned();
                run(&mut codex.command(&["runs", "show", &id]))
            }
            args => run(&mut codex.command(args)),
        };
        assert!(listed.stdout.contains(shown), "{args:?}: {}", listed.stdout);
    }
    // It is no cost that the CLI has reported.
    let usage = run(&mut codex.command(&["usage", "--json"]));
    assert!(
        !usage.stdout.contains("reportedCostUsd"),
        "{}",
        usage.stdout
    );
}

#[test]
fn a_budget_in_usd_holds_for_an_agent_without_one() {
    let codex = Codex::new();
    let mut command = codex.command(&[
        "run",
        "codex",
        "x",
        "--model",
        "gpt-5.5",
        "--max-budget-usd",
        "2",
    ]);
    run(&mut command).fails(1, "budget of 2 USD is spent");
    let mut command = codex.command(&["run", "codex", "x", "--max-budget-usd", "2"]);
    run(&mut command).fails(1, "there is no price for the model of codex");
}
