//! Requests of agents, and their answers.

use serde_json::{Value, json};
use teamster_core::PermissionMode;
use teamster_mcp_server::Limits;

use crate::client;
use crate::peer::Peer;

/// Starts a run and waits for its request.
async fn request(peer: &mut Peer, prompt: &str) -> (String, Value) {
    let id = peer.start_run(prompt).await;
    let waited = peer.tool("wait", json!({"runIds": [id]})).await;
    let run = &waited["runs"][0];
    assert_eq!(run["state"], "waiting", "{waited}");
    (id, run["requests"][0].clone())
}

#[tokio::test]
async fn a_request_is_reported_and_answered() {
    let mut limits = Limits::default();
    limits.permission = PermissionMode::Default;
    let mut peer = client(limits).await;
    let (id, request) = request(&mut peer, "ask").await;
    assert_eq!(request["tool"], "Bash");
    assert_eq!(request["input"]["command"], "touch x");
    let answer = json!({"requestId": request["requestId"], "decision": "allow"});
    let answered = peer.tool("answer", answer.clone()).await;
    assert_eq!(answered["answered"], true);
    let waited = peer.tool("wait", json!({"runIds": [id]})).await;
    assert_eq!(waited["runs"][0]["text"], "done", "{waited}");
    let again = peer.problem("answer", answer).await;
    assert!(again.contains("already"), "{again}");
}

#[tokio::test]
async fn a_read_only_server_allows_nothing_and_answers_questions() {
    let mut peer = client(Limits::default()).await;
    let (_, permission) = request(&mut peer, "ask").await;
    let mut answer = json!({"requestId": permission["requestId"], "decision": "allow"});
    let refused = peer.problem("answer", answer.clone()).await;
    let expected = "this server is read-only: requests can only be denied; raise the permission";
    assert_eq!(refused, expected);
    answer["input"] = json!({"command": "true"});
    let refused = peer.problem("answer", answer.clone()).await;
    let expected = "this server is read-only: an input is only an answer to a question";
    assert_eq!(refused, expected);
    answer["decision"] = json!("deny");
    peer.tool("answer", answer).await;

    let (id, question) = request(&mut peer, "question").await;
    assert_eq!(question["schema"]["type"], "object");
    let answer = json!({
        "requestId": question["requestId"], "decision": "allow", "input": {"name": "x"},
    });
    peer.tool("answer", answer).await;
    let waited = peer.tool("wait", json!({"runIds": [id]})).await;
    assert_eq!(waited["runs"][0]["status"], "completed", "{waited}");
    let other = json!({"requestId": "other/1", "decision": "deny"});
    let other = peer.problem("answer", other).await;
    assert_eq!(other, "run other was not started by this server");
}
