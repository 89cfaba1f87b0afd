//! Both versions of the protocol: tasks of stateless clients, and clients without them.

use serde_json::{Value, json};
use teamster_mcp_server::Limits;

use crate::peer::Peer;
use crate::{call, client, memory, server};

/// The metadata of each request of a client of the version 2026-07-28.
fn meta(capabilities: &Value) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    })
}

#[tokio::test]
async fn a_stateless_client_gets_a_task_for_a_run() {
    let mut peer = Peer::start(server(&memory(), Limits::default()));
    let plain = meta(&json!({}));
    let about = peer
        .request("server/discover", &json!({"_meta": plain}))
        .await;
    let versions = about["result"]["supportedVersions"].to_string();
    assert!(versions.contains("2026-07-28"), "{about}");
    // Without the extension, the answer is the call's.
    let mut run = call("run", &json!({"agent": "mock", "prompt": "x"}));
    run["_meta"] = plain;
    let answer = peer.request("tools/call", &run).await;
    let report = &answer["result"]["structuredContent"];
    assert_eq!(report["status"], "completed", "{answer}");

    let tasks = meta(&json!({"extensions": {"io.modelcontextprotocol/tasks": {}}}));
    run["_meta"] = tasks.clone();
    let task = peer.request("tools/call", &run).await;
    assert_eq!(task["result"]["resultType"], "task", "{task}");
    let id = task["result"]["taskId"].clone();
    let get = json!({"taskId": id, "_meta": tasks});
    let done = loop {
        let got = peer.request("tasks/get", &get).await;
        assert_eq!(got["result"]["createdAt"], task["result"]["createdAt"]);
        if got["result"]["status"] != "working" {
            break got;
        }
    };
    assert_eq!(done["result"]["status"], "completed", "{done}");
    let report = &done["result"]["result"]["structuredContent"];
    assert_eq!(report["runId"], id);
    assert_eq!(report["status"], "completed");
}

#[tokio::test]
async fn a_task_is_cancelled_and_shows_that_it_waits() {
    let mut peer = Peer::start(server(&memory(), Limits::default()));
    let tasks = meta(&json!({"extensions": {"io.modelcontextprotocol/tasks": {}}}));
    let mut run = call("run", &json!({"agent": "mock", "prompt": "ask"}));
    run["_meta"] = tasks.clone();
    let task = peer.request("tools/call", &run).await;
    let id = task["result"]["taskId"].clone();
    let get = json!({"taskId": id, "_meta": tasks});
    let waits = loop {
        let got = peer.request("tasks/get", &get).await;
        assert_eq!(got["result"]["status"], "working", "{got}");
        if let Some(message) = got["result"]["statusMessage"].as_str() {
            break message.to_owned();
        }
    };
    assert!(waits.contains("the tool `answer`"), "{waits}");
    let cancelled = peer.request("tasks/cancel", &get).await;
    assert!(cancelled["error"].is_null(), "{cancelled}");
    loop {
        let got = peer.request("tasks/get", &get).await;
        if got["result"]["status"] == "cancelled" {
            break;
        }
        assert_eq!(got["result"]["status"], "working", "{got}");
    }
    let other = json!({"taskId": "other", "_meta": tasks});
    let other = peer.request("tasks/get", &other).await;
    let message = other["error"]["message"].as_str().unwrap();
    assert_eq!(message, "run other was not started by this server");
}

#[tokio::test]
async fn a_client_that_began_with_initialize_gets_no_task() {
    let mut peer = Peer::start(server(&memory(), Limits::default()));
    let about = peer.begin().await;
    let capabilities = &about["result"]["capabilities"];
    assert!(capabilities["extensions"].is_null(), "{about}");
    assert!(capabilities["tools"].is_object(), "{about}");
    let run = json!({"agent": "mock", "prompt": "x"});
    let report = peer.tool("run", run).await;
    assert_eq!(report["status"], "completed", "{report}");
    let get = json!({"taskId": report["runId"]});
    let task = peer.request("tasks/get", &get).await;
    assert_eq!(task["error"]["code"], -32601, "{task}");
}

#[tokio::test]
async fn the_tools_are_listed_with_what_they_change() {
    let mut peer = client(Limits::default()).await;
    let tools = peer.request("tools/list", &json!({})).await;
    let tools = tools["result"]["tools"].as_array().unwrap().clone();
    let names: Vec<_> = tools
        .iter()
        .map(|it| it["name"].as_str().unwrap())
        .collect();
    let expected = [
        "run",
        "start",
        "wait",
        "events",
        "answer",
        "cancel",
        "list_agents",
        "usage",
    ];
    assert_eq!(names, expected);
    assert_eq!(tools[0]["annotations"]["readOnlyHint"], true);
}
