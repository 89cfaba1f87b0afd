//! MCP servers in `teamster run`: from the flags to what the agent's CLI gets.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::cli::{Claude, Ended, run, teamster};
use teamster_testkit::fake_agent::Script;
use teamster_testkit::proc;

/// A program `opencode` that keeps how it was started and what it found, and follows a script.
pub(crate) struct OpenCode {
    pub(crate) dir: TempDir,
}

impl OpenCode {
    pub(crate) fn new(then: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let opencode = Self { dir };
        let file = opencode.path("opencode");
        let here = opencode.dir.path().display();
        let script = format!(
            "#!/bin/sh\ncd '{here}/work'\n\
             printf '%s' \"$OPENCODE_CONFIG_CONTENT\" > ../content.json\n\
             printf '%s\\n' \"$@\" > ../argv\n\
             cp opencode.json ../seen.json 2>/dev/null\n\
             echo $$ > ../pid.new; mv ../pid.new ../pid\n{then}\n"
        );
        proc::write_program(&file, script).unwrap();
        fs::create_dir(opencode.path("work")).unwrap();
        opencode
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn run<'a>(&self, args: impl IntoIterator<Item = &'a str>) -> Command {
        let mut command = teamster(["run", "opencode", "x"]);
        command
            .args(args)
            .current_dir(self.path("work"))
            .env("HOME", self.dir.path())
            .env("TEAMSTER_OPENCODE_BIN", self.path("opencode"));
        command
    }

    fn json(&self, name: &str) -> Value {
        serde_json::from_str(&fs::read_to_string(self.path(name)).unwrap()).unwrap()
    }
}

const CONFIG: &str = r#"{
  "mcpServers": {
    "tracker": { "command": "tracker-mcp", "args": ["-v"], "env": { "TOKEN": "${GIVEN} ${OURS:-}" } },
    "docs": { "url": "https://example.com/mcp", "headers": { "X-Key": "${OURS}" } },
  },
}"#;

#[test]
fn servers_reach_the_cli_with_their_variables() {
    // OpenCode reads values that may be secret from private files.
    let opencode = OpenCode::new(
        "cat \"$TEAMSTER_MCP_tracker_x_TOKEN\" > ../token\n\
         cat \"$TEAMSTER_MCP_docs_x_X_2DKey\" > ../key\nexit 1",
    );
    fs::write(opencode.path("work/.mcp.json"), CONFIG).unwrap();
    let ended = run(opencode
        .run([
            "--mcp-config=.mcp.json",
            "--mcp=local=A=1 my-mcp 'a b'",
            "--env=GIVEN=given",
        ])
        .env("GIVEN", "not this")
        .env("OURS", "ours"));
    // It is no real agent.
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    let servers = &opencode.json("content.json")["mcp"];
    let names: Vec<_> = servers.as_object().unwrap().keys().collect();
    assert_eq!(names, ["tracker", "docs", "local"]);
    assert_eq!(servers["tracker"]["command"], json!(["tracker-mcp", "-v"]));
    assert_eq!(servers["docs"]["url"], "https://example.com/mcp");
    assert_eq!(servers["local"]["command"], json!(["my-mcp", "a b"]));
    let read = |name: &str| fs::read_to_string(opencode.path(name)).unwrap();
    assert_eq!((&*read("token"), &*read("key")), ("given ours", "ours"));
    let argv = read("argv");
    for secret in ["given", "ours"] {
        assert!(!argv.contains(secret), "{argv}");
        assert!(!ended.stderr.contains(secret), "{}", ended.stderr);
    }
}

fn refused(args: &[&str]) -> Ended {
    let opencode = OpenCode::new("exit 1");
    let ended = run(&mut opencode.run(args.iter().copied()));
    assert_eq!(
        (ended.code, &*ended.stdout),
        (Some(2), ""),
        "{}",
        ended.stderr
    );
    assert!(!opencode.path("pid").exists(), "an agent was started");
    ended
}

#[test]
fn invalid_option_exits_with_2_and_is_named_as_typed() {
    for (args, begins) in [
        (
            &["--mcp-config=none.json"][..],
            "error: cannot read MCP servers from none.json: ",
        ),
        (
            &["--mcp=a"],
            "error: --mcp needs NAME=COMMAND or NAME=URL\n",
        ),
        (
            &["--mcp=a b=x"],
            "error: --mcp needs NAME=COMMAND or NAME=URL\n",
        ),
        (
            &["--mcp-config={\"a b\": {\"command\": \"x\"}}"],
            "error: --mcp-config, --mcp: a b: name: ",
        ),
        (
            &["--mcp=a=x", "--mcp-via=somehow"],
            "error: invalid value 'somehow' for '--mcp-via <WAY>'\n",
        ),
    ] {
        let ended = refused(args);
        ended.stderr_begins(begins);
    }
}

#[test]
fn a_way_that_the_cli_does_not_have_is_called_as_it_was_typed() {
    let claude = Claude::new(&Script::new());
    let ended = run(&mut claude.run(["x", "--mcp=a=x", "--mcp-via=user-config"]));
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    ended.stderr_begins("error: --mcp-via: ");
    assert!(!claude.path("report.json").exists(), "an agent was started");
}

#[test]
fn a_slip_in_a_configuration_is_reported_once() {
    let opencode = OpenCode::new("exit 1");
    let config = "--mcp-config={\"a\": {\"command\": \"x\", \"arg\": []}}";
    let ended = run(&mut opencode.run([config]));
    let warning = "warning: --mcp-config: a: arg: unknown field; did you mean args?\n";
    ended.stderr_begins(warning);
    let ended = run(&mut opencode.run([config, "--quiet"]));
    assert!(!ended.stderr.contains("warning"), "{}", ended.stderr);
}

#[test]
fn a_start_that_takes_too_long_points_at_the_servers() {
    let opencode = OpenCode::new("exec sleep 100");
    let hint = "next: an MCP server that does not respond can block the start";
    run(&mut opencode.run(["--mcp=a=x", "--startup-timeout=300ms"])).fails(4, hint);
    let ended = run(&mut opencode.run(["--startup-timeout=300ms"]));
    assert!(!ended.stderr.contains(hint), "{}", ended.stderr);
    assert!(ended.stderr.contains("next: if the CLI is just slow"));
}

#[test]
fn a_file_that_cannot_be_changed_points_at_the_way_without_one() {
    let opencode = OpenCode::new("exit 1");
    fs::write(opencode.path("work/opencode.json"), "{ \"mcp\": {").unwrap();
    let ended = run(&mut opencode.run(["--mcp=a=x", "--mcp-via=project-config"]));
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    let hint = "next: use --mcp-via private (the default), which changes no file; or ";
    ended.stderr_has(hint);
    assert!(!opencode.path("pid").exists(), "an agent was started");
}
