//! Random lines: the decoder never panics and the stream keeps its grammar.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};
use teamster_core::provider::Exit;

use super::super::CopilotDecoder;
use super::{line, of_agent, result, run_to};

const TYPES: &[&str] = &[
    "assistant.message_delta",
    "assistant.message",
    "assistant.reasoning_delta",
    "assistant.reasoning",
    "assistant.turn_start",
    "assistant.turn_end",
    "assistant.turn_retry",
    "assistant.idle",
    "assistant.usage",
    "model.call_start",
    "model.call_finished",
    "model.call_failure",
    "tool.execution_start",
    "tool.shell_output",
    "tool.execution_complete",
    "subagent.started",
    "subagent.completed",
    "subagent.failed",
    "session.error",
    "session.info",
    "session.warning",
    "session.tools_updated",
    "session.mcp_servers_loaded",
    "session.mcp_server_status_changed",
    "system.notification",
    "permission.requested",
    "abort",
    "something.new",
];

fn id() -> impl Strategy<Value = &'static str> {
    select(&["a", "b", "t", "A"][..])
}

/// Generates data with the fields of real lines, each with its type or another one.
fn data() -> impl Strategy<Value = Value> {
    let odd = select(vec![
        json!(null),
        json!(3),
        json!(-1),
        json!(true),
        json!([{"x": 1}]),
        json!({"content": "c", "exitCode": 1}),
    ]);
    let text = prop_oneof![
        Just("<command started in background with shellId: s>".to_owned()),
        Just("x\n<shellId: s completed with exit code 2>".to_owned()),
        Just("hi".to_owned()),
        ".{0,8}",
    ];
    let names = select(vec![
        "content",
        "deltaContent",
        "reasoningText",
        "message",
        "text",
        "result",
        "success",
        "error",
        "kind",
        "fileEdits",
        "sequence",
        "toolRequests",
        "executionMode",
        "outcome",
        "servers",
        "status",
        "arguments",
        "retryAttempt",
        "statusCode",
        "inputTokens",
    ]);
    let value = prop_oneof![3 => text.prop_map(Value::from), 1 => odd.clone()];
    let fields = vec((names, value), 0..5);
    (id(), id(), id(), fields, any::<bool>()).prop_map(|(one, two, three, fields, success)| {
        let mut data = json!({"messageId": one, "reasoningId": one, "toolCallId": two,
            "toolName": "bash", "parentId": three, "success": success, "deltaContent": "d",
            "content": "c", "name": "n", "serverName": "n"});
        for (name, value) in fields {
            data[name] = value;
        }
        data
    })
}

fn any_line() -> impl Strategy<Value = String> {
    let of_main = (select(TYPES), data()).prop_map(|(kind, data)| line(kind, &data));
    let of_other =
        (id(), select(TYPES), data()).prop_map(|(a, kind, data)| of_agent(a, kind, &data));
    let complete = prop_oneof![
        8 => of_main,
        4 => of_other,
        1 => (-1_i64..3).prop_map(result),
    ];
    prop_oneof![
        9 => complete.clone(),
        1 => (complete, any::<prop::sample::Index>()).prop_map(|(line, at)| {
            let cut = line.floor_char_boundary(at.index(line.len()));
            line[..cut].to_owned()
        }),
        1 => ".*",
    ]
}

proptest! {
    #[test]
    fn any_lines_are_a_stream(
        lines in vec(any_line(), 0..40),
        record in vec(any_line(), 0..3),
        code in prop::option::of(0..2_i32),
    ) {
        let exit = Exit { code, record, ..Exit::default() };
        // `run_to` checks the grammar.
        run_to(CopilotDecoder::new(), &lines, exit);
    }
}
