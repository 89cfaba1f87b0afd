//! Hand-made lines, in measured shapes, for cases that no recording has in isolation.

use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};
use teamster_core::provider::Exit;
use teamster_core::{AgentEvent, ExecuteParams, RunResult};
use teamster_testkit::events::{assert_types, names};
use teamster_testkit::replay::decode;

use super::CopilotDecoder;

mod ends;
mod errors;
mod last_lines;
mod mcp_names;
mod mcp_results;
mod older;
mod repeats;
mod servers;
mod shapes;
mod side_effects;
mod text;
mod tools;
mod usage;

const SESSION: &str = "d4fa99e6-9b0e-488f-808b-dd1a00c401fb";

/// Returns a unique id for a line.
fn fresh_id() -> String {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let n = LAST.fetch_add(1, Ordering::Relaxed);
    format!("00000000-0000-4000-8000-{n:012x}")
}

/// Returns a line of the main agent.
fn line(kind: &str, data: &Value) -> String {
    json!({"type": kind, "data": data, "id": fresh_id(),
           "timestamp": "2026-11-21T20:57:43.335Z", "parentId": null})
    .to_string()
}

/// Returns a line of a sub-agent.
fn of_agent(agent: &str, kind: &str, data: &Value) -> String {
    json!({"type": kind, "data": data, "id": fresh_id(),
           "timestamp": "2026-11-21T20:57:43.335Z", "parentId": null, "agentId": agent})
    .to_string()
}

fn delta(message: &str, text: &str) -> String {
    line(
        "assistant.message_delta",
        &json!({"messageId": message, "deltaContent": text}),
    )
}

fn message(message: &str, content: &str) -> String {
    line(
        "assistant.message",
        &json!({"messageId": message, "model": "m", "content": content, "toolRequests": []}),
    )
}

fn call(id: &str, name: &str, arguments: &Value) -> String {
    line(
        "tool.execution_start",
        &json!({"toolCallId": id, "toolName": name, "arguments": arguments}),
    )
}

fn called(id: &str, content: &str) -> String {
    line(
        "tool.execution_complete",
        &json!({"toolCallId": id, "success": true, "result": {"content": content}}),
    )
}

fn turn(kind: &str) -> String {
    line(kind, &json!({"turnId": "0"}))
}

fn result(exit_code: i64) -> String {
    json!({"type": "result", "timestamp": "2026-11-21T20:57:43.963Z", "sessionId": SESSION,
           "exitCode": exit_code, "usage": {"premiumRequests": 0, "totalApiDurationMs": 291}})
    .to_string()
}

/// Decodes the lines of a process that exited with code 0.
fn run(lines: &[String]) -> (Vec<AgentEvent>, RunResult) {
    decode(CopilotDecoder::new(), lines, Exit::new(0))
}

/// Decodes the lines of a run with these parameters that exited with code 0.
fn run_for(params: &ExecuteParams, lines: &[String]) -> (Vec<AgentEvent>, RunResult) {
    decode(CopilotDecoder::for_run(params), lines, Exit::new(0))
}

/// Returns the texts of `text` and `thinking` events, with the call that started the agent.
fn texts(events: &[AgentEvent]) -> Vec<(String, Option<String>)> {
    let parent = |id: &Option<teamster_core::Id>| id.as_deref().map(str::to_owned);
    let text = |event: &AgentEvent| match event {
        AgentEvent::Text(e) => Some((e.text.clone(), parent(&e.parent_tool_id))),
        AgentEvent::Thinking(e) => Some((e.text.clone(), parent(&e.parent_tool_id))),
        _ => None,
    };
    events.iter().filter_map(text).collect()
}
