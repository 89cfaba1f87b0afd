//! Tests of runs of scripted runtimes, read as one stream.

mod alone;
mod ends;
mod merged;
mod random;

use std::sync::Arc;
use std::time::Duration;

use teamster_core::provider::grammar;
use teamster_core::{
    AgentError, AgentEvent, ErrorCode, ErrorKind, EventStream, ExecuteParams, RunResult,
};
use teamster_testkit::mock_runtime::{MockRuntime, Script};

use crate::{Candidate, Orchestrator, OrchestratorConfig, RunRequest};

fn orchestrator() -> Orchestrator {
    Orchestrator::new(OrchestratorConfig::default()).unwrap()
}

fn error(kind: ErrorKind) -> AgentError {
    AgentError::new(ErrorCode::CliError, kind, format!("{kind:?}"))
}

fn mock(name: &str, scripts: impl IntoIterator<Item = Script>) -> Arc<MockRuntime> {
    let mock = MockRuntime::new(name);
    for script in scripts {
        mock.add(script);
    }
    Arc::new(mock)
}

/// Creates a request without jitter, so that delays are whole seconds.
fn request(runtime: &Arc<MockRuntime>) -> RunRequest {
    let mut request = RunRequest::new(runtime.clone(), ExecuteParams::new("do it"));
    request.retry.jitter = false;
    request
}

fn candidate(runtime: &Arc<MockRuntime>) -> Candidate {
    Candidate::new(runtime.clone(), ExecuteParams::new("do it"))
}

/// Reads the whole stream and checks its grammar.
async fn all(mut events: EventStream) -> Vec<AgentEvent> {
    let mut all = Vec::new();
    while let Some(event) = events.next().await {
        all.push(event);
    }
    assert_eq!(grammar::check(&all), Ok(()), "{:#?}", short(&all));
    assert_errors_in_result(&all);
    all
}

/// Asserts that every error of the stream is in its result.
fn assert_errors_in_result(events: &[AgentEvent]) {
    let errors: Vec<_> = (events.iter())
        .filter_map(|event| match event {
            AgentEvent::Error(e) => Some(e.error.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(result(events).errors, errors, "{:#?}", short(events));
}

fn result(events: &[AgentEvent]) -> &RunResult {
    match events.last() {
        Some(AgentEvent::Done(done)) => &done.result,
        other => panic!("no done: {other:?}"),
    }
}

fn json(events: &[AgentEvent]) -> Vec<String> {
    (events.iter())
        .map(|event| serde_json::to_string(event).unwrap())
        .collect()
}

/// Returns each event as a short text.
fn short(events: &[AgentEvent]) -> Vec<String> {
    events.iter().map(words).collect()
}

fn words(event: &AgentEvent) -> String {
    match event {
        AgentEvent::SessionStarted(e) => format!("session {}", e.session_id),
        AgentEvent::Text(e) => {
            format!("text {} {}", e.message_id.as_deref().unwrap_or("-"), e.text)
        }
        AgentEvent::Retract(e) => format!("retract {}", e.message_id),
        AgentEvent::ToolUse(e) => format!("use {}", e.tool_id),
        AgentEvent::ToolResult(e) => format!("result {}", e.tool_id),
        AgentEvent::Retry(e) => format!(
            "retry {} after {} {:?} {}",
            e.attempt,
            e.delay_ms.unwrap_or_default(),
            e.error.code,
            e.error.message
        ),
        AgentEvent::Notice(e) => format!("notice {}", e.message),
        AgentEvent::Error(e) => format!("error {:?} {}", e.error.code, e.error.message),
        AgentEvent::Done(e) => format!("done {:?} {}", e.result.status, e.result.text),
        other => other.type_name().to_owned(),
    }
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}
