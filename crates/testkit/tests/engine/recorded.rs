//! The engine with the real providers. The fake agent plays recorded output of their CLIs and handles signals
//! as the real CLIs do.

use std::path::{Path, PathBuf};

use teamster_core::{ErrorCode, ErrorKind, ExecuteParams, RunStatus};
use teamster_process::RuntimeConfig;
use teamster_testkit::fake_agent::{Play, Script, Signal, Spawn, SpawnKind, Stream, Text};
use teamster_testkit::proc;

use crate::engine::{LIMIT, Scratch, Story};

/// Returns the output of a fixture, such as `claude/2.1.197/text`.
pub(crate) fn recorded(fixture: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fixtures")
        .join(fixture)
        .join("stdout.ndjson")
}

/// Runs a provider with an agent that executes the script. Stops it at the first event of this type.
async fn run(provider: &str, script: &Script, stop_at: Option<&str>) -> Story {
    let mut config = RuntimeConfig::default();
    config.program = Some(env!("CARGO_BIN_EXE_teamster-fake-agent").into());
    let mut params = ExecuteParams::new("hello");
    for (name, value) in script.env().unwrap() {
        params.env.insert(name.to_owned(), value);
    }
    let runtime = teamster::create_cli_runtime(provider, config).unwrap();
    let mut stream = runtime.execute(params);
    let mut events = Vec::new();
    tokio::time::timeout(LIMIT, async {
        while let Some(event) = stream.next().await {
            if stop_at == Some(event.type_name()) {
                stream.abort();
            }
            events.push(event);
        }
    })
    .await
    .unwrap();
    Story::of(events)
}

/// Returns a shell command of an agent's tool, in a new session as in all these CLIs.
fn tool(scratch: &Scratch) -> Spawn {
    Spawn::new(SpawnKind::Setsid)
        .pid_file(scratch.path("tool"))
        .script(Script::new().forever())
}

/// Asserts the invariants of a run that its caller stopped, for any output and exit of the CLI.
#[track_caller]
fn check_stopped(story: &Story) {
    assert_eq!(story.result.status, RunStatus::Aborted);
    assert_eq!(story.codes(), [ErrorCode::Aborted]);
    assert!(story.result.aborted);
}

#[tokio::test]
async fn a_recorded_run_comes_through_completely() {
    let script = Script::new().play(Play::new(recorded("claude/2.1.197/tool_parallel")).chunk(7));
    let result = run("claude", &script, None).await.result;
    assert_eq!(result.status, RunStatus::Completed);
    assert_eq!(result.text, "Two calls.Both ran.");
    assert_eq!(result.diagnostics.lines, 44);
}

#[tokio::test]
async fn claude_stops_at_sigint_without_a_second_error() {
    let recorded = recorded("claude/2.1.197/sigint_mid_stream");
    let last_words = Script::new().play(Play::new(&recorded).first(15)).exit(0);
    let script = Script::new()
        .on_signal(Signal::Int, last_words)
        .play(Play::new(&recorded).last(14))
        .forever();
    let story = run("claude", &script, Some("text")).await;
    check_stopped(&story);
    // It exits after the first signal.
    assert_eq!(story.result.exit_code, Some(0));
    assert!(
        story.result.text.ends_with("word9 "),
        "{}",
        story.result.text
    );
}

#[tokio::test]
async fn codex_stops_at_sigint_without_a_word() {
    let scratch = Scratch::new();
    let script = Script::new()
        // It ends its tools without further output. After SIGTERM it would leave their children.
        .on_signal(Signal::Int, Script::new().exit(1))
        .ignore([Signal::Term])
        .spawn(tool(&scratch))
        .play(recorded("codex/0.169.0/sigint_in_tool"))
        .forever();
    let story = run("codex", &script, Some("tool_use")).await;
    check_stopped(&story);
    assert_eq!(story.result.exit_code, Some(1));
    assert_eq!(story.result.text, "starting");
    assert_eq!(story.result.open_tool_ids.len(), 1);
    assert!(!proc::is_alive(scratch.pid("tool").pid()));
}

#[tokio::test]
async fn gemini_exits_with_success_at_sigterm_and_leaves_its_tool() {
    let scratch = Scratch::new();
    let script = Script::new()
        .on_signal(Signal::Term, Script::new().exit(0))
        .spawn(tool(&scratch))
        .play(recorded("gemini/0.61.0/sigterm_mid_stream"))
        .forever();
    let story = run("gemini", &script, Some("text")).await;
    check_stopped(&story);
    assert_eq!(story.result.exit_code, Some(0));
    assert_eq!(story.result.text, "Starting ");
    assert!(!proc::is_alive(scratch.pid("tool").pid()));
}

#[tokio::test]
async fn gemini_stopped_from_outside_has_not_completed() {
    let script = Script::new().play(recorded("gemini/0.61.0/sigterm_mid_stream"));
    let story = run("gemini", &script, None).await;
    assert_eq!(story.result.status, RunStatus::Incomplete);
    assert_eq!(story.codes(), [ErrorCode::StreamEndedEarly]);
}

#[tokio::test]
async fn opencode_dies_at_once_and_leaves_its_tool() {
    let scratch = Scratch::new();
    let script = Script::new()
        .spawn(tool(&scratch))
        .play(recorded("opencode/1.18.33/sigterm_in_tool"))
        .forever();
    let story = run("opencode", &script, Some("text")).await;
    check_stopped(&story);
    assert_eq!(story.result.exit_signal.as_deref(), Some("SIGTERM"));
    assert!(!proc::is_alive(scratch.pid("tool").pid()));
}

#[tokio::test]
async fn copilot_reports_success_when_it_was_stopped() {
    let recorded = recorded("copilot/1.0.102/sigint_group_mid_stream");
    // `agent.interrupted` is its line 12, a result with exit code 0 its last.
    let last_words = Script::new().play(Play::new(&recorded).first(12)).exit(0);
    let script = Script::new()
        .on_signal(Signal::Term, last_words)
        .play(Play::new(&recorded).last(11))
        .forever();
    let story = run("copilot", &script, Some("text")).await;
    check_stopped(&story);
    assert_eq!(story.result.exit_code, Some(0));
}

#[tokio::test]
async fn copilot_stopped_from_outside_has_not_completed() {
    for recording in ["sigint_group_mid_stream", "sigterm_native_mid_stream"] {
        let recorded = recorded(&format!("copilot/1.0.102/{recording}"));
        let story = run("copilot", &Script::new().play(recorded), None).await;
        assert_ne!(story.result.status, RunStatus::Completed, "{recording}");
        assert_eq!(story.result.errors.len(), 1, "{recording}");
    }
}

#[tokio::test]
async fn usual_stderr_output_and_exit_codes_count_in_a_live_run() {
    // Codex prints this whenever its prompt is an argument.
    let noise = Script::new()
        .line(Text::from("Reading additional input from stdin...").to(Stream::Stderr))
        .exit(1);
    let story = run("codex", &noise, None).await;
    assert_eq!(story.error().code, ErrorCode::CliExitError);
    // The exit code of Gemini CLI without a login.
    let story = run("gemini", &Script::new().exit(41), None).await;
    assert_eq!(story.error().code, ErrorCode::CliExitError);
    assert_eq!(story.error().kind, ErrorKind::Auth);
}
