//! Sessions over HTTP: turns, interrupts, changes, and their log.

use serde_json::{Value, json};
use teamster_testkit::http::Response;
use teamster_testkit::proc::wait_until;

use super::client::Served;
use crate::cli::LIMIT;
use crate::cli::chat::Agent;

fn serve(agent: &Agent) -> Served {
    Served::start(&[], &agent.path("state"), |command| {
        agent.environment(command);
    })
}

/// Starts a session; its path.
fn start(served: &Served) -> String {
    let started = served.post("/v1/sessions", &json!({"provider": "claude"}));
    assert_eq!(started.status, 201, "{}", started.body);
    started.header("location").unwrap().to_owned()
}

/// Sends a prompt and waits for the end of its turn.
fn turn(served: &Served, session: &str, prompt: &str, key: Option<&str>) -> Response {
    let request = served
        .request("POST", &format!("{session}/turns"))
        .header("Prefer", "wait=60")
        .json(&json!({ "prompt": prompt }));
    match key {
        Some(key) => request.header("Idempotency-Key", key).send(),
        None => request.send(),
    }
}

fn is_state(served: &Served, session: &str, state: &str) -> bool {
    wait_until(LIMIT, || {
        served.get(session).json()["live"]["state"] == state
    })
}

fn end(served: &Served, session: &str) {
    let ended = served.request("DELETE", session).send();
    assert_eq!(ended.status, 202, "{}", ended.body);
    assert!(wait_until(LIMIT, || served.get(session).json()["state"] == "ended"));
}

#[test]
fn repeated_key_begins_no_second_turn_or_session() {
    let agent = Agent::new();
    let served = serve(&agent);
    let start = |body: &Value| {
        served
            .request("POST", "/v1/sessions")
            .header("Idempotency-Key", "k")
            .json(body)
            .send()
    };
    let body = json!({"provider": "claude"});
    let first = start(&body);
    assert_eq!(first.status, 201, "{}", first.body);
    let again = start(&body);
    assert_eq!(
        (again.status, &again.json()["runId"]),
        (200, &first.json()["runId"])
    );
    start(&json!({"provider": "claude", "model": "opus"}))
        .is_problem(422, "IDEMPOTENCY_KEY_REUSED");
    // The same key of a run is another one.
    let run = served
        .request("POST", "/v1/runs")
        .header("Idempotency-Key", "k")
        .json(&json!({"provider": "claude", "prompt": "x", "askTimeoutMs": 0}))
        .send();
    assert_eq!(run.status, 201, "{}", run.body);

    let session = first.header("location").unwrap();
    let first = turn(&served, session, "hello", Some("t"));
    assert_eq!(first.status, 201, "{}", first.body);
    let turn_again = |prompt: &str| turn(&served, session, prompt, Some("t"));
    let again = turn_again("hello");
    assert_eq!((again.status, again.json()), (200, first.json()));
    turn_again("another").is_problem(422, "IDEMPOTENCY_KEY_REUSED");
    assert_eq!(served.get(session).json()["live"]["turns"], 1);
    end(&served, session);
    // Also after the end of the session.
    let late = turn_again("hello");
    assert_eq!((late.status, late.json()), (200, first.json()));
    turn_again("another").is_problem(422, "IDEMPOTENCY_KEY_REUSED");
    turn(&served, session, "hello", Some("other")).is_problem(409, "RUN_ENDED");
    let run = run.header("location").unwrap();
    assert!(wait_until(LIMIT, || served.get(run).json()["state"] == "ended"));
}

#[test]
fn a_turn_is_interrupted_and_a_session_changed() {
    let agent = Agent::new();
    let served = serve(&agent);
    let session = start(&served);
    let post = |path: &str, body: &Value| served.post(&format!("{session}/{path}"), body);
    let no_turn = served.request("POST", &format!("{session}/interrupt"));
    no_turn.send().is_problem(409, "NO_TURN");
    post("steer", &json!({"text": "x"})).is_problem(409, "NO_TURN");
    assert_eq!(post("turns", &json!({"prompt": "wait"})).status, 201);
    assert!(is_state(&served, &session, "running"));
    // A process that is interrupted before it has the prompt is ended, and gets no change below.
    assert!(wait_until(LIMIT, || agent.received().contains("wait")));
    post("turns", &json!({"prompt": "more"})).is_problem(409, "SESSION_BUSY");
    let interrupted = served
        .request("POST", &format!("{session}/interrupt"))
        .send();
    assert_eq!((interrupted.status, &*interrupted.body), (204, ""));
    assert!(is_state(&served, &session, "idle"));

    let clear = served.request("POST", &format!("{session}/clear")).send();
    assert_eq!((clear.status, &*clear.body), (204, ""));
    let patch = |body: Value| served.request("PATCH", &session).json(&body).send();
    let changed = patch(json!({"model": "opus", "permission": "accept-edits"}));
    assert_eq!(
        (changed.status, &changed.json()["state"]),
        (200, &"running".into())
    );
    assert!(
        agent.received().contains("set_model"),
        "{}",
        agent.received()
    );
    patch(json!({"permission": "bypass"})).is_problem(403, "BYPASS_NOT_ALLOWED");
    patch(json!({})).is_problem(422, "INVALID_PARAMS");
    patch(json!({"model": " "})).is_problem(422, "INVALID_PARAMS");
    patch(json!({"colour": "red"})).is_problem(422, "INVALID_PARAMS");
    end(&served, &session);
}

#[test]
fn a_session_that_another_run_works_with_is_a_conflict() {
    let agent = Agent::new();
    let served = Served::start(&[], &agent.path("state"), |command| {
        agent.environment(command);
        command.env("TEAMSTER_STORE", agent.path("store.db"));
    });
    let body = json!({"provider": "claude", "prompt": "wait", "sessionKey": "k"});
    let started = served.post("/v1/runs", &body);
    assert_eq!(started.status, 201, "{}", started.body);
    let run = started.header("location").unwrap().to_owned();
    let mut session = Value::Null;
    assert!(wait_until(LIMIT, || {
        session = served.get(&run).json()["sessionId"].take();
        session.is_string()
    }));
    let id = run.rsplit('/').next().unwrap();
    for (path, body) in [
        (
            "/v1/runs",
            json!({"provider": "claude", "prompt": "more", "sessionId": session}),
        ),
        (
            "/v1/runs",
            json!({"provider": "claude", "prompt": "more", "sessionKey": "k"}),
        ),
        (
            "/v1/sessions",
            json!({"provider": "claude", "sessionId": session}),
        ),
    ] {
        let refused = served.post(path, &body);
        refused.is_problem(409, "SESSION_IN_USE");
        assert!(refused.body.contains(id), "{body}: {}", refused.body);
    }
    let killed = served.post(&format!("{run}/cancel"), &json!({"kill": true}));
    assert_eq!(killed.status, 202, "{}", killed.body);
    assert!(wait_until(LIMIT, || served.get(&run).json()["state"] == "ended"));
}
