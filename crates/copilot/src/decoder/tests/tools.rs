//! Tool calls, sub-agents, and background work.

use serde_json::{Value, json};
use teamster_core::provider::{Activity, Decoder, Events, Phase, RunAssembler};
use teamster_core::{
    AgentEvent, ChangeKind, FileChange, Notice, RunStatus, ToolKind, ToolResult, ToolUse,
};
use teamster_testkit::events::payloads;

use super::super::CopilotDecoder;
use super::{assert_types, call, called, line, message, names, of_agent, result, run, turn};

fn uses(events: &[AgentEvent]) -> Vec<&ToolUse> {
    payloads(events).collect()
}

fn results(events: &[AgentEvent]) -> Vec<&ToolResult> {
    payloads(events).collect()
}

/// Returns the result of one call that ends with this data.
fn ends_with(name: &str, data: &Value) -> ToolResult {
    let mut data = data.clone();
    data["toolCallId"] = json!("1");
    let (events, _) = run(&[
        call("1", name, &json!({})),
        line("tool.execution_complete", &data),
        result(0),
    ]);
    results(&events)[0].clone()
}

#[test]
fn failed_shell_command_is_an_error_although_the_call_succeeded() {
    let content = "out\n<shellId: 0 completed with exit code 3>";
    let with_code = json!({"success": true, "result": {"content": content},
                           "shellExecution": {"exitCode": 3}});
    assert_eq!(ends_with("bash", &with_code).is_error, Some(true));
    // For a call that the CLI makes on behalf of the model, only the text has the exit code.
    let text_alone = json!({"success": true, "result": {"content": content}});
    assert_eq!(ends_with("read_bash", &text_alone).is_error, Some(true));
    // In the result of another tool it is only text.
    assert_eq!(ends_with("view", &text_alone).is_error, Some(false));
    let well = json!({"success": true, "result": {"content": "ok"},
                      "shellExecution": {"exitCode": 0}});
    assert_eq!(ends_with("bash", &well).is_error, Some(false));
}

#[test]
fn a_failed_call_without_a_result_has_the_error_for_its_output() {
    let failed = json!({"success": false, "error": {"message": "Tool 'x' does not exist.",
                        "code": "failure"}});
    let ended = ends_with("x", &failed);
    assert_eq!(ended.output, "Tool 'x' does not exist.");
    assert_eq!(ended.is_error, Some(true));
    // An MCP tool has both, with the same text.
    let both = json!({"success": false, "result": {"content": "deliberate failure"},
        "error": {"message": "MCP server 'tiny': deliberate failure", "code": "failure"}});
    assert_eq!(ends_with("x", &both).output, "deliberate failure");
    let more = json!({"success": false, "result": {"content": "half"},
        "error": {"message": "it broke", "code": "failure"}});
    assert_eq!(ends_with("x", &more).output, "half\nit broke");
}

#[test]
fn equal_call_ids_of_two_sub_agents_are_distinguished() {
    let start =
        |agent: &str, task: &str| of_agent(agent, "subagent.started", &json!({"toolCallId": task}));
    let inner = |agent: &str, kind: &str, task: &str, more: Value| {
        let mut data = json!({"toolCallId": "same", "toolName": "bash", "parentToolCallId": task});
        for (name, value) in more.as_object().unwrap() {
            data[name] = value.clone();
        }
        of_agent(agent, kind, &data)
    };
    let ended = |text: &str| json!({"success": true, "result": {"content": text}});
    let (events, done) = run(&[
        call("t1", "task", &json!({})),
        call("t2", "task", &json!({})),
        start("A", "t1"),
        start("B", "t2"),
        inner("A", "tool.execution_start", "t1", json!({})),
        inner("B", "tool.execution_start", "t2", json!({})),
        inner("B", "tool.execution_complete", "t2", ended("of B")),
        inner("A", "tool.execution_complete", "t1", ended("of A")),
        result(0),
    ]);
    let ids: Vec<_> = uses(&events)[2..]
        .iter()
        .map(|tool| (&*tool.tool_id, tool.parent_tool_id.as_deref()))
        .collect();
    assert_eq!(ids, [("same", Some("t1")), ("same#2", Some("t2"))]);
    let ends: Vec<_> = results(&events)
        .iter()
        .map(|r| (&*r.tool_id, r.output.as_str(), r.parent_tool_id.as_deref()))
        .collect();
    assert_eq!(
        ends,
        [("same#2", "of B", Some("t2")), ("same", "of A", Some("t1"))]
    );
    assert_eq!(done.open_tool_ids.len(), 2);
    assert_eq!(done.diagnostics.unknown, 0);
}

