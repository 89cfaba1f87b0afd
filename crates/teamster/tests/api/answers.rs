//! Answers as values of a type, of a CLI's recorded output.

use std::path::Path;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use teamster::blocking::wait;
use teamster::orchestrator::{
    Candidate, OrchestratedRuntime, Orchestrator, OrchestratorConfig, RunRequest,
};
use teamster::{
    AgentEvent, AgentRuntime, AnswerError, ErrorKind, ExecuteParams, RunStatus, RuntimeConfig,
    SharedRuntime,
};
use teamster_testkit::proc;
use tempfile::TempDir;

/// The type of the recorded runs' schema.
#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct Item {
    name: String,
    n: i64,
}

/// Claude, played from its recorded output.
fn recorded(folder: &TempDir, scenario: &str) -> SharedRuntime {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/claude/2.1.197");
    let output = fixtures.join(scenario).join("stdout.ndjson");
    let program = folder.path().join(scenario);
    let script = format!("#!/bin/sh\nexec cat '{}'\n", output.display());
    proc::write_program(&program, script).unwrap();
    let config = RuntimeConfig::default().program(&program);
    teamster::create_cli_runtime("claude", config).unwrap()
}

#[tokio::test]
async fn recorded_answer_is_a_value_also_of_an_orchestrated_run() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = recorded(&folder, "json_schema");
    let expected = Item {
        name: "x".to_owned(),
        n: 3,
    };
    let answer = teamster::run::<Item>(&runtime, ExecuteParams::new("hi")).await;
    let answer = answer.unwrap();
    assert_eq!(answer.value, expected);
    assert_eq!(
        answer.result.session_id.as_deref(),
        Some("07d2a115-6dbf-4655-acd9-1e3ea4f04aa8")
    );

    let missing = RuntimeConfig::default().program("/nonexistent/claude");
    let first = teamster::create_cli_runtime("claude", missing).unwrap();
    let none = ExecuteParams::new("");
    let request = RunRequest::new(first, none.clone()).fallback(Candidate::new(runtime, none));
    let orchestrator = Orchestrator::new(OrchestratorConfig::default()).unwrap();
    let runtime = OrchestratedRuntime::new(orchestrator, request).unwrap();
    let answer = teamster::run::<Item>(&runtime, ExecuteParams::new("hi")).await;
    assert_eq!(answer.unwrap().value, expected);
}

#[tokio::test]
async fn answer_in_words_is_an_error_with_them() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = recorded(&folder, "json_schema_never");
    let answer = teamster::run::<Item>(&runtime, ExecuteParams::new("hi")).await;
    let AnswerError::Mismatch { text, result, .. } = answer.unwrap_err() else {
        panic!("not a mismatch");
    };
    assert_eq!(text, "Hello, wörld 👋🏽 你好世界 — done.");
    assert_eq!(result.status, RunStatus::Completed);
}

#[tokio::test]
async fn agent_without_structured_answers_refuses_the_type() {
    let runtime = teamster::create_cli_runtime("copilot", RuntimeConfig::default()).unwrap();
    assert!(!runtime.capabilities().output_schema);
    let answer = teamster::run::<Item>(&runtime, ExecuteParams::new("hi")).await;
    let AnswerError::Failed { error, .. } = answer.unwrap_err() else {
        panic!("not a failure");
    };
    assert_eq!(error.kind, ErrorKind::Invalid);
    assert_eq!(error.parameter(), Some("output_schema"));
}

#[test]
fn run_is_read_without_a_runtime_of_tokio() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = recorded(&folder, "json_schema");
    let answer = wait(teamster::run::<Item>(&runtime, ExecuteParams::new("hi")));
    assert_eq!(answer.unwrap().value.n, 3);

    let events: Vec<_> = (runtime.execute(ExecuteParams::new("hi")).blocking()).collect();
    assert!(matches!(events.last(), Some(AgentEvent::Done(done)) if done.result.is_success()));

    // With an orchestrator, on a runtime of Tokio that is entered.
    let tokio = tokio::runtime::Runtime::new().unwrap();
    let _entered = tokio.enter();
    let orchestrator = Orchestrator::new(OrchestratorConfig::default()).unwrap();
    let request = RunRequest::new(Arc::clone(&runtime), ExecuteParams::new("hi"));
    let outcome = wait(orchestrator.start(request).outcome());
    assert!(outcome.is_success(), "{:?}", outcome.error());
}
