//! Hand-made lines, in measured shapes, for cases that no recording has in isolation.

use serde_json::{Value, json};
use teamster_core::provider::Exit;
use teamster_core::{AgentError, AgentEvent, ExecuteParams, RunResult};
use teamster_testkit::events::{assert_types, names};
use teamster_testkit::replay::decode;

use super::GeminiDecoder;

mod end;
mod lines;
mod mcp;
mod shapes;
mod side_effects;
mod stderr;
mod tools;

const SESSION: &str = "4e7c1419-faa6-4b9e-a712-01520d2026c2";
const TIME: &str = "2026-11-21T20:38:45.597Z";

fn line(kind: &str, fields: &Value) -> String {
    let mut line = json!({"type": kind, "timestamp": TIME});
    for (name, value) in fields.as_object().unwrap() {
        line[name] = value.clone();
    }
    line.to_string()
}

fn init() -> String {
    line(
        "init",
        &json!({"session_id": SESSION, "model": "gemini-2.5-flash"}),
    )
}

fn delta(text: &str) -> String {
    line(
        "message",
        &json!({"role": "assistant", "content": text, "delta": true}),
    )
}

fn call(id: &str, name: &str, parameters: &Value) -> String {
    line(
        "tool_use",
        &json!({"tool_name": name, "tool_id": id, "parameters": parameters}),
    )
}

fn returned(id: &str, fields: &Value) -> String {
    let mut result = fields.clone();
    result["tool_id"] = id.into();
    line("tool_result", &result)
}

/// Returns a tool's failure, with the same text for the display and the model.
fn failed(id: &str, kind: &str, message: &str) -> String {
    let error = json!({"type": kind, "message": message});
    returned(
        id,
        &json!({"status": "error", "output": message, "error": error}),
    )
}

fn error_line(severity: &str, message: &str) -> String {
    line("error", &json!({"severity": severity, "message": message}))
}

fn result(fields: &Value) -> String {
    line("result", fields)
}

fn success() -> String {
    result(&json!({"status": "success", "stats": {
        "total_tokens": 12, "input_tokens": 10, "output_tokens": 2, "cached": 0, "input": 10,
        "duration_ms": 5, "tool_calls": 0, "models": {}
    }}))
}

fn failure(kind: &str, message: &str) -> String {
    result(
        &json!({"status": "error", "error": {"type": kind, "message": message}, "stats": {
            "total_tokens": 0, "input_tokens": 0, "output_tokens": 0, "cached": 0, "input": 0,
            "duration_ms": 0, "tool_calls": 0, "models": {}
        }}),
    )
}

fn run_with(params: &ExecuteParams, lines: &[String], exit: Exit) -> (Vec<AgentEvent>, RunResult) {
    decode(GeminiDecoder::for_run(params), lines, exit)
}

fn run(lines: &[String]) -> (Vec<AgentEvent>, RunResult) {
    run_with(&ExecuteParams::new("hi"), lines, Exit::new(0))
}

fn error(result: &RunResult) -> &AgentError {
    let [error] = result.errors.as_slice() else {
        panic!("{:?}", result.errors);
    };
    error
}
