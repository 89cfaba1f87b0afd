//! Hand-made lines, in measured shapes, for cases that no recording has in isolation.

use serde_json::{Value, json};
use teamster_core::provider::{Exit, Stop};
use teamster_core::{AgentEvent, ExecuteParams, RunResult};
use teamster_testkit::events::{assert_types, names};
use teamster_testkit::replay::decode;

use super::{OpenCodeDecoder, Withheld};

mod any;
mod ends;
mod messages;
mod side_effects;
mod text;
mod tools;

const SESSION: &str = "ses_e0024d21affeQxq3tDgLABc4gf";

/// Returns a line with a part that has a unique id.
fn line(kind: &str, message: &str, fields: &Value) -> String {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let mut part = json!({"id": format!("prt_{number}"), "messageID": message,
        "sessionID": SESSION});
    for (name, value) in fields.as_object().unwrap() {
        part[name] = value.clone();
    }
    json!({"type": kind, "timestamp": 1, "sessionID": SESSION, "part": part}).to_string()
}

fn start(message: &str) -> String {
    line("step_start", message, &json!({"type": "step-start"}))
}

fn say(message: &str, text: &str) -> String {
    let time = json!({"start": 1, "end": 2});
    line(
        "text",
        message,
        &json!({"type": "text", "text": text, "time": time}),
    )
}

fn finish(message: &str, reason: &str) -> String {
    let tokens = json!({"total": 120, "input": 100, "output": 20, "reasoning": 0,
        "cache": {"write": 0, "read": 0}});
    line(
        "step_finish",
        message,
        &json!({"type": "step-finish", "reason": reason, "tokens": tokens, "cost": 0.0006}),
    )
}

fn tool(message: &str, name: &str, id: &str, state: &Value) -> String {
    let fields = json!({"type": "tool", "tool": name, "callID": id, "state": state});
    line("tool_use", message, &fields)
}

fn bash(message: &str, id: &str) -> String {
    let state = json!({"status": "completed", "input": {"command": "true"}, "output": "ok\n",
        "metadata": {"output": "ok\n", "exit": 0, "truncated": false}});
    tool(message, "bash", id, &state)
}

fn error(name: &str, data: &Value) -> String {
    json!({"type": "error", "timestamp": 1, "sessionID": SESSION,
        "error": {"name": name, "data": data}})
    .to_string()
}

fn stopped(stop: Stop) -> Exit {
    Exit {
        signal: Some("SIGTERM".into()),
        stop: Some(stop),
        ..Exit::default()
    }
}

/// Decodes a run that exits with code 0.
fn run(lines: &[String]) -> (Vec<AgentEvent>, RunResult) {
    decode(OpenCodeDecoder::new(), lines, Exit::new(0))
}

fn resumed() -> OpenCodeDecoder {
    let mut params = ExecuteParams::new("hi");
    params.session_id = Some(SESSION.into());
    OpenCodeDecoder::with(&params, Vec::new(), Withheld::default())
}
