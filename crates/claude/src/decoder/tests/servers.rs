//! MCP servers: their names in those of tools, and what is told of those that did not come up.

use serde_json::{Value, json};
use teamster_core::{AgentEvent, ExecuteParams, Exit, McpServer};
use teamster_testkit::replay::decode;

use super::super::ClaudeDecoder;
use super::{SESSION, end, whole};

fn run_with(servers: &[&str], lines: &[String]) -> Vec<AgentEvent> {
    let mut params = ExecuteParams::new("hi");
    let server = |name: &&str| McpServer::stdio(*name, "x", [""; 0]);
    params.mcp_servers = servers.iter().map(server).collect();
    let exit = Exit {
        code: Some(0),
        ..Exit::default()
    };
    decode(ClaudeDecoder::for_run(&params), lines, exit).0
}

fn init(servers: &Value) -> String {
    json!({"type": "system", "subtype": "init", "session_id": SESSION, "model": "m",
           "tools": [], "mcp_servers": servers})
    .to_string()
}

fn warnings(events: &[AgentEvent]) -> Vec<&str> {
    let messages = events.iter().filter_map(|event| match event {
        AgentEvent::Notice(notice) => Some(notice.message.as_str()),
        _ => None,
    });
    messages.collect()
}

#[test]
fn the_server_of_a_tool_is_a_known_one_the_longest_first() {
    let call = |name: &str| {
        whole(
            "m",
            &json!({"type": "tool_use", "id": name, "name": name, "input": {}}),
        )
    };
    let calls = [
        "mcp__a__b__c",
        "mcp__a__x",
        "mcp__u__v__w",
        "mcp__x___y",
        "mcp__new__x__y",
    ];
    // `a__b` and `x_` were asked for and are not on the CLI's list; `u__v` is the user's.
    let list = init(&json!([{"name": "a", "status": "connected"},
                            {"name": "u__v", "status": "connected"}]));
    let lines: Vec<_> = [list]
        .into_iter()
        .chain(calls.map(call))
        .chain([end(&json!({}))])
        .collect();
    let events = run_with(&["a__b", "x_"], &lines);
    let found: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            AgentEvent::ToolUse(tool) => tool.mcp.as_ref(),
            _ => None,
        })
        .map(|mcp| (mcp.server.as_str(), mcp.tool.as_str()))
        .collect();
    assert_eq!(
        found,
        [
            ("a__b", "c"),
            ("a", "x"),
            ("u__v", "w"),
            ("x_", "y"),
            ("new", "x__y")
        ]
    );
}

#[test]
fn each_server_that_did_not_come_up_is_told_once() {
    let list = init(&json!([
        {"name": "good", "status": "connected"}, {"name": "slow", "status": "pending"},
        {"name": "bad", "status": "failed"}, {"name": "locked", "status": "needs-auth"},
        {"name": "off", "status": "disabled"}, {"name": "theirs", "status": "disabled"},
    ]));
    let again = init(&json!([
        {"name": "bad", "status": "failed"}, {"name": "slow", "status": "failed"},
    ]));
    let lines = [
        list.clone(),
        end(&json!({})),
        list,
        again.clone(),
        again,
        end(&json!({})),
    ];
    let events = run_with(&["good", "slow", "bad", "off", "gone"], &lines);
    let told =
        |name: &str, why: &str| format!("the MCP server {name} {why}, so its tools are missing");
    assert_eq!(
        warnings(&events),
        [
            told("bad", "failed to start"),
            told("locked", "needs a login first"),
            told("off", "is switched off"),
            told("gone", "was not loaded by the CLI"),
            told("slow", "failed to start"),
        ]
    );
}

#[test]
fn a_run_without_a_first_line_tells_nothing_of_servers() {
    assert!(warnings(&run_with(&["a"], &[end(&json!({}))])).is_empty());
}
