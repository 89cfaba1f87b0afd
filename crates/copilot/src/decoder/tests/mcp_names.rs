//! Server and tool of a call.

use serde_json::{Value, json};
use teamster_core::{ExecuteParams, McpServer, ToolKind, ToolUse};
use teamster_testkit::events::payloads;

use super::{line, of_agent, result, run_for};

/// Returns kind, server and tool of a call after these lines, in a run that requests the server `tiny`.
fn named_after(before: &[String], data: &Value) -> (ToolKind, Option<(String, String)>) {
    let mut params = ExecuteParams::new("hi");
    params.mcp_servers = vec![McpServer::stdio("tiny", "x", [""; 0])];
    let mut data = data.clone();
    data["toolCallId"] = json!("1");
    let mut lines = before.to_vec();
    lines.extend([line("tool.execution_start", &data), result(0)]);
    let (events, _) = run_for(&params, &lines);
    let found = payloads::<ToolUse>(&events).next();
    let tool = found.unwrap();
    let mcp = tool.mcp.as_ref();
    (
        tool.kind,
        mcp.map(|mcp| (mcp.server.clone(), mcp.tool.clone())),
    )
}

fn named(data: &Value) -> (ToolKind, Option<(String, String)>) {
    named_after(&[], data)
}

fn mcp(server: &str, tool: &str) -> (ToolKind, Option<(String, String)>) {
    (ToolKind::Mcp, Some((server.to_owned(), tool.to_owned())))
}

#[test]
fn empty_fields_are_none() {
    let empty = |name: &str| json!({"toolName": name, "mcpServerName": "", "mcpToolName": ""});
    assert_eq!(named(&empty("bash")), (ToolKind::Execute, None));
    assert_eq!(named(&empty("other-echo")), (ToolKind::Other, None));
    assert_eq!(named(&empty("tiny-echo")), mcp("tiny", "echo"));
}

#[test]
fn name_without_fields_is_split_by_the_known_servers() {
    let plain = |name: &str| json!({"toolName": name});
    // This also holds for a tool that the server does not have.
    assert_eq!(named(&plain("tiny-nosuch")), mcp("tiny", "nosuch"));
    for none in ["tiny", "tiny-", "tinyx-echo", "-tiny-echo"] {
        assert_eq!(named(&plain(none)), (ToolKind::Other, None), "{none}");
    }
    let loaded = json!({"servers": [{"name": "my.srv one", "status": "connected"},
        {"name": "my.srv", "status": "connected"}]});
    let reported = [
        line("session.mcp_servers_loaded", &loaded),
        line(
            "session.mcp_server_status_changed",
            &json!({"serverName": "late", "status": "connected"}),
        ),
        of_agent(
            "A",
            "session.mcp_server_status_changed",
            &json!({"serverName": "inner", "status": "connected"}),
        ),
    ];
    for (name, server, tool) in [
        ("my-srv-one-get-it", "my.srv one", "get-it"),
        ("my-srv-echo", "my.srv", "echo"),
        ("late-echo", "late", "echo"),
        ("inner-echo", "inner", "echo"),
    ] {
        assert_eq!(named(&plain(name)), (ToolKind::Other, None), "{name}");
        assert_eq!(named_after(&reported, &plain(name)), mcp(server, tool));
    }
}

#[test]
fn a_tool_without_a_field_is_taken_from_the_name() {
    let of = |name: &str, server: &str| named(&json!({"toolName": name, "mcpServerName": server}));
    assert_eq!(of("tiny-echo", "tiny"), mcp("tiny", "echo"));
    assert_eq!(
        of("my-srv-one__x-echo", "my.srv one__x"),
        mcp("my.srv one__x", "echo")
    );
    assert_eq!(of("else", "tiny"), mcp("tiny", "else"));
    let tool = json!({"toolName": "tiny-a", "mcpToolName": "a.b"});
    assert_eq!(named(&tool), mcp("tiny", "a.b"));
}
