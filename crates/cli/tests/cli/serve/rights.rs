//! What the body of a request may ask for with which token.

use serde_json::{Value, json};
use teamster_testkit::proc::wait_until;

use super::about;
use super::client::{Request, Response, Served};
use crate::cli::chat::Agent;
use crate::cli::{Claude, LIMIT, run, teamster};

fn send(served: &Served, token: &str, path: &str, body: &Value) -> Response {
    Request::new(&served.address, "POST", path)
        .header("Authorization", &format!("Bearer {token}"))
        .json(body)
        .send()
}

#[test]
fn tools_are_allowed_in_advance_only_by_a_token_that_may_also_answer() {
    let claude = Claude::plays("text", 0);
    let served = Served::of(&claude, &[]);
    let add = |name, scopes| {
        let added = about(&claude, ["token", "add", name, "--scope", scopes]);
        added.stdout.trim_end().to_owned()
    };
    let (runner, both) = (add("ci", "run"), add("desk", "run,answer"));
    let body = json!({
        "provider": "claude", "prompt": "x", "askTimeoutMs": 0, "allowedTools": ["Bash"],
    });
    let session = json!({"provider": "claude", "allowedTools": ["Bash"]});
    for (path, body) in [("/v1/runs", &body), ("/v1/sessions", &session)] {
        let refused = send(&served, &runner, path, body);
        refused.is_problem(403, "INSUFFICIENT_SCOPE");
        assert!(refused.body.contains("`answer`"), "{}", refused.body);
    }
    assert_eq!(served.get("/v1/runs").json(), json!({"runs": []}));
    for token in [&both, &served.token] {
        let started = send(&served, token, "/v1/runs", &body);
        assert_eq!(started.status, 201, "{}", started.body);
    }
    // What forbids tools needs nothing.
    let denied = json!({
        "provider": "claude", "prompt": "x", "askTimeoutMs": 0, "deniedTools": ["Bash"],
    });
    assert_eq!(send(&served, &runner, "/v1/runs", &denied).status, 201);
}

#[test]
fn a_token_that_may_only_answer_allows_what_was_requested_and_nothing_else() {
    let agent = Agent::new();
    let state = agent.path("state");
    let served = Served::start(&[], &state, |command| agent.environment(command));
    let add = |name: &str, scopes: &str| {
        let mut command = teamster(["token", "add", name, "--scope", scopes]);
        let added = run(command.env("XDG_STATE_HOME", &state));
        added.stdout.trim_end().to_owned()
    };
    let (phone, both) = (add("phone", "answer"), add("desk", "answer,run"));
    let other = json!({"decision": "allow_with", "input": {"file_path": "/x/b", "content": "two"}});
    // Returns the path of the request of a run that waits.
    let waiting = || {
        let body = json!({"provider": "claude", "prompt": "write"});
        let started = served.post("/v1/runs", &body);
        let id = started.json()["runId"].as_str().unwrap().to_owned();
        let run = format!("/v1/runs/{id}");
        assert!(wait_until(LIMIT, || served.get(&run).json()["state"] == "waiting"));
        (id.clone(), format!("/v1/requests/{id}/1"))
    };

    let (id, request) = waiting();
    let refused = send(&served, &phone, &request, &other);
    refused.is_problem(403, "INSUFFICIENT_SCOPE");
    let next = send(&served, &phone, &format!("/v1/requests/{id}/2"), &other);
    next.is_problem(409, "ALREADY_ANSWERED");
    let run = served.get(&format!("/v1/runs/{id}")).json();
    assert_eq!(run["requests"][0]["requestId"], format!("{id}/1"));
    let allow = json!({"decision": "allow"});
    assert_eq!(send(&served, &phone, &request, &allow).status, 204);
    served.ended(&id);

    let (id, request) = waiting();
    assert_eq!(send(&served, &both, &request, &other).status, 204);
    served.ended(&id);
}
