//! What a server refuses.

use serde_json::json;
use teamster_api::AgentDepth;
use teamster_core::PermissionMode;
use teamster_mcp_server::Limits;

use crate::{call, client};

#[tokio::test]
async fn forbidden_settings_are_refused_with_the_next_step() {
    let mut peer = client(Limits::default()).await;
    for (arguments, problem) in [
        (
            json!({"agent": "mock", "prompt": "x", "permission": "accept-edits"}),
            "permission: this server allows no more than `read-only`; raise the permission",
        ),
        (
            json!({"agent": "cmd:x", "prompt": "x"}),
            "no agent \"cmd:x\": list_agents lists the available ones",
        ),
        (
            json!({"agent": "none", "prompt": "x"}),
            "no agent \"none\": list_agents lists the available ones",
        ),
        (
            json!({"agent": "mock", "prompt": "x", "maxBudgetUsd": -1}),
            "maxBudgetUsd: expected an amount above 0",
        ),
        (json!({"agent": "mock"}), "missing field `prompt`"),
        (
            json!({"agent": "mock", "prompt": "x", "maxTokens": "5"}),
            "maxTokens: invalid type: string \"5\", expected u64",
        ),
    ] {
        assert_eq!(peer.problem("run", arguments).await, problem);
    }
    let unknown = json!({"agent": "mock", "prompt": "x", "cwd": "/"});
    let unknown = peer.problem("start", unknown).await;
    assert!(unknown.starts_with("unknown field `cwd`"), "{unknown}");
    let tool = peer.problem("delete", json!({})).await;
    assert_eq!(tool, "unknown tool delete");
    // Nothing of that counts as a run.
    let usage = peer.tool("usage", json!({"by": "model"})).await;
    assert_eq!(usage["server"]["runs"], 0, "{usage}");
    assert_eq!(usage["machine"]["by"], "model", "{usage}");
    peer.end().await;
}

#[tokio::test]
async fn only_offered_agents_run() {
    let mut limits = Limits::default();
    limits.agents = vec!["Mock-CLI".to_owned(), "cmd:x".to_owned()];
    let mut peer = client(limits).await;
    let refused = json!({"agent": "other", "prompt": "x"});
    let refused = peer.problem("run", refused).await;
    assert_eq!(
        refused,
        "no agent \"other\": list_agents lists the available ones"
    );
    for (name, agent) in [("mock", "mock"), ("MOCK-CLI", "mock"), ("cmd:x", "cmd:x")] {
        let report = peer
            .tool("run", json!({"agent": name, "prompt": "x"}))
            .await;
        assert_eq!(report["status"], "completed", "{report}");
        assert_eq!(report["agent"], agent);
    }
    let listed = peer.tool("list_agents", json!({})).await;
    let [mock] = &**listed["agents"].as_array().unwrap() else {
        panic!("{listed}");
    };
    assert_eq!(mock["agent"], "mock");
    assert_eq!(mock["installed"], true);
    assert_eq!(mock["loggedIn"], "yes");
    assert_eq!(mock["permissions"], json!(["default"]));
}

#[tokio::test]
async fn an_agent_at_the_limit_of_depth_starts_no_other() {
    let mut limits = Limits::default();
    limits.depth = AgentDepth::new(1, Some(1));
    let mut peer = client(limits).await;
    let refused = json!({"agent": "mock", "prompt": "x"});
    let refused = peer.problem("run", refused).await;
    assert!(refused.contains("(depth 1 of at most 1)"), "{refused}");
    assert!(refused.ends_with("; raise the depth"), "{refused}");
}

#[tokio::test]
async fn runs_that_start_at_the_same_time_share_a_limit() {
    let mut limits = Limits::default();
    limits.max_runs = 1;
    let mut peer = client(limits).await;
    let start = call("start", &json!({"agent": "mock", "prompt": "hang"}));
    let mut calls = Vec::new();
    for _ in 0..4 {
        calls.push(peer.send("tools/call", &start).await);
    }
    let mut refused = 0;
    for _ in &calls {
        let answer = peer
            .wait("an answer", |it| calls.iter().any(|id| it["id"] == *id))
            .await;
        refused += u32::from(answer["result"]["isError"] == true);
    }
    assert_eq!(refused, 3);
    peer.end().await;
}

#[tokio::test]
async fn a_call_may_request_less_than_the_server_allows() {
    let mut limits = Limits::default();
    limits.permission = PermissionMode::AcceptEdits;
    let mut peer = client(limits).await;
    for (permission, refused) in [
        ("read-only", false),
        ("accept-edits", false),
        ("bypass", true),
    ] {
        let arguments = json!({"agent": "mock", "prompt": "x", "permission": permission});
        let answer = peer.request("tools/call", &call("run", &arguments)).await;
        assert_eq!(
            answer["result"]["isError"], refused,
            "{permission}: {answer}"
        );
    }
}
