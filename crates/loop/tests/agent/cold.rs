//! An agent whose process ends with each tick.

use std::sync::Arc;

use serde_json::{Value, json};
use teamster_core::{AgentError, ErrorCode, ErrorKind, ExecuteParams};
use teamster_loop::{AdapterKind, ColdAdapter, Control, Settings, TickOptions};
use teamster_orchestrator::Candidate;
use teamster_testkit::mock_runtime::{MockRuntime, Script};

use crate::agent::{INFO, SESSION, agent_loop_with, read};

#[tokio::test(start_paused = true)]
async fn stop_during_a_fallback_keeps_the_agents_session() {
    let quota = AgentError::new(ErrorCode::CliError, ErrorKind::Quota, "not now");
    let mut runtime = MockRuntime::new("claude")
        .run(Script::new().session("s").completed())
        .run(Script::new().failed(quota));
    runtime.capabilities_mut().resume = true;
    let control = Control::new();
    let stopper = control.clone();
    let fallback = MockRuntime::new("codex").run_by(move |_| {
        stopper.stop();
        Script::new().session("other").wait_for_abort()
    });
    let mut options = TickOptions::default();
    options.fallbacks = vec![Candidate::new(Arc::new(fallback), ExecuteParams::new(""))];
    let adapter = ColdAdapter::new(Arc::new(runtime), ExecuteParams::new(""));
    let mut settings = Settings::new(&INFO);
    settings.adapter = Some(AdapterKind::Cold);
    settings.keep_session = true;
    let directory = tempfile::tempdir().unwrap();
    let agent_loop = agent_loop_with(settings, directory.path(), adapter, control);
    agent_loop.tick_options(options).run().await.unwrap();
    let log = read(directory.path(), "agent-loop.log");
    assert!(log.contains("falling back to codex: not now"), "{log}");
    let session: Value = serde_json::from_str(&read(directory.path(), SESSION)).unwrap();
    assert_eq!(session["session_id"], "s");
}

#[tokio::test(start_paused = true)]
async fn tick_that_exits_with_an_error_keeps_its_session_and_sleep() {
    let exited = |code| {
        let error = AgentError::new(code, ErrorKind::Internal, "exited with code 1");
        Script::new().failed(error)
    };
    let mut runtime = MockRuntime::new("copilot")
        .run(Script::new().session("s").text("hi").completed())
        .run(exited(ErrorCode::CliExitError))
        .run(exited(ErrorCode::CliStderr))
        .run(Script::new().incomplete())
        .run(Script::new().session("s").text("hi").completed());
    runtime.capabilities_mut().resume = true;
    let adapter = ColdAdapter::new(Arc::new(runtime.clone()), ExecuteParams::new(""));
    let mut settings = Settings::new(&INFO);
    settings.adapter = Some(AdapterKind::Cold);
    let directory = tempfile::tempdir().unwrap();
    let agent_loop = agent_loop_with(settings, directory.path(), adapter, Control::new());
    agent_loop.ticks_limit(Some(5)).run().await.unwrap();
    let sessions: Vec<_> = (runtime.runs().into_iter())
        .map(|run| run.params.session_id)
        .collect();
    let same = || Some("s".to_owned());
    assert_eq!(sessions, [None, same(), same(), same(), same()]);
    let log = read(directory.path(), "agent-loop.log");
    let lines = |of: &str| -> Vec<_> {
        let lines = log.lines().filter_map(|line| line.split_once("] "));
        let lines = lines.filter(|(_, line)| line.starts_with(of));
        lines.map(|(_, line)| line.to_owned()).collect()
    };
    assert_eq!(
        lines("tick 2 failed"),
        ["tick 2 failed after 0.0 s: exited with code 1"]
    );
    let sleeps = ["120", "180", "240", "300"]
        .map(|seconds| format!("sleeping {seconds} s: idle (+60 s, at most 3600 s)"));
    assert_eq!(lines("sleeping"), sleeps);
    assert_eq!(lines("starting").len(), 1, "{log}");
    let sleep: Value = serde_json::from_str(&read(directory.path(), "sleep.json")).unwrap();
    assert_eq!(sleep["seconds"], sleep["current_sleep_seconds"]);
    assert_eq!(sleep["seconds"], json!(300));
}