#[test]
fn a_call_id_that_is_used_again_gets_a_name_of_its_own() {
    let (events, done) = run(&[
        call("1", "bash", &json!({})),
        called("1", "a"),
        call("1", "bash", &json!({})),
        called("1", "b"),
        result(0),
    ]);
    let ids: Vec<_> = results(&events).iter().map(|r| &*r.tool_id).collect();
    assert_eq!(ids, ["1", "1#2"]);
    assert_eq!(done.diagnostics.unknown, 0);
}

#[test]
fn nested_sub_agent_belongs_to_the_inner_call_with_equal_ids() {
    let start = |agent: &str, data: &Value| of_agent(agent, "subagent.started", data);
    let (events, _) = run(&[
        call("t", "task", &json!({})),
        start("A", &json!({"toolCallId": "t"})),
        of_agent(
            "A",
            "tool.execution_start",
            &json!({"toolCallId": "t", "toolName": "task", "parentToolCallId": "t"}),
        ),
        start("B", &json!({"toolCallId": "t", "parentId": "A"})),
        of_agent(
            "B",
            "assistant.message",
            &json!({"messageId": "m", "content": "deep", "parentToolCallId": "t"}),
        ),
        result(0),
    ]);
    let ids: Vec<_> = uses(&events)
        .iter()
        .map(|tool| (&*tool.tool_id, tool.parent_tool_id.as_deref()))
        .collect();
    assert_eq!(ids, [("t", None), ("t#2", Some("t"))]);
    let AgentEvent::Text(text) = &events[2] else {
        panic!("{events:?}")
    };
    assert_eq!(text.parent_tool_id.as_deref(), Some("t#2"));
}

#[test]
fn a_result_whose_call_was_lost_is_shown_as_it_came() {
    let (events, done) = run(&[called("1", "x"), result(0)]);
    assert_eq!(names(&events)[0], "unknown");
    assert_eq!(done.diagnostics.unknown, 1);
}

#[test]
fn a_tool_of_an_mcp_server_is_named_by_its_fields() {
    let start = json!({"toolCallId": "1", "toolName": "my-srv-one__x-echo", "arguments": {"a": 1},
                       "mcpServerName": "my.srv one__x", "mcpToolName": "echo"});
    let (events, _) = run(&[line("tool.execution_start", &start)]);
    let tool = uses(&events)[0];
    assert_eq!(tool.kind, ToolKind::Mcp);
    let mcp = tool.mcp.as_ref().unwrap();
    assert_eq!(
        (mcp.server.as_str(), mcp.tool.as_str()),
        ("my.srv one__x", "echo")
    );
    assert_eq!(tool.input, json!({"a": 1}));
}

#[test]
fn an_output_that_was_too_large_is_put_together_from_its_pieces() {
    let piece = |n: u64, text: &str| {
        line(
            "tool.shell_output",
            &json!({"toolCallId": "1", "stream": "stdout", "text": text, "sequence": n}),
        )
    };
    let end = line(
        "tool.execution_complete",
        &json!({"toolCallId": "1", "success": true, "result": {"content": "Output too large"},
                "toolTelemetry": {"properties": {"largeOutputHandled": "true"}}}),
    );
    let start = call("1", "bash", &json!({}));
    let (events, _) = run(&[start.clone(), piece(0, "a\n"), piece(1, "b\n"), end.clone()]);
    assert_eq!(results(&events)[0].output, "a\nb\n");
    // If a piece is lost, the CLI's preview is better than a text with a gap.
    let (events, _) = run(&[start.clone(), piece(0, "a\n"), piece(2, "c\n"), end.clone()]);
    assert_eq!(results(&events)[0].output, "Output too large");
    let (events, _) = run(&[start, end]);
    assert_eq!(results(&events)[0].output, "Output too large");
}

