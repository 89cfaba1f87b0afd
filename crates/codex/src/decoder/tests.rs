//! Hand-made lines, in measured shapes, for cases that no recording has in isolation.

use serde_json::{Value, json};
use teamster_core::provider::{Decoder, Exit};
use teamster_core::{AgentEvent, ExecuteParams, RunResult};
use teamster_testkit::events::{assert_types, names};
use teamster_testkit::replay::decode;

use super::CodexDecoder;

mod mcp_results;
mod text;
mod tools;
mod turns;

const THREAD: &str = "01a1ffcf-9322-7b61-8654-8b3cf70c24fa";

fn thread() -> String {
    json!({"type": "thread.started", "thread_id": THREAD}).to_string()
}

fn turn() -> String {
    json!({"type": "turn.started"}).to_string()
}

fn item(stage: &str, item: &Value) -> String {
    json!({"type": format!("item.{stage}"), "item": item}).to_string()
}

fn message(id: u32, text: &str) -> String {
    item(
        "completed",
        &json!({"id": format!("item_{id}"), "type": "agent_message", "text": text}),
    )
}

fn command(id: u32, stage: &str, status: &str, exit_code: Option<i32>) -> String {
    item(
        stage,
        &json!({"id": format!("item_{id}"), "type": "command_execution", "command": "/bin/bash -lc x",
                "aggregated_output": "out", "exit_code": exit_code, "status": status}),
    )
}

fn error(message: &str) -> String {
    json!({"type": "error", "message": message}).to_string()
}

fn reconnect(n: u32) -> String {
    error(&format!("Reconnecting... {n}/5 (stream disconnected)"))
}

fn failed(message: &str) -> String {
    json!({"type": "turn.failed", "error": {"message": message}}).to_string()
}

/// Returns the end of a turn with this total of input, cached input and output.
fn end(input: u64, cached: u64, output: u64) -> String {
    json!({"type": "turn.completed", "usage": {"input_tokens": input,
        "cached_input_tokens": cached, "cache_write_input_tokens": 0,
        "output_tokens": output, "reasoning_output_tokens": 0}})
    .to_string()
}

fn run(lines: &[String]) -> (Vec<AgentEvent>, RunResult) {
    decode(CodexDecoder::new(), lines, Exit::new(0))
}

/// Decodes a run of one turn that ends well.
fn turn_of(lines: &[String]) -> (Vec<AgentEvent>, RunResult) {
    let mut all = vec![thread(), turn()];
    all.extend_from_slice(lines);
    all.push(end(1000, 0, 10));
    run(&all)
}

fn resuming(session: &str) -> ExecuteParams {
    let mut params = ExecuteParams::new("go on");
    params.session_id = Some(session.into());
    // Isolates the decoder from files of this machine.
    params.env.insert("CODEX_HOME".into(), "/nowhere".into());
    params
}
