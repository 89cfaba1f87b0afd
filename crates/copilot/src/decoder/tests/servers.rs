//! Notices of MCP servers that did not start.

use serde_json::{Value, json};
use teamster_core::{ExecuteParams, McpServer, Notice, SessionStarted};
use teamster_testkit::events::payloads;

use super::{line, of_agent, result, run, run_for};

fn warnings(servers: &[&str], lines: &[String]) -> Vec<String> {
    let mut params = ExecuteParams::new("hi");
    let server = |name: &&str| McpServer::stdio(*name, "x", [""; 0]);
    params.mcp_servers = servers.iter().map(server).collect();
    let (events, _) = run_for(&params, lines);
    let messages = payloads::<Notice>(&events).map(|notice| notice.message.clone());
    messages.collect()
}

fn changed(name: &str, status: &str, error: &Value) -> String {
    line(
        "session.mcp_server_status_changed",
        &json!({"serverName": name, "status": status, "error": error}),
    )
}

fn loaded(servers: &Value) -> String {
    line("session.mcp_servers_loaded", &json!({"servers": servers}))
}

#[test]
fn each_server_that_did_not_come_up_is_reported_once() {
    let list = loaded(&json!([
        {"name": "good", "status": "connected"}, {"name": "slow", "status": "pending"},
        {"name": "bad", "status": "failed", "error": "no such file"},
        {"name": "off", "status": "disabled"}, {"name": "theirs", "status": "disabled"},
    ]));
    let lines = [
        changed("slow", "pending", &Value::Null),
        changed("locked", "needs-auth", &Value::Null),
        list.clone(),
        changed("slow", "failed", &json!("it exited")),
        changed("slow", "failed", &json!("it exited")),
        changed("good", "stopped", &Value::Null),
        list,
        result(0),
    ];
    assert_eq!(
        warnings(&["good", "slow", "bad", "off", "gone"], &lines),
        [
            "the MCP server locked needs a login",
            "the MCP server bad failed: no such file",
            "the MCP server off is switched off",
            "the MCP server gone was not loaded by the CLI",
            "the MCP server slow failed: it exited",
            "the MCP server good does not run",
        ]
    );
}

#[test]
fn a_server_that_comes_up_before_the_list_is_not_missing() {
    let lines = [
        changed("a", "connected", &Value::Null),
        loaded(&json!([])),
        result(0),
    ];
    assert!(warnings(&["a"], &lines).is_empty());
}

#[test]
fn a_server_of_a_sub_agent_is_none_of_the_sessions() {
    let theirs = json!({"servers": [{"name": "sub", "status": "failed", "error": "x"},
        {"name": "fine", "status": "connected"}]});
    let one = json!({"serverName": "sub2", "status": "failed", "error": "y"});
    let lines = [
        loaded(&json!([{"name": "mine", "status": "connected"}])),
        line("session.tools_updated", &json!({"model": "m"})),
        of_agent("A", "session.mcp_servers_loaded", &theirs),
        of_agent("A", "session.mcp_server_status_changed", &one),
        result(0),
    ];
    let (events, _) = run(&lines);
    let listed: Vec<Vec<String>> = payloads::<SessionStarted>(&events)
        .filter_map(|session| session.mcp_servers.as_ref())
        .map(|servers| servers.iter().map(|s| s.name.clone()).collect())
        .collect();
    assert_eq!(listed, [["mine"]]);
    // The notice comes even so, and no server is reported as missing.
    assert_eq!(
        warnings(&["mine"], &lines),
        [
            "the MCP server sub failed: x",
            "the MCP server sub2 failed: y"
        ]
    );
}

#[test]
fn why_a_server_failed_may_be_an_object() {
    let lines = [
        changed("b", "failed", &json!({"message": "it exited", "code": 1})),
        changed("c", "failed", &json!({})),
        loaded(&json!([{"name": "a", "status": "failed", "error": {"message": "obj err"}}])),
        result(0),
    ];
    assert_eq!(
        warnings(&["a", "b", "c"], &lines),
        [
            "the MCP server b failed: it exited",
            "the MCP server c failed",
            "the MCP server a failed: obj err",
        ]
    );
}