#[test]
fn more_output_than_is_kept_falls_back_to_the_preview() {
    let text = "x".repeat(9 * 1024 * 1024);
    let mut lines = vec![call("1", "bash", &json!({}))];
    for n in 0..4 {
        lines.push(line(
            "tool.shell_output",
            &json!({"toolCallId": "1", "text": text, "sequence": n}),
        ));
    }
    lines.push(line(
        "tool.execution_complete",
        &json!({"toolCallId": "1", "success": true, "result": {"content": "preview"},
                "toolTelemetry": {"properties": {"largeOutputHandled": "true"}}}),
    ));
    let (events, _) = run(&lines);
    assert_eq!(results(&events)[0].output, "preview");
}

#[test]
fn media_becomes_a_placeholder() {
    let mcp = json!({"success": true, "result": {"content": "", "contents": [
        {"type": "text", "text": "see"},
        {"type": "image", "data": "AAEC", "mimeType": "image/png"}]}});
    assert_eq!(
        ends_with("x", &mcp).output,
        "see\n[image: image/png, 3 bytes]"
    );
}

#[test]
fn files_that_a_call_changed() {
    let end = json!({"toolCallId": "1", "success": true, "result": {"content": "ok"},
        "fileEdits": [{"path": "/tmp/a", "kind": "create"}, {"path": "/tmp/b", "kind": "edit"},
                      {"path": "/tmp/c", "kind": "delete"}, {"kind": "edit"}]});
    let (events, _) = run(&[
        call("1", "apply_patch", &json!("*** Begin Patch")),
        line(
            "session.info",
            &json!({"infoType": "file_created", "message": "/tmp/a"}),
        ),
        line("tool.execution_complete", &end),
    ]);
    let changes: Vec<_> = payloads::<FileChange>(&events)
        .map(|c| (c.path.as_str(), c.change, c.tool_id.as_deref()))
        .collect();
    assert_eq!(
        changes,
        [
            ("/tmp/a", ChangeKind::Add, Some("1")),
            ("/tmp/b", ChangeKind::Update, Some("1")),
            ("/tmp/c", ChangeKind::Delete, Some("1")),
        ]
    );
    assert_types(&events[..2], "tool_use tool_result");
    assert_eq!(uses(&events)[0].input, json!("*** Begin Patch"));
}

/// Returns the engine's phase after these lines.
fn phase_after(lines: &[String]) -> Phase {
    let mut assembler = RunAssembler::new(Box::new(CopilotDecoder::new()));
    let mut out = Events::new();
    for line in lines {
        assembler.line(line.as_bytes(), &mut out);
    }
    assembler.phase()
}

#[test]
fn a_call_that_was_begun_and_never_ran_is_counted() {
    let piece = |id: &str, tool: &str| {
        let data =
            json!({"toolCallId": id, "toolName": tool, "toolType": "function", "inputDelta": "{"});
        line("assistant.tool_call_delta", &data)
    };
    let start = json!({"toolCallId": "1", "toolName": "bash", "arguments": {"command": "ls"}});
    let lines = [
        piece("1", "bash"),
        line("tool.execution_start", &start),
        piece("2", "view"),
        piece("3", "bash"),
        piece("3", "bash"),
        line(
            "assistant.message",
            &json!({"messageId": "m", "content": "", "toolRequests": [
                {"toolCallId": "1", "name": "bash"}, {"toolCallId": "4", "name": "bash"},
                {"toolCallId": "5", "name": "view"}]}),
        ),
    ];
    let (_, result) = run(&lines);
    assert_eq!(result.diagnostics.unfinished_calls, 2);
}

