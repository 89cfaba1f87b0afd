//! The guarantees of the mock runtime.

mod received;
mod script;

use teamster_core::{
    AgentError, AgentEvent, AgentRuntime, ErrorCode, ErrorKind, EventStream, ExecuteParams,
    RunResult,
};
use teamster_testkit::mock_runtime::{MockRuntime, Script};

fn params() -> ExecuteParams {
    ExecuteParams::new("do it")
}

fn overloaded() -> AgentError {
    AgentError::new(ErrorCode::CliError, ErrorKind::Overloaded, "529 overloaded")
}

/// Returns all remaining events.
async fn drain(mut stream: EventStream) -> Vec<AgentEvent> {
    let mut events = Vec::new();
    while let Some(event) = stream.next().await {
        events.push(event);
    }
    events
}

/// Returns all events of one run of this script.
async fn play(script: Script) -> Vec<AgentEvent> {
    drain(MockRuntime::new("claude").run(script).execute(params())).await
}

fn types(events: &[AgentEvent]) -> Vec<&'static str> {
    events.iter().map(AgentEvent::type_name).collect()
}

fn result(events: &[AgentEvent]) -> &RunResult {
    match events.last() {
        Some(AgentEvent::Done(done)) => &done.result,
        other => panic!("no `done` at the end: {other:?}"),
    }
}
