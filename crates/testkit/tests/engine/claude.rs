//! The engine with a real provider: recorded output of Claude Code, played by the fake agent.

use std::path::{Path, PathBuf};

use teamster::claude::Claude;
use teamster_core::{
    AgentEvent, AgentRuntime, ErrorCode, ExecuteParams, RunResult, RunStatus, grammar,
};
use teamster_process::{CliRuntime, RuntimeConfig};
use teamster_testkit::fake_agent::{Play, Script, Signal};

use crate::LIMIT;

fn recorded(scenario: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fixtures/claude/2.1.197")
        .join(scenario)
        .join("stdout.ndjson")
}

/// Runs Claude Code as the script says; aborts at the first text if asked to.
async fn run(script: &Script, abort: bool) -> RunResult {
    let mut config = RuntimeConfig::default();
    config.program = Some(env!("CARGO_BIN_EXE_teamster-fake-agent").into());
    let mut params = ExecuteParams::new("hello");
    for (name, value) in script.env().unwrap() {
        params.env.insert(name.to_owned(), value);
    }
    let mut stream = CliRuntime::with_config(Claude, config).execute(params);
    let mut events = Vec::new();
    tokio::time::timeout(LIMIT, async {
        while let Some(event) = stream.next().await {
            if abort && matches!(event, AgentEvent::Text(_)) {
                stream.abort();
            }
            events.push(event);
        }
    })
    .await
    .unwrap();
    grammar::check(&events).unwrap();
    let Some(AgentEvent::Done(done)) = events.pop() else {
        panic!("no done");
    };
    *done.result
}

#[tokio::test]
async fn a_recorded_run_comes_through_whole() {
    let script = Script::new().play(Play::new(recorded("tool_parallel")).chunk(7));
    let result = run(&script, false).await;
    assert_eq!(result.status, RunStatus::Completed);
    assert_eq!(result.text, "Two calls.Both ran.");
    assert_eq!(result.diagnostics.lines, 44);
}

#[tokio::test]
async fn an_interruption_that_we_asked_for_is_told_once() {
    let recorded = recorded("sigint_mid_stream");
    let last_words = Script::new().play(Play::new(&recorded).first(15)).exit(0);
    let script = Script::new()
        .on_signal(Signal::Int, last_words)
        .play(Play::new(&recorded).last(14))
        .forever();
    let result = run(&script, true).await;
    assert_eq!(result.status, RunStatus::Aborted);
    // By itself, at the first signal.
    assert_eq!(result.exit_code, Some(0));
    let codes: Vec<_> = result.errors.iter().map(|error| error.code).collect();
    assert_eq!(codes, [ErrorCode::Aborted]);
    assert!(result.text.ends_with("word9 "), "{}", result.text);
}
