//! Handwritten lines in the formats that were measured, for cases that no recording shows in isolation.

use serde_json::{Value, json};
use teamster_core::provider::Exit;
use teamster_core::{AgentEvent, RunResult};
use teamster_testkit::events::{assert_types, names};
use teamster_testkit::replay::decode;

use super::ClaudeDecoder;

#[cfg(repository)] // recordings
mod fast;
mod later;
mod notices;
mod resumed;
mod servers;
mod side_effects;
mod sub_agents;
mod text;
mod turns;
mod written_calls;

const SESSION: &str = "4e7c1419-faa6-4b9e-a712-01520d2026c2";
const UUID: &str = "ad2e5fef-3f54-4bd7-8082-516ca8c0beb7";

fn init() -> String {
    json!({"type": "system", "subtype": "init", "session_id": SESSION, "model": "m",
           "tools": [], "mcp_servers": [{"name": "a__b", "status": "connected"}]})
    .to_string()
}

fn stream(event: &Value) -> String {
    json!({"type": "stream_event", "event": event, "session_id": SESSION,
           "parent_tool_use_id": null, "uuid": UUID})
    .to_string()
}

fn start(id: &str) -> String {
    stream(&json!({"type": "message_start", "message": {"id": id}}))
}

fn block(index: u64, kind: &str) -> String {
    stream(
        &json!({"type": "content_block_start", "index": index, "content_block": {"type": kind, "text": ""}}),
    )
}

/// In the CLI's exact format, so that the fast path decodes it.
fn delta(index: u64, json_text: &str) -> String {
    format!(
        r#"{{"type":"stream_event","event":{{"type":"content_block_delta","index":{index},"delta":{{"type":"text_delta","text":"{json_text}"}}}},"session_id":"{SESSION}","parent_tool_use_id":null,"uuid":"{UUID}"}}"#
    )
}

fn complete(id: &str, content: &Value) -> String {
    json!({"type": "assistant", "message": {"id": id, "model": "m", "content": [content]},
           "parent_tool_use_id": null, "session_id": SESSION})
    .to_string()
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn user(content: &Value) -> String {
    json!({"type": "user", "message": {"role": "user", "content": content},
           "parent_tool_use_id": null, "session_id": SESSION})
    .to_string()
}

fn end(fields: &Value) -> String {
    let mut line = json!({"type": "result", "subtype": "success", "is_error": false,
        "result": "", "num_turns": 1, "total_cost_usd": 0.5, "session_id": SESSION});
    for (name, value) in fields.as_object().unwrap() {
        line[name] = value.clone();
    }
    line.to_string()
}

fn run(lines: &[String]) -> (Vec<AgentEvent>, RunResult) {
    decode(ClaudeDecoder::new(), lines, Exit::new(0))
}