#[test]
fn an_idle_agent_is_not_the_end_of_the_run() {
    let idle = line("assistant.idle", &json!({}));
    let plain = [message("a", "x"), idle.clone()];
    assert_eq!(phase_after(&plain), Phase::Model);
    assert_eq!(
        phase_after(&[message("a", "x"), idle, result(0)]),
        Phase::Ended
    );
}

#[test]
fn the_run_waits_for_commands_in_the_background() {
    let idle = line("assistant.idle", &json!({}));
    for content in [
        "<command started in background with shellId: late>",
        "<command with shellId: late is still running after 30 seconds. You will be notified.>",
    ] {
        let mut lines = vec![
            call("1", "bash", &json!({"mode": "async"})),
            called("1", content),
            idle.clone(),
        ];
        assert_eq!(phase_after(&lines), Phase::Background, "{content}");
        lines.push(line(
            "system.notification",
            &json!({"content": "", "kind": {"type": "shell_completed", "shellId": "late",
                    "exitCode": 4, "description": "run it"}}),
        ));
        lines.push(turn("assistant.turn_start"));
        lines.push(idle.clone());
        assert_ne!(phase_after(&lines), Phase::Background, "{content}");
        lines.push(result(0));
        let (events, done) = run(&lines);
        assert_eq!(done.status, RunStatus::Completed);
        let notices = payloads::<Notice>(&events).map(|n| n.message.as_str());
        assert_eq!(
            notices.collect::<Vec<_>>(),
            ["the command \"run it\" in the background ended with exit code 4"]
        );
    }
    let detached = called(
        "1",
        "<command started in detached background with shellId: det>",
    );
    let lines = [call("1", "bash", &json!({})), detached, idle];
    assert_eq!(phase_after(&lines), Phase::Model);
}

#[test]
fn a_command_whose_end_was_read_is_no_longer_waited_for() {
    for (tool, content) in [
        ("read_bash", "out\n<shellId: s completed with exit code 0>"),
        ("stop_bash", "<command with id: s stopped>"),
    ] {
        let lines = [
            call("1", "bash", &json!({})),
            called("1", "<command started in background with shellId: s>"),
            call("2", tool, &json!({"shellId": "s"})),
            called("2", content),
            line("assistant.idle", &json!({})),
        ];
        assert_eq!(phase_after(&lines), Phase::Model, "{tool}");
    }
}

#[test]
fn the_run_waits_for_agents_in_the_background() {
    let started = of_agent(
        "A",
        "subagent.started",
        &json!({"toolCallId": "1", "executionMode": "background"}),
    );
    let lines = [
        call("1", "task", &json!({"mode": "background"})),
        started,
        called("1", "Agent started in background"),
        line("assistant.idle", &json!({})),
    ];
    let mut decoder = CopilotDecoder::new();
    let mut out = Events::new();
    for line in &lines {
        decoder.line(line.as_bytes(), &mut out);
    }
    assert_eq!(decoder.activity(), Activity::Background);
    let completed = of_agent("A", "subagent.completed", &json!({"toolCallId": "1"}));
    decoder.line(completed.as_bytes(), &mut out);
    decoder.line(turn("assistant.turn_start").as_bytes(), &mut out);
    assert_eq!(decoder.activity(), Activity::None);
}

#[test]
fn a_language_server_that_renames_edits_files() {
    for (arguments, kind) in [
        (json!({"operation": "goToDefinition"}), ToolKind::Search),
        (json!({"operation": "hover"}), ToolKind::Search),
        (
            json!({"operation": "rename", "newName": "x"}),
            ToolKind::Edit,
        ),
        (json!({"operation": "of a newer version"}), ToolKind::Edit),
        (json!({}), ToolKind::Edit),
    ] {
        let (events, _) = run(&[call("1", "lsp", &arguments)]);
        assert_eq!(uses(&events)[0].kind, kind, "{arguments}");
    }
}
