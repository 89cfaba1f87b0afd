//! Runs: start, wait, read, stop.

use std::sync::Arc;

use serde_json::json;
use teamster_api::{AgentDepth, RunHandle, RunService, RunSpec};
use teamster_core::RunStatus;
use teamster_mcp_server::Limits;

use crate::peer::Peer;
use crate::{call, client, memory, server};

#[tokio::test]
async fn an_answer_is_a_tool_s_result_as_data_and_as_text() {
    let mut peer = client(Limits::default()).await;
    let arguments = json!({"agent": "mock", "prompt": "x"});
    let answer = peer.request("tools/call", &call("run", &arguments)).await;
    let result = &answer["result"];
    assert_eq!(result["content"][0]["text"], "Hello, world", "{answer}");
    assert_eq!(result["isError"], false, "{answer}");
    let report = &result["structuredContent"];
    assert_eq!(report["state"], "ended");
    assert_eq!(report["status"], "completed");
    assert_eq!(report["text"], "Hello, world");
    assert_eq!(report["sessionId"], "session-in-memory");
    let usage = peer.tool("usage", json!({})).await;
    assert_eq!(usage["server"]["runs"], 1, "{usage}");
    assert_eq!(usage["server"]["running"], 0, "{usage}");
    peer.end().await;
}

