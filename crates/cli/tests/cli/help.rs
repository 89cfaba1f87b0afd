//! Help texts, the version, and errors in arguments. The help is that of the program with all features.

use snapbox::{assert_data_eq, file, str};

use crate::cli::{run, teamster};

macro_rules! help {
    ($name:ident, $args:expr, $file:tt) => {
        #[test]
        fn $name() {
            let ended = run(&mut teamster($args)).quiet();
            assert_data_eq!(ended.stdout, file![$file]);
        }
    };
}

help!(program, ["--help"], "snapshots/program.txt");
help!(program_short, ["-h"], "snapshots/program_short.txt");
help!(run_long, ["run", "--help"], "snapshots/run.txt");
help!(run_short, ["run", "-h"], "snapshots/run_short.txt");
help!(chat_long, ["chat", "--help"], "snapshots/chat.txt");
help!(chat_short, ["chat", "-h"], "snapshots/chat_short.txt");
help!(runs, ["runs", "--help"], "snapshots/runs.txt");
help!(
    runs_forget,
    ["runs", "forget", "--help"],
    "snapshots/runs_forget.txt"
);
help!(
    supervise,
    ["supervise", "--help"],
    "snapshots/supervise.txt"
);
help!(agents, ["agents", "--help"], "snapshots/agents.txt");
help!(
    agents_status,
    ["agents", "status", "--help"],
    "snapshots/agents_status.txt"
);
help!(
    agents_stop,
    ["agents", "stop", "--help"],
    "snapshots/agents_stop.txt"
);
help!(
    agents_logs,
    ["agents", "logs", "--help"],
    "snapshots/agents_logs.txt"
);
help!(serve, ["serve", "--help"], "snapshots/serve.txt");
help!(serve_short, ["serve", "-h"], "snapshots/serve_short.txt");
help!(token, ["token", "--help"], "snapshots/token.txt");
help!(trust, ["trust", "--help"], "snapshots/trust.txt");
help!(worker, ["worker", "--help"], "snapshots/worker.txt");
help!(fleet, ["fleet", "--help"], "snapshots/fleet.txt");
help!(usage, ["usage", "--help"], "snapshots/usage.txt");
help!(doctor, ["doctor", "--help"], "snapshots/doctor.txt");
help!(mcp, ["mcp", "--help"], "snapshots/mcp.txt");
help!(
    mcp_list,
    ["mcp", "list", "--help"],
    "snapshots/mcp_list.txt"
);
help!(
    mcp_check,
    ["mcp", "check", "--help"],
    "snapshots/mcp_check.txt"
);
help!(
    mcp_restore,
    ["mcp", "restore", "--help"],
    "snapshots/mcp_restore.txt"
);
help!(fake_mcp, ["help", "fake-mcp"], "snapshots/fake_mcp.txt");
help!(demo, ["demo", "--help"], "snapshots/demo.txt");
help!(
    mock_model,
    ["mock-model", "--help"],
    "snapshots/mock_model.txt"
);
help!(
    completions,
    ["completions", "--help"],
    "snapshots/completions.txt"
);
help!(
    fake_agent,
    ["help", "fake-agent"],
    "snapshots/fake_agent.txt"
);

#[test]
fn the_fake_agent_explains_its_language() {
    let ended = run(&mut teamster(["fake-agent", "--help"])).ok();
    ended.stdout_has("[[step]]");
}

#[test]
fn the_version() {
    let ended = run(&mut teamster(["--version"])).ok();
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(ended.stdout, format!("teamster {version}\n"));
}

#[test]
fn without_a_command_it_explains_itself() {
    let ended = run(&mut teamster([]));
    assert_eq!((ended.code, &*ended.stdout), (Some(2), ""));
    assert!(ended.stderr.contains("Usage: teamster [OPTIONS] <COMMAND>"));
}

#[test]
fn an_unknown_provider_is_reported_with_the_known_ones() {
    let ended = run(&mut teamster(["run", "nobody", "hello"]));
    assert_eq!((ended.code, &*ended.stdout), (Some(2), ""));
    assert_data_eq!(
        ended.stderr,
        str![[r#"
error: invalid value 'nobody' for '<AGENT>'
  [possible values: claude, cline, codex, copilot, gemini, kilo, kimi, opencode, pi, qwen, embedded]

  tip: any other agent is named by its command: `acp:COMMAND` or `cmd:COMMAND`

For more information, try '--help'.

"#]]
    );
}
