//! Runs that a Rust program starts, with a shell script as Claude Code.
#![expect(clippy::unwrap_used, reason = "also in the helpers of tests")]

/// Runs this test again in a process whose variables are those of an agent with this script, and these. Continues in
/// that process only.
macro_rules! in_own_process {
    ($script:expr) => {
        in_own_process!($script, &[])
    };
    ($script:expr, $variables:expr) => {{
        fn here() {}
        if !crate::is_own_process(&here, $script, $variables) {
            return;
        }
    }};
}

mod example;
mod service;
mod tasks;
mod upload;

use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use teamster_api::{RunService, RunSpec};
use teamster_host::{Host, LocalRuns, LoopOptions};
use teamster_providers::Providers;

/// Made by hand: what Claude Code prints in a turn in which it asks whether it may write a file.
const AGENT: &str = r#"#!/bin/sh
field() { rest=${line#*"\"$1\":\""}; printf %s "${rest%%\"*}"; }
say() {
  printf '{"type":"assistant","session_id":"s","message":{"id":"m","role":"assistant","content":[{"type":"text","text":"%s"}]}}\n' "$1"
  printf '{"type":"result","subtype":"success","is_error":false,"session_id":"s","num_turns":1,"result":"%s","usage":{"input_tokens":10,"output_tokens":5},"terminal_reason":"completed"}\n' "$1"
}
while IFS= read -r line; do
  case $line in
    *'"subtype":"end_session"'*) exit 0 ;;
    *'"type":"control_request"'*)
      printf '{"type":"control_response","response":{"subtype":"success","request_id":"%s","response":{}}}\n' "$(field request_id)" ;;
    *'"behavior":"allow"'*) say allowed ;;
    *'"behavior":"deny"'*) say denied ;;
    *)
      printf '{"type":"system","subtype":"init","session_id":"s","model":"opus"}\n'
      printf '{"type":"assistant","session_id":"s","message":{"id":"w","role":"assistant","content":[{"type":"tool_use","id":"t","name":"Write","input":{"file_path":"/x/a.txt","content":"one"}}]}}\n'
      printf '{"type":"control_request","request_id":"q","request":{"subtype":"can_use_tool","tool_name":"Write","input":{"file_path":"/x/a.txt","content":"one"},"tool_use_id":"t"}}\n' ;;
  esac
done
"#;

/// Makes an agent of this script in this folder, and lets the command find it and keep its runs there.
fn with_agent(command: &mut Command, folder: &Path, script: &str) {
    let agent = folder.join("claude");
    fs::write(&agent, script).unwrap();
    fs::set_permissions(&agent, fs::Permissions::from_mode(0o755)).unwrap();
    command
        .env("TEAMSTER_CLAUDE_BIN", agent)
        .env("XDG_STATE_HOME", folder.join("state"))
        .env("XDG_CONFIG_HOME", folder)
        .env("TEAMSTER_STORE", "off");
}

fn text(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// Runs the test with the function `here` in it again, unless this is the process for that.
fn is_own_process<T>(here: &T, script: &str, variables: &[(&str, &str)]) -> bool {
    const OWN: &str = "TEAMSTER_HOST_TEST";
    if env::var_os(OWN).is_some() {
        return true;
    }
    let here = std::any::type_name_of_val(here);
    let (_, test) = here.split_once("::").unwrap();
    let (test, _) = test.rsplit_once("::").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(env::current_exe().unwrap());
    with_agent(&mut command, folder.path(), script);
    command.envs(variables.iter().copied());
    command.env(OWN, "1").args(["--exact", test, "--nocapture"]);
    let output = command.current_dir(&folder).output().unwrap();
    let text = text(&output);
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{text}"
    );
    false
}

#[test]
fn impossible_run_leaves_no_folder() {
    in_own_process!(AGENT);
    let host = Host::new(Providers::builtin());
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let mut spec = RunSpec::new("claude", "x");
        spec.worktree = Some(teamster_api::Worktree::Switch(true));
        let error = host.start("w", spec).await.unwrap_err();
        assert_eq!(error.parameter.as_deref(), Some("worktree"));
        // Also a path with two spaces is printed as it is.
        let folder = env::current_dir().unwrap().join("my  folder");
        fs::create_dir(&folder).unwrap();
        let mut spec = RunSpec::new("claude", "x");
        spec.worktree = Some(teamster_api::Worktree::Switch(true));
        spec.working_directory = Some(folder);
        let error = host.start("w", spec).await.unwrap_err();
        let expected = "/my  folder is not in a git repository";
        assert!(error.message.contains(expected), "{error}");
        let runs = LocalRuns::new(&host).unwrap();
        assert!(runs.show("w").await.is_err());
    });
}

#[test]
fn a_program_runs_the_loop_of_an_agent_as_it_runs_anything_else() {
    let script =
        format!("#!/bin/sh\nprintf %s \"${{TEAMSTER_REMOTE_TOKEN-none}}\" > seen\n{AGENT}");
    let variables = [("TEAMSTER_REMOTE_TOKEN", "made-up"), ("TIMEOUT_SECS", "60")];
    in_own_process!(&script, &variables);
    let host = Host::new(Providers::builtin());
    let here = env::current_dir().unwrap();
    let agent = here.join("agent");
    fs::create_dir(&agent).unwrap();
    fs::write(agent.join("CLAUDE.md"), "Do nothing.").unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let list = runtime.block_on(async {
        let mut options = LoopOptions::default();
        options.ticks = Some(1);
        let prepared = host.prepare_loop(&agent, options).await.unwrap();
        assert_eq!(prepared.directory, agent.canonicalize().unwrap());
        assert_eq!(Box::pin(prepared.run()).await.unwrap(), None);
        let runs = LocalRuns::new(&host).unwrap();
        runs.list(teamster_api::RunQuery::default()).await.unwrap()
    });
    // The tick has a log among the runs, and its agent has none of this program's secrets.
    assert_eq!(list.runs.len(), 1, "{list:?}");
    assert_eq!(list.runs[0].info.kind, teamster_api::RunKind::Tick);
    assert_eq!(fs::read_to_string(agent.join("seen")).unwrap(), "none");
}