#[tokio::test]
async fn a_failed_run_is_a_failed_call_with_its_report() {
    let mut peer = client(Limits::default()).await;
    let arguments = json!({"agent": "mock", "prompt": "fail"});
    let answer = peer.request("tools/call", &call("run", &arguments)).await;
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    let report = &answer["result"]["structuredContent"];
    assert_eq!(report["error"]["kind"], "quota", "{report}");
    let text = answer["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("half\n\n(run "), "{text}");
    assert!(text.ends_with(" failed: nothing left)"), "{text}");
}

#[tokio::test]
async fn a_run_is_started_waited_for_and_read_in_pages() {
    let mut peer = client(Limits::default()).await;
    let hanging = peer.start_run("hang").await;
    let id = peer.start_run("x").await;
    let waited = peer.tool("wait", json!({"runIds": [hanging, id]})).await;
    assert_eq!(waited["runs"][0]["state"], "running", "{waited}");
    assert_eq!(waited["runs"][1]["status"], "completed", "{waited}");
    let mut texts = Vec::new();
    let mut after = json!(0);
    loop {
        let page = json!({"runId": id, "after": after, "limit": 1});
        let page = peer.tool("events", page).await;
        let events = page["events"].as_array().unwrap();
        assert!(events.len() <= 1, "{page}");
        texts.extend(events.iter().map(|event| event["text"].clone()));
        after = page["next"].clone();
        if page["ended"] == true {
            break;
        }
    }
    assert_eq!(texts, ["Hello", ", world"]);
    let end = json!({"runId": id, "after": after});
    let end = peer.tool("events", end).await;
    assert_eq!((&end["ended"], &end["events"]), (&json!(true), &json!([])));
    // A page of a live run ends with what there is.
    let live = peer.tool("events", json!({"runId": hanging})).await;
    assert_eq!(live["ended"], false, "{live}");
    assert_eq!(live["events"][0]["text"], "…", "{live}");
    for tool in ["events", "cancel"] {
        let unknown = peer.problem(tool, json!({"runId": "0199"})).await;
        assert_eq!(unknown, "run 0199 was not started by this server");
    }
    let none = peer.problem("wait", json!({"runIds": []})).await;
    assert_eq!(none, "runIds: name at least one run");
    peer.end().await;
}

#[tokio::test(start_paused = true)]
async fn waiting_has_a_limit() {
    let mut peer = client(Limits::default()).await;
    let id = peer.start_run("hang").await;
    let waited = peer
        .tool("wait", json!({"runIds": [id], "timeoutMs": 60_000}))
        .await;
    assert_eq!(waited["runs"][0]["state"], "running", "{waited}");
}

#[tokio::test(start_paused = true)]
async fn a_silent_run_sends_progress() {
    let mut peer = client(Limits::default()).await;
    let mut arguments = call("run", &json!({"agent": "mock", "prompt": "hang"}));
    arguments["_meta"] = json!({"progressToken": "p"});
    let id = peer.send("tools/call", &arguments).await;
    let silent = peer
        .wait("progress of a silent run", |it| {
            let words = it["params"]["message"].as_str().unwrap_or_default();
            it["method"] == "notifications/progress" && words.ends_with(" s)")
        })
        .await;
    assert_eq!(silent["params"]["progressToken"], "p");
    let words = silent["params"]["message"].as_str().unwrap();
    assert!(words.starts_with("mock: … ("), "{words}");
    peer.notify("notifications/cancelled", &json!({"requestId": id}))
        .await;
    peer.end().await;
}

#[tokio::test]
async fn a_run_is_stopped_by_its_tool_and_by_its_call() {
    let mut peer = client(Limits::default()).await;
    let id = peer.start_run("hang").await;
    peer.tool("cancel", json!({"runId": id})).await;
    let waited = peer.tool("wait", json!({"runIds": [id]})).await;
    assert_eq!(waited["runs"][0]["status"], "aborted", "{waited}");
    // What has ended needs no stop.
    let again = peer.tool("cancel", json!({"runId": id})).await;
    assert_eq!(again["status"], "aborted");

    let arguments = json!({"agent": "mock", "prompt": "hang"});
    let id = peer.send("tools/call", &call("run", &arguments)).await;
    while peer.tool("usage", json!({})).await["server"]["running"] != 1 {}
    peer.notify("notifications/cancelled", &json!({"requestId": id}))
        .await;
    while peer.tool("usage", json!({})).await["server"]["running"] == 1 {}
    peer.end().await;
}

#[tokio::test]
async fn runs_are_stopped_when_the_client_leaves_unless_kept() {
    for keeps in [false, true] {
        let service = memory();
        let mut limits = Limits::default();
        limits.keep_runs = keeps;
        let mut peer = Peer::start(server(&service, limits));
        peer.begin().await;
        let id = peer.start_run("hang").await;
        peer.end().await;
        let view = service.show(&id).await.unwrap();
        let expected = (!keeps).then_some(RunStatus::Aborted);
        assert_eq!(view.summary.status, expected, "kept: {keeps}");
    }
}

#[tokio::test]
async fn other_runs_of_the_service_are_not_those_of_the_client() {
    let service = memory();
    let spec = RunSpec::new("mock", "hang");
    let other = RunHandle::start(Arc::new(service.clone()), "other-run", spec).await;
    let other = other.unwrap();
    let mut peer = Peer::start(server(&service, Limits::default()));
    peer.begin().await;
    for tool in ["cancel", "events"] {
        let problem = peer.problem(tool, json!({"runId": other.id()})).await;
        assert_eq!(problem, "run other-run was not started by this server");
    }
    peer.end().await;
    assert_eq!(other.view().await.unwrap().summary.status, None);
}

#[tokio::test]
async fn a_run_has_what_the_call_and_the_limits_say() {
    let service = memory();
    let mut limits = Limits::default();
    limits.depth = AgentDepth::new(1, Some(3));
    limits.max_tokens = Some(100);
    let mut peer = Peer::start(server(&service, limits));
    peer.begin().await;
    let arguments = json!({
        "agent": "mock", "prompt": "x", "model": "m", "sessionId": "s", "maxTimeMs": 7_200_000,
        "appendSystemPrompt": "more", "workingDirectory": "/w", "maxBudgetUsd": 5,
    });
    let report = peer.tool("run", arguments).await;
    let expected = json!({
        "provider": "mock", "prompt": "x", "model": "m", "permission": "read-only",
        "workingDirectory": "/w", "sessionId": "s", "appendSystemPrompt": "more", "maxBudgetUsd": 5,
        "maxTokens": 100, "maxTimeMs": 3_600_000, "depth": {"own": 2, "limit": 3},
    });
    let expected: RunSpec = serde_json::from_value(expected).unwrap();
    // The service knows the run by this spec.
    let id = report["runId"].as_str().unwrap();
    let same = service.start(id, expected.into()).await.unwrap();
    assert!(same.existed);
}
